//! The playground: a request of a log, sent again with changes and outside of the run.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::http::StatusCode;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::prices::PriceTable;
use positronic_core::record::{ModelError, ModelErrorKind, ModelRequest, RunId, Seq, ToolChoice, Usage};
use positronic_server::{Options, REDACTED, Scope, redact_fields};
use serde_json::{Value, json};

use crate::support::{Shop, request};

/// A model that says which request it got.
fn telling() -> ScriptedModel {
    ScriptedModel::from_fn(|request: &ModelRequest| {
        let (system, choice) = (&request.system, request.settings.tool_choice);
        if choice == ToolChoice::Required {
            return Reply::call("refund", json!({ "amount": 7 }));
        }
        let said: Vec<_> = request.messages.messages().iter().map(|message| json!(message).to_string()).collect();
        let model = request.settings.model.as_deref().unwrap_or("as before");
        Reply::text(format!("{system} | {} | {model}", said.join(" "))).usage(Usage {
            input: 100,
            output: 20,
            ..Usage::default()
        })
    })
}

fn prices() -> PriceTable {
    serde_json::from_value(json!({
        "as_of": "2026-11-01",
        "currency": "EUR",
        "prices": { "scripted/*": { "input": 10, "output": 100 } },
    }))
    .unwrap()
}

fn brain_of_greetings() -> Brain {
    brain("Greeter").r#loop("Chat", |cx| cx.system("Greet.").input("Hello, my iban is {\"iban\":\"DE02\"}.")).build()
}

fn shop() -> Shop {
    Shop::with(telling(), brain_of_greetings(), |runner| Options::builder().brains(runner).prices(prices()).build())
}

/// Starts a run, waits for its end, and returns it with the path of its only request.
async fn run_of(shop: &Shop, token: &str) -> (RunId, String) {
    let started = shop.post(token, "/api/v1/runs", json!({ "brain": "Greeter" })).await;
    assert_eq!(started.status, StatusCode::CREATED, "{started:?}");
    let run = RunId::new(started.json()["id"].as_str().unwrap());
    shop.end(&run).await;
    let list = shop.get(token, &format!("/api/v1/runs/{run}/requests")).await.json();
    let path = format!("/api/v1/runs/{run}/requests/{}", list["items"][0]["seq"]);
    (run, path)
}

async fn log(shop: &Shop, run: &RunId) -> usize {
    shop.client.events(run, Seq(0)).await.unwrap().len()
}

