//! Runs that only a program can continue, and servers that stop: what clients get that wait for an answer.

use std::time::Duration;

use axum::body::to_bytes;
use axum::http::StatusCode;
use positronic_bridges::Bridges;
use positronic_server::{Scope, Shutdown};
use serde_json::{Value, json};

use crate::support::{Shop, input, said, waiting_order};

const ALL: [Scope; 3] = [Scope::Read, Scope::Run, Scope::Decide];

/// Returns the path and the body of a message to the brain over a bridge.
fn request(bridge: &str, is_stream: bool) -> (String, Value) {
    let (path, body) = match bridge {
        "ag-ui" => ("ag-ui/Order", input("thread", said("go"))),
        "ai-sdk" => {
            let message = json!({ "id": "m", "role": "user", "parts": [{ "type": "text", "text": "go" }] });
            ("ai-sdk/Order", json!({ "id": "chat", "messages": [message] }))
        }
        "openai" => {
            let messages = json!([{ "role": "user", "content": "go" }]);
            let body = json!({ "model": "Order", "messages": messages, "stream": is_stream });
            ("openai/v1/chat/completions", body)
        }
        _ => {
            let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "go" }] });
            ("a2a/Order/message:stream", json!({ "message": message }))
        }
    };
    (format!("/api/v1/{path}"), body)
}

#[tokio::test(start_paused = true)]
async fn streams_say_that_the_server_stops() {
    for bridge in ["ag-ui", "ai-sdk", "openai", "a2a"] {
        let shutdown = Shutdown::default();
        let shop = Shop::stopped_by(waiting_order(), shutdown.clone());
        let ann = shop.token(Some("ann"), &ALL).await;
        let (path, body) = request(bridge, true);
        let response = shop.send_with(&ann, "POST", &path, Some(body), &[]).await;
        let status = response.status();

        shutdown.begin();
        let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();

        let text = String::from_utf8(bytes.to_vec()).unwrap();
        assert_eq!(status, StatusCode::OK, "{bridge}: {text}");
        assert!(text.contains("The server is stopping."), "{bridge}: {text}");
    }
}

#[tokio::test(start_paused = true)]
async fn answer_of_a_run_that_waits_for_a_program_comes_in_time_and_says_so() {
    for is_stream in [false, true] {
        let shop = Shop::of(waiting_order(), &Bridges::builder().build(), &[]);
        let ann = shop.token(Some("ann"), &ALL).await;
        let (path, body) = request("openai", is_stream);
        let answer = shop.send(&ann, "POST", &path, Some(body));

        let (status, text) = tokio::time::timeout(Duration::from_secs(25), answer).await.unwrap();

        assert_eq!(status, StatusCode::OK, "{text}");
        assert!(text.contains("waits for another program: the webhook `shop`"), "{text}");
    }
}

#[tokio::test]
async fn lists_of_an_unknown_brain_are_refused() {
    let shop = Shop::new();
    let ann = shop.token(Some("ann"), &ALL).await;

    let (missing, invalid) = (StatusCode::NOT_FOUND, StatusCode::BAD_REQUEST);
    for (path, expected) in
        [("ai-sdk/Nope/chat", missing), ("ai-sdk/Nope/chat/stream", missing), ("a2a/Nope/tasks", invalid)]
    {
        let (status, text) = shop.send(&ann, "GET", &format!("/api/v1/{path}"), None).await;
        assert_eq!(status, expected, "{path}: {text}");
        assert!(text.contains("Nope"), "{path}: {text}");
    }
    let (status, text) = shop.send(&ann, "GET", "/api/v1/ai-sdk/Refund/chat", None).await;
    assert_eq!((status, text.as_str()), (StatusCode::OK, "[]"));
}
