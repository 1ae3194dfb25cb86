//! A brain that took the dialogue over talks to the person: every bridge shows what it says.

use axum::http::StatusCode;
use positronic_bridges::Bridges;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::store::MemoryStore;
use positronic_server::Scope;
use serde_json::{Value, json};

use crate::support::{Shop, said};

const ALL: [Scope; 3] = [Scope::Read, Scope::Run, Scope::Decide];

/// Opens a shop whose desk hands customers over to the brain for bills.
fn shop() -> Shop {
    let billing = brain("Billing")
        .description("Answers questions about bills")
        .r#loop("Talk", |cx| cx.system("You know all bills. Answer the customer."));
    let desk = brain("Refund").r#loop("Chat", move |cx| {
        let billing = billing.clone();
        cx.system("Hand over.").tool("billing", |t| t.brain(billing).handoff().stay())
    });
    let model = ScriptedModel::new([
        Reply::call("billing", json!({})),
        Reply::text("Which bill is wrong?"),
        Reply::text("You get 7 EUR back."),
    ]);
    Shop::of(Runner::new(model).store(MemoryStore::new()).brain(desk.build()), &Bridges::builder().build(), &["none"])
}

#[tokio::test]
async fn pages_show_what_the_brain_says_that_took_the_dialogue_over() {
    let shop = shop();
    let ann = shop.token(Some("ann"), &ALL).await;

    let leg = shop.leg(&ann, "thread", said("My bill is wrong.")).await;
    let part = json!({ "type": "text", "text": "B-7" });
    let message = json!({ "id": "thread", "messages": [{ "id": "m", "role": "user", "parts": [part] }] });
    let (status, chunks) = shop.send(&ann, "POST", "/api/v1/ai-sdk/Refund", Some(message)).await;
    let (_, loaded) = shop.send(&ann, "GET", "/api/v1/ai-sdk/Refund/thread", None).await;

    assert!(json!(leg).to_string().contains("Which bill is wrong?"), "{leg:?}");
    assert_eq!(status, StatusCode::OK);
    assert!(chunks.contains("You get 7 EUR back."), "{chunks}");
    let loaded: Vec<Value> = serde_json::from_str(&loaded).unwrap();
    let texts: Vec<_> = loaded.iter().flat_map(|message| message["parts"].as_array().unwrap()).collect();
    let texts: Vec<_> = texts.into_iter().filter_map(|part| part["text"].as_str()).collect();
    assert_eq!(texts, ["My bill is wrong.", "Which bill is wrong?", "B-7", "You get 7 EUR back."]);
}

#[tokio::test]
async fn callers_get_the_answer_of_the_brain_that_took_the_dialogue_over() {
    let shop = shop();
    let ann = shop.token(Some("ann"), &ALL).await;
    let body = json!({ "model": "Refund", "messages": [{ "role": "user", "content": "My bill is wrong." }] });
    let (_, chat) = shop.send(&ann, "POST", "/api/v1/openai/v1/chat/completions", Some(body)).await;
    let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "My bill is wrong." }] });
    let (_, task) =
        shop.send(&ann, "POST", "/api/v1/a2a/Refund/message:send", Some(json!({ "message": message }))).await;

    assert!(chat.contains(r#""content":"Which bill is wrong?""#), "{chat}");
    assert!(task.contains("You get 7 EUR back."), "{task}");
}
