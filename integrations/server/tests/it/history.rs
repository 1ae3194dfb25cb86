//! What was decided lately, and where a search has found its text.

use axum::http::StatusCode;
use positronic_server::{Options, REDACTED, Scope, redact_fields};
use serde_json::{Value, json};

use crate::support::Shop;

async fn decided(shop: &Shop, token: &str, decision: Value) -> String {
    let (run, id) = shop.waiting_run(token, 7).await;
    let answer = shop.post(token, &format!("/api/v1/runs/{run}/calls/{id}/decision"), decision).await;
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    shop.end(&run).await;
    run.to_string()
}

#[tokio::test]
async fn decisions_are_listed_with_who_made_them_and_what_they_were_about() {
    let shop = Shop::new();
    let ann = shop.token(Some("ann"), &[Scope::Read, Scope::Run, Scope::Decide]).await;
    let first = decided(&shop, &ann, json!({ "reject": true, "reason": "too much" })).await;
    let second = decided(&shop, &ann, json!({ "approve": true, "arguments": { "amount": 50 } })).await;

    let list = shop.get(&ann, "/api/v1/decisions").await.json();

    let items = list["items"].as_array().unwrap();
    assert_eq!(items.iter().map(|item| item["run"].as_str().unwrap()).collect::<Vec<_>>(), [&second, &first]);
    assert_eq!((&items[0]["tool"], &items[0]["arguments"]), (&json!("refund"), &json!({ "amount": 100 })));
    assert_eq!(items[0]["decision"]["arguments"], json!({ "amount": 50 }));
    assert_eq!((&items[1]["decision"]["verdict"], &items[1]["decision"]["by"]), (&json!("rejected"), &json!("ann")));
    assert_eq!(items[1]["decision"]["reason"], "too much");
    assert_eq!(list["capped"], false);
    let one = shop.get(&ann, "/api/v1/decisions?limit=1").await.json();
    assert_eq!((one["items"].as_array().unwrap().len(), &one["capped"]), (1, &json!(true)));
    let later = shop.get(&ann, "/api/v1/decisions?since=2200-01-01T00:00:00Z").await.json();
    assert_eq!(later["items"], json!([]));
}

#[tokio::test]
async fn decisions_of_the_runs_of_others_are_not_listed() {
    let shop = Shop::new();
    let ann = shop.token(Some("ann"), &[Scope::Read, Scope::Run, Scope::Decide]).await;
    let ben = shop.token(Some("ben"), &[Scope::Read]).await;
    decided(&shop, &ann, json!({ "approve": true })).await;

    assert_eq!(shop.get(&ben, "/api/v1/decisions").await.json()["items"], json!([]));
    let boss = shop.token(None, &[Scope::Read]).await;
    assert_eq!(shop.get(&boss, "/api/v1/decisions").await.json()["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn search_says_which_event_has_the_text() {
    let shop = Shop::new();
    let token = shop.token(None, &Scope::ALL).await;
    let (run, _) = shop.waiting_run(&token, 4711).await;
    let (other, _) = shop.waiting_run(&token, 12).await;

    let found = shop.get(&token, "/api/v1/runs?q=4711").await.json();

    assert_eq!(found["items"].as_array().unwrap().len(), 1, "{found}");
    let hit = &found["hits"][0];
    assert_eq!((&hit["run"], &hit["seq"], &hit["type"]), (&json!(run), &json!(0), &json!("BRAIN_START")));
    assert_eq!((&hit["field"], &hit["text"]), (&json!("number"), &json!("4711")));
    let by_id = shop.get(&token, &format!("/api/v1/runs?q={other}")).await.json();
    assert_eq!((by_id["items"].as_array().unwrap().len(), &by_id["hits"]), (1, &Value::Null));
}

#[tokio::test]
async fn search_prefers_the_call_with_the_text() {
    let shop = Shop::new();
    let token = shop.token(None, &Scope::ALL).await;
    // The options have the number as well, in an earlier event.
    let (run, _) = shop.waiting_run(&token, 100).await;

    let found = shop.get(&token, "/api/v1/runs?q=100").await.json();

    let hit = &found["hits"][0];
    assert_eq!((&hit["run"], &hit["type"]), (&json!(run), &json!("LOOP_TOOL_CALL")));
    assert_eq!((&hit["field"], &hit["text"]), (&json!("amount"), &json!("100")));
}

#[tokio::test]
async fn digits_are_not_found_in_the_times_of_events() {
    let shop = Shop::new();
    let token = shop.token(None, &Scope::ALL).await;
    let (run, _) = shop.waiting_run(&token, 7).await;
    let events = shop.client.events(&run, positronic_core::record::Seq(0)).await.unwrap();
    let at = events[0].at.0.to_string();

    let found = shop.get(&token, &format!("/api/v1/runs?q={}", &at[..9])).await.json();

    assert_eq!(found["items"], json!([]));
}

#[tokio::test]
async fn conversation_is_listed_with_the_message_of_its_last_run_without_secrets() {
    let shop = Shop::open(|runner| Options::builder().brains(runner).redact(redact_fields(["iban"])).build());
    let ann = shop.token(Some("ann"), &[Scope::Read, Scope::Run]).await;
    let text = format!("Pay {{\"iban\":\"DE02\"}} {}", "soon ".repeat(100));
    let said = json!({ "brain": "Refund", "options": { "number": 1 }, "text": text });
    let sent = shop.post(&ann, "/api/v1/conversations/chat-1/messages", said).await;
    assert_eq!(sent.status, StatusCode::CREATED, "{sent:?}");

    let list = shop.get(&ann, "/api/v1/conversations").await.json();

    let message = list["items"][0]["message"].as_str().unwrap();
    assert!(message.starts_with("Pay ") && message.contains(REDACTED) && !message.contains("DE02"), "{message}");
    assert_eq!(message.chars().count(), 200);
}