#[tokio::test]
async fn changed_request_is_sent_once_and_no_log_gets_it() {
    let shop = shop();
    let token = shop.token(None, &Scope::ALL).await;
    let (run, path) = run_of(&shop, &token).await;
    let before = log(&shop, &run).await;
    let recorded = shop.get(&token, &path).await.json();
    assert!(recorded["answer"]["text"].as_str().unwrap().starts_with("Greet. | "), "{recorded}");

    let mut messages = recorded["request"]["messages"].clone();
    messages[0]["text"] = json!("Good evening.");
    let changes = json!({ "system": "Be brief.", "messages": messages, "model": "other", "max_output_tokens": 50 });
    let sent = shop.post(&token, &format!("{path}/send"), changes).await;

    assert_eq!(sent.status, StatusCode::OK, "{sent:?}");
    let answer = sent.json()["answer"].clone();
    let text = answer["text"].as_str().unwrap();
    assert!(text.starts_with("Be brief. | ") && text.contains("Good evening.") && text.ends_with(" | other"), "{text}");
    assert_eq!(answer["cost"], json!({ "amount": "0.003", "currency": "EUR" }));
    assert_eq!(log(&shop, &run).await, before);
    let runs = shop.get(&token, "/api/v1/runs").await.json();
    assert_eq!(runs["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn request_without_changes_is_the_recorded_one() {
    let shop = shop();
    let token = shop.token(None, &Scope::ALL).await;
    let (_, path) = run_of(&shop, &token).await;

    let recorded = shop.get(&token, &path).await.json();
    let sent = shop.post(&token, &format!("{path}/send"), json!({})).await.json();

    assert_eq!(sent["answer"]["text"], recorded["answer"]["text"]);
    assert_eq!(sent["answer"]["usage"], recorded["answer"]["usage"]);
}

#[tokio::test]
async fn estimate_follows_from_the_recorded_tokens_and_the_prices() {
    let shop = shop();
    let token = shop.token(None, &Scope::ALL).await;
    let (_, path) = run_of(&shop, &token).await;
    let estimate = async |changes: Value| shop.post(&token, &format!("{path}/estimate"), changes).await.json();

    let same = estimate(json!({})).await;
    // 100 tokens at 10 and 20 at 100 a million.
    assert_eq!(
        (&same["input_tokens"], &same["output_tokens"], &same["from_record"]),
        (&json!(100), &json!(20), &json!(true))
    );
    assert_eq!(same["cost"], json!({ "amount": "0.003", "currency": "EUR" }));
    assert_eq!(same["as_of"], "2026-11-01");
    let longer = estimate(json!({ "system": "Greet. ".repeat(500), "max_output_tokens": 1000 })).await;
    assert!(longer["input_tokens"].as_u64().unwrap() > 500, "{longer}");
    assert!(longer["max_cost"]["amount"].as_str().unwrap() > "0.1", "{longer}");
    assert_eq!(same["model"], "scripted/scripted");
}

#[tokio::test]
async fn answer_streams_and_ends_with_its_cost() {
    let shop = shop();
    let token = shop.token(None, &Scope::ALL).await;
    let (_, path) = run_of(&shop, &token).await;

    let mut send = request(&token, "POST", &format!("{path}/send"), Some(json!({ "system": "One two three." })));
    send.headers_mut().insert("accept", "text/event-stream".parse().unwrap());
    let frames = shop.frames(send).await.all().await;

    let names: Vec<_> = frames.iter().map(|frame| frame.event.as_str()).collect();
    assert!(names.iter().filter(|name| **name == "delta").count() > 2, "{names:?}");
    assert_eq!(names[names.len() - 2..], ["answer", "end"]);
    let pieces = frames.iter().filter(|frame| frame.event == "delta");
    let streamed: String = pieces
        .map(|frame| serde_json::from_str::<Value>(&frame.data).unwrap()["text"].as_str().unwrap().to_owned())
        .collect();
    let whole: Value = serde_json::from_str(&frames[frames.len() - 2].data).unwrap();
    assert_eq!(streamed, whole["answer"]["text"].as_str().unwrap());
}

#[tokio::test]
async fn calls_of_an_answer_are_shown_and_do_not_run() {
    let shop = Shop::new();
    let token = shop.token(None, &Scope::ALL).await;
    let (run, _) = shop.waiting_run(&token, 7).await;
    let list = shop.get(&token, &format!("/api/v1/runs/{run}/requests")).await.json();
    let path = format!("/api/v1/runs/{run}/requests/{}", list["items"][0]["seq"]);
    let before = log(&shop, &run).await;

    let sent = shop.post(&token, &format!("{path}/send"), json!({ "tool_choice": "required" })).await.json();

    assert_eq!(sent["answer"]["calls"], json!([{ "tool": "refund", "arguments": { "amount": 100 } }]));
    assert_eq!(log(&shop, &run).await, before);
    let pending = shop.get(&token, "/api/v1/pending").await.json();
    assert_eq!(pending["items"].as_array().unwrap().len(), 1, "the run still has its own question only");
}

#[tokio::test]
async fn failure_of_the_model_is_an_answer_and_is_not_tried_again() {
    let failures = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&failures);
    let model = ScriptedModel::from_fn(move |request: &ModelRequest| {
        if &*request.system != "Fail." {
            return Reply::text("Hello.");
        }
        count.fetch_add(1, Ordering::Relaxed);
        Reply::error(ModelError::new(ModelErrorKind::RateLimited, "too many requests"))
    });
    let shop = Shop::with(model, brain_of_greetings(), |runner| Options::builder().brains(runner).build());
    let token = shop.token(None, &Scope::ALL).await;
    let (_, path) = run_of(&shop, &token).await;

    let sent = shop.post(&token, &format!("{path}/send"), json!({ "system": "Fail." })).await;

    assert_eq!(sent.status, StatusCode::OK);
    assert_eq!(sent.json()["error"]["kind"], "rate_limited");
    assert_eq!(sent.json()["answer"], Value::Null);
    assert_eq!(failures.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn invalid_changes_and_files_of_others_are_refused() {
    let shop = shop();
    let token = shop.token(None, &Scope::ALL).await;
    let (run, path) = run_of(&shop, &token).await;
    let hash = "0".repeat(64);
    let file = json!({ "uri": format!("blob:{hash}"), "sha256": hash, "name": "other.png", "media_type": "image/png", "size": 3 });

    for (changes, pointer) in [
        (json!({ "messages": [] }), "/messages"),
        (json!({ "messages": [{ "role": "user", "text": "a" }, { "role": "system", "text": "b" }] }), "/messages/1"),
        (json!({ "messages": [{ "role": "user", "text": "a", "files": [file] }] }), "/messages/0"),
        (json!({ "temperature": 3 }), "/temperature"),
        (json!({ "max_output_tokens": 0 }), "/max_output_tokens"),
    ] {
        let refused = shop.post(&token, &format!("{path}/send"), changes.clone()).await;
        assert_eq!(refused.problem(), "invalid-body", "{changes}");
        assert_eq!(refused.json()["errors"][0]["pointer"], pointer, "{changes}");
    }
    let start = shop.post(&token, &format!("/api/v1/runs/{run}/requests/0/send"), json!({})).await;
    assert_eq!(start.problem(), "beyond-head");
}

#[tokio::test]
async fn caller_without_the_brain_or_the_scope_sends_nothing() {
    let shop = Shop::with(telling(), brain_of_greetings(), |runner| {
        Options::builder()
            .brains(runner)
            .may_start(|caller: &positronic_server::Caller, _: &str| caller.subject() != "other")
            .build()
    });
    let token = shop.token(None, &Scope::ALL).await;
    let (_, path) = run_of(&shop, &token).await;

    let operator = shop.token(None, &[Scope::Read, Scope::Run, Scope::Decide, Scope::Operate]).await;
    assert_eq!(shop.post(&operator, &format!("{path}/send"), json!({})).await.problem(), "scope-missing");
    let other = shop.token(Some("other"), &[Scope::Playground, Scope::Operate]).await;
    for route in ["send", "estimate"] {
        assert_eq!(shop.post(&other, &format!("{path}/{route}"), json!({})).await.problem(), "not-allowed");
    }
}

#[tokio::test]
async fn model_gets_no_secret_that_the_caller_does_not_see() {
    let shop = Shop::with(telling(), brain_of_greetings(), |runner| {
        Options::builder().brains(runner).redact(redact_fields(["iban"])).build()
    });
    let token = shop.token(None, &Scope::ALL).await;
    let (_, path) = run_of(&shop, &token).await;

    let estimate = shop.post(&token, &format!("{path}/estimate"), json!({})).await.json();
    let mut send = request(&token, "POST", &format!("{path}/send"), Some(json!({ "system": "Spell the iban." })));
    send.headers_mut().insert("accept", "text/event-stream".parse().unwrap());
    let frames = shop.frames(send).await.all().await;

    assert_eq!(estimate["redacted"], true);
    let names: Vec<_> = frames.iter().map(|frame| frame.event.as_str()).collect();
    assert_eq!(names, ["answer", "end"], "a piece alone cannot be redacted");
    assert!(frames[0].data.contains(REDACTED) && !frames[0].data.contains("DE02"), "{frames:?}");
}
