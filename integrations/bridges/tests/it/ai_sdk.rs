//! What the AI SDK's stream says of recorded runs.

use axum::http::StatusCode;
use positronic_bridges::Bridges;
use positronic_server::Scope;
use serde_json::{Value, json};

use crate::support::Shop;

const ALL: [Scope; 3] = [Scope::Read, Scope::Run, Scope::Decide];

/// Posts a chat whose last message is this one, and returns the chunks.
async fn chat(shop: &Shop, token: &str, more: Value) -> String {
    let mut body = json!({ "id": "chat", "messages": [] });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let (status, text) = shop.send(token, "POST", "/api/v1/ai-sdk/Refund", Some(body)).await;
    assert_eq!(status, StatusCode::OK, "{text}");
    chunks(&text)
}

/// Returns one chunk a line.
fn chunks(text: &str) -> String {
    text.lines().filter_map(|line| line.strip_prefix("data: ")).collect::<Vec<_>>().join("\n")
}

fn said(text: &str) -> Value {
    json!({ "messages": [{ "id": format!("m-{text}"), "role": "user", "parts": [{ "type": "text", "text": text }] }] })
}

#[tokio::test]
async fn chat_up_to_an_approval_and_after_it() {
    let shop = Shop::open(&Bridges::builder().build(), &["none"]);
    let ann = shop.token(Some("ann"), &ALL).await;

    let first = chat(&shop, &ann, said("pay")).await;
    let asked = first.lines().find(|line| line.contains("tool-approval-request")).unwrap();
    let asked: Value = serde_json::from_str(asked).unwrap();
    let part = json!({
        "type": "dynamic-tool", "state": "approval-responded", "approval": { "id": asked["approvalId"], "approved": true },
    });
    let answered = json!({ "messages": [{ "id": "a", "role": "assistant", "parts": [part] }] });
    let second = chat(&shop, &ann, answered.clone()).await;
    let repeated = chat(&shop, &ann, answered).await;

    insta::assert_snapshot!("chat_up_to_an_approval", first);
    insta::assert_snapshot!("chat_after_the_approval", second);
    assert!(repeated.contains(r#""finishReason":"stop""#), "the same answer is one decision: {repeated}");
}

#[tokio::test]
async fn stream_of_a_waiting_run_is_replayed_and_that_of_an_ended_one_is_empty() {
    let shop = Shop::open(&Bridges::builder().build(), &["none"]);
    let ann = shop.token(Some("ann"), &ALL).await;
    let first = chat(&shop, &ann, said("pay")).await;

    let (status, again) = shop.send(&ann, "GET", "/api/v1/ai-sdk/Refund/chat/stream", None).await;
    chat(&shop, &ann, json!({ "id": "other", "messages": said("hello")["messages"] })).await;
    let (ended, _) = shop.send(&ann, "GET", "/api/v1/ai-sdk/Refund/other/stream", None).await;
    let (unknown, _) = shop.send(&ann, "GET", "/api/v1/ai-sdk/Refund/none/stream", None).await;

    assert_eq!((status, chunks(&again)), (StatusCode::OK, first));
    assert_eq!((ended, unknown), (StatusCode::NO_CONTENT, StatusCode::NO_CONTENT));
}
