//! Secrets that clients do not get.

use axum::http::StatusCode;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{ModelRequest, RunId};
use positronic_server::{Options, REDACTED, Scope, redact_fields};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::support::{Shop, request};

const SECRET: &str = "DE02120300000000202051";

#[derive(Debug, Deserialize, JsonSchema)]
struct Transfer {
    iban: String,
    amount: u32,
}

fn shop() -> Shop {
    let brain = brain("Refund").r#loop("Chat", |cx| {
        let pay = Tool::new("pay", |t| {
            t.description("Pays").requires_approval("it costs money").execute(async |Transfer { iban, amount }, cx| {
                assert_eq!(iban, SECRET);
                cx.progress(format!("pays {}", json!({ "iban": iban })));
                Ok(json!({ "iban": iban, "note": format!("paid {amount}") }))
            })
        });
        cx.system("You pay.").input("Pay.").tools([pay])
    });
    let model = ScriptedModel::from_fn(|request: &ModelRequest| match request.messages.len() {
        1 | 3 => Reply::call("pay", json!({ "iban": SECRET, "amount": 100 })),
        _ => Reply::text("Done."),
    });
    Shop::with(model, brain, |runner| Options::builder().brains(runner).redact(redact_fields(["iban"])).build())
}

/// Starts a run, which asks for an approval.
async fn started() -> (Shop, String, RunId) {
    let shop = shop();
    let token = shop.token(None, &Scope::ALL).await;
    let run = shop.post(&token, "/api/v1/runs", json!({ "brain": "Refund" })).await.json();
    let run = RunId::new(run["id"].as_str().unwrap());
    (shop, token, run)
}

#[tokio::test]
async fn errors_of_edited_arguments_quote_no_value() {
    let (shop, token, run) = started().await;
    let id = shop.question(&token, &run).await;
    let edited = json!({ "iban": REDACTED, "amount": "much" });

    let decision = json!({ "approve": true, "arguments": edited });
    let refused = shop.post(&token, &format!("/api/v1/runs/{run}/calls/{id}/decision"), decision).await;

    assert_eq!(refused.problem(), "arguments-invalid");
    let errors = refused.json()["errors"].clone();
    assert_eq!(errors, json!([{ "pointer": "/amount", "detail": "value is not of type \"integer\"" }]));
    assert!(!refused.text.contains(SECRET) && !refused.text.contains("much"), "{refused:?}");
}

#[tokio::test]
async fn edited_arguments_get_the_secrets_of_their_texts_back_once_per_key() {
    #[derive(Debug, Deserialize, JsonSchema)]
    struct Note {
        note: String,
    }
    let brain = brain("Refund").r#loop("Chat", |cx| {
        let remind = Tool::new("remind", |t| {
            t.description("Reminds").requires_approval("it calls").execute(async |Note { note }, _| Ok(note))
        });
        cx.system("You remind.").input("Remind.").tools([remind])
    });
    let note = |iban: &str, when: &str| format!("call api {{\"iban\":\"{iban}\"}} {when}");
    let model = ScriptedModel::from_fn(move |request: &ModelRequest| match request.messages.len() {
        1 => Reply::call("remind", json!({ "note": note(SECRET, "now") })),
        _ => Reply::text("Done."),
    });
    let shop =
        Shop::with(model, brain, |runner| Options::builder().brains(runner).redact(redact_fields(["iban"])).build());
    let token = shop.token(None, &Scope::ALL).await;
    let run = shop.post(&token, "/api/v1/runs", json!({ "brain": "Refund" })).await.json();
    let run = RunId::new(run["id"].as_str().unwrap());
    let id = shop.question(&token, &run).await;
    let decide = async |note: String| {
        let decision = json!({ "approve": true, "arguments": { "note": note } });
        let mut decision = request(&token, "POST", &format!("/api/v1/runs/{run}/calls/{id}/decision"), Some(decision));
        decision.headers_mut().insert("idempotency-key", "later".parse().unwrap());
        shop.send(decision).await
    };

    assert_eq!(decide(format!("{REDACTED} {}", note(REDACTED, "later"))).await.problem(), "unprocessable");
    let decided = decide(note(REDACTED, "later")).await;
    assert_eq!(decided.status, StatusCode::OK, "{decided:?}");
    shop.end(&run).await;
    let again = decide(note(REDACTED, "later")).await;
    assert_eq!((again.status, again.header("idempotency-replayed")), (StatusCode::OK, "true"), "{again:?}");
    assert_eq!(decide(note(REDACTED, "tomorrow")).await.problem(), "key-reused");

    let log = shop.client.events(&run, positronic_core::record::Seq(0)).await.unwrap();
    let log: Vec<_> = log.iter().map(|event| event.to_json().unwrap()).collect();
    assert!(log.iter().any(|event| event.contains("later") && event.contains(SECRET)), "{log:?}");
    assert!(log.iter().all(|event| !event.contains(REDACTED)), "{log:?}");
}

#[tokio::test]
async fn options_of_forks_and_schedules_get_their_secrets_back() {
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    struct Payee {
        iban: String,
        amount: u32,
    }
    let brain = brain("Print").options::<Payee>().step("Print", async |_| Ok(()));
    let model = ScriptedModel::from_fn(|_| Reply::text("Done."));
    let redacts = |runner| Options::builder().brains(runner).redact(redact_fields(["iban"])).build();
    let shop = Shop::with(model, brain, redacts);
    let token = shop.token(None, &Scope::ALL).await;
    let options = |iban: &str, amount: u32| json!({ "iban": iban, "amount": amount });

    let started = shop.post(&token, "/api/v1/runs", json!({ "brain": "Print", "options": options(SECRET, 1) })).await;
    let run = RunId::new(started.json()["id"].as_str().unwrap());
    shop.end(&run).await;
    let fork = json!({ "at": 0, "options": options(REDACTED, 2) });
    let fork = shop.post(&token, &format!("/api/v1/runs/{run}/fork"), fork).await;
    assert_eq!(fork.status, StatusCode::CREATED, "{fork:?}");
    let fork = RunId::new(fork.json()["id"].as_str().unwrap());
    let root = shop.client.state(&fork).await.unwrap().root.clone().unwrap();
    assert_eq!(*root.options, options(SECRET, 2));

    let base = format!("/api/v1/runs/{run}");
    let invalid = json!({ "iban": REDACTED, "amount": "much" });
    let refused = shop.post(&token, &format!("{base}/fork"), json!({ "at": 0, "options": invalid })).await;
    assert_eq!(refused.problem(), "options-invalid");
    let errors = refused.json()["errors"].clone();
    assert_eq!(errors, json!([{ "pointer": "/options/amount", "detail": "value is not of type \"integer\"" }]));
    assert!(!refused.text.contains(SECRET) && !refused.text.contains("much"), "{refused:?}");

    // A mark stands for no secret in the options of a new run.
    let new = json!({ "brain": "Print", "options": options(REDACTED, 1) });
    assert_eq!(shop.post(&token, "/api/v1/runs", new).await.problem(), "unprocessable");
    let message = json!({ "brain": "Print", "options": options(REDACTED, 1), "text": "Print." });
    let message = shop.post(&token, "/api/v1/conversations/c/messages", message).await;
    assert_eq!(message.problem(), "unprocessable");

    let path = "/api/v1/schedules/daily";
    let daily =
        |iban, amount| Some(json!({ "brain": "Print", "cron": ["0 9 * * *"], "options": options(iban, amount) }));
    let unknown = shop.call(&token, "PUT", path, daily(REDACTED, 1)).await;
    assert_eq!(unknown.status, StatusCode::UNPROCESSABLE_ENTITY, "{unknown:?}");
    for body in [daily(SECRET, 1), daily(REDACTED, 2)] {
        let set = shop.call(&token, "PUT", path, body).await;
        assert!(set.status.is_success() && !set.text.contains(SECRET), "{set:?}");
    }
    let record = shop.client.schedules().get("daily").await.unwrap().unwrap();
    assert_eq!(record.schedule.options, options(SECRET, 2));
}

#[tokio::test]
async fn no_route_and_no_stream_shows_a_secret() {
    let (shop, token, run) = started().await;
    let id = shop.question(&token, &run).await;
    let base = format!("/api/v1/runs/{run}");
    let waiting = shop.get(&token, &base).await;
    let decision = json!({ "approve": true, "arguments": { "iban": REDACTED, "amount": 50 } });
    let decided = shop.post(&token, &format!("{base}/calls/{id}/decision"), decision).await;
    assert_eq!(decided.status, StatusCode::OK, "{decided:?}");
    let mut answers = vec![waiting.text, decided.text];
    // The second call waits after the result of the first one.
    let second = shop.question(&token, &run).await;
    let pending = shop.get(&token, &format!("{base}/calls/{second}?context=3")).await;
    assert!(pending.json()["context"].to_string().contains("paid 50"), "{pending:?}");
    answers.extend([pending.text, shop.get(&token, "/api/v1/pending").await.text]);
    shop.post(&token, &format!("{base}/calls/{second}/decision"), json!({ "approve": true })).await;
    shop.end(&run).await;

    let requests = shop.get(&token, &format!("{base}/requests")).await.json();
    let seq = requests["items"][2]["seq"].as_u64().unwrap();
    for path in [
        base.clone(),
        format!("{base}/events"),
        format!("{base}/timeline"),
        format!("{base}/state"),
        format!("{base}/requests"),
        format!("{base}/requests/{seq}"),
        format!("/api/v1/diff?a={run}&b={run}"),
    ] {
        answers.push(shop.get(&token, &path).await.text);
    }
    let late = shop.post(&token, &format!("{base}/calls/{id}/decision"), json!({ "reject": true })).await;
    assert_eq!(late.problem(), "already-decided");
    answers.push(late.text);
    let mut lines = request(&token, "GET", &format!("{base}/events"), None);
    lines.headers_mut().insert("accept", "application/x-ndjson".parse().unwrap());
    answers.push(shop.send(lines).await.text);
    for path in ["events", "timeline"] {
        let (_, frames) = shop.stream(&token, &format!("{base}/{path}"), None).await;
        answers.push(frames.all().await.into_iter().map(|frame| frame.data).collect());
    }

    assert!(answers.iter().all(|text| !text.contains(SECRET)), "{answers:?}");
    assert!(answers.iter().filter(|text| text.contains(REDACTED)).count() >= 7, "{answers:?}");
    let log = shop.client.events(&run, positronic_core::record::Seq(0)).await.unwrap();
    let log: String = log.iter().map(|event| event.to_json().unwrap()).collect();
    assert!(log.contains("paid 50") && log.contains(SECRET), "the log has the secret, and the call ran with it: {log}");
}

#[tokio::test]
async fn texts_are_redacted_before_they_are_cut() {
    let long = json!({ "iban": SECRET, "note": "long ".repeat(1000) }).to_string();
    let said = long.clone();
    let brain = brain("Refund").r#loop("Chat", move |cx| {
        let pay = Tool::new("pay", |t| {
            t.description("Pays")
                .requires_approval("it costs money")
                .execute(async |Transfer { amount, .. }, _| Ok(amount))
        });
        cx.system("You pay.").input(said.clone()).tools([pay])
    });
    let model = ScriptedModel::from_fn(move |request: &ModelRequest| match request.messages.len() {
        1 => Reply::call("pay", json!({ "iban": SECRET, "amount": 100 })).and_text(long.clone()),
        _ => Reply::text("Done."),
    });
    let shop =
        Shop::with(model, brain, |runner| Options::builder().brains(runner).redact(redact_fields(["iban"])).build());
    let token = shop.token(None, &Scope::ALL).await;
    let run = shop.post(&token, "/api/v1/runs", json!({ "brain": "Refund" })).await.json();
    let run = RunId::new(run["id"].as_str().unwrap());
    let id = shop.question(&token, &run).await;

    let pending = shop.get(&token, &format!("/api/v1/runs/{run}/calls/{id}?context=3")).await;
    let diff = shop.get(&token, &format!("/api/v1/diff?a={run}&b={run}")).await;

    let kinds: Vec<_> =
        pending.json()["context"].as_array().unwrap().iter().map(|entry| entry["kind"].clone()).collect();
    assert_eq!(kinds, ["user", "assistant"]);
    assert_eq!(pending.json().get("input"), None, "one line cannot be redacted");
    for answer in [pending, diff] {
        assert!(answer.text.contains("long long") && answer.text.contains(REDACTED), "{answer:?}");
        assert!(!answer.text.contains(SECRET), "{answer:?}");
    }
}

#[tokio::test]
async fn pieces_of_answers_come_without_their_text() {
    let (shop, token, run) = started().await;
    let first = shop.question(&token, &run).await;
    let base = format!("/api/v1/runs/{run}");
    let mut streams = Vec::new();
    for path in ["events", "timeline"] {
        let (_, mut frames) = shop.stream(&token, &format!("{base}/{path}"), None).await;
        while frames.next().await.unwrap().event != "settled" {}
        streams.push(frames);
    }

    let decided = shop.post(&token, &format!("{base}/calls/{first}/decision"), json!({ "approve": true })).await;
    assert_eq!(decided.status, StatusCode::OK, "{decided:?}");

    for mut frames in streams {
        let (mut pieces, mut progress) = (Vec::new(), Vec::new());
        loop {
            let frame = frames.next().await.unwrap();
            assert!(!frame.data.contains(SECRET), "{frame:?}");
            match &*frame.event {
                "settled" => break,
                "delta" => {
                    let delta: serde_json::Value = serde_json::from_str(&frame.data).unwrap();
                    if delta["kind"] == "progress" { progress.push(delta["text"].clone()) } else { pieces.push(delta) }
                }
                _ => {}
            }
        }
        assert_eq!(progress, ["pays {\"iban\":\"[redacted]\"}"]);
        assert!(pieces.iter().any(|delta| delta["kind"] == "arguments" && delta["tool"] == "pay"), "{pieces:?}");
        assert!(pieces.iter().all(|delta| delta["text"] == ""), "{pieces:?}");
    }
}

#[tokio::test]
async fn downloads_stay_as_they_are() {
    use base64::Engine as _;

    let shop = shop();
    let token = shop.token(None, &Scope::ALL).await;
    let file = json!({ "iban": SECRET }).to_string();
    let base64 = base64::engine::general_purpose::STANDARD.encode(&file);
    let files = json!([{ "name": "a.json", "media_type": "application/json", "base64": base64 }]);
    let said = json!({ "brain": "Refund", "text": "See.", "files": files });
    let run = shop.post(&token, "/api/v1/conversations/c/messages", said).await.json();
    let base = format!("/api/v1/runs/{}/files", run["id"].as_str().unwrap());

    let listed = shop.get(&token, &base).await.json();
    let download = shop.get(&token, &format!("{base}/{}", listed["items"][0]["sha256"].as_str().unwrap())).await;

    assert_eq!((&download.text, download.header("content-type")), (&file, "application/json"));
}

#[tokio::test]
async fn each_answer_and_event_is_redacted_once() {
    let count = |value: &mut serde_json::Value| value["times"] = json!(value["times"].as_u64().unwrap_or_default() + 1);
    let shop = Shop::open(|runner| Options::builder().brains(runner).redact(count).build());
    let token = shop.token(None, &Scope::ALL).await;
    let (run, id) = shop.waiting_run(&token, 7).await;
    let base = format!("/api/v1/runs/{run}");
    assert_eq!(shop.get(&token, &base).await.json()["times"], 1);
    shop.post(&token, &format!("{base}/calls/{id}/decision"), json!({ "approve": true })).await;
    shop.end(&run).await;

    let list = shop.get(&token, &format!("{base}/events")).await.json();
    let mut lines = request(&token, "GET", &format!("{base}/events"), None);
    lines.headers_mut().insert("accept", "application/x-ndjson".parse().unwrap());
    let lines = shop.send(lines).await.text;
    let (_, frames) = shop.stream(&token, &format!("{base}/events"), None).await;

    let mut events = list["items"].as_array().unwrap().clone();
    events.extend(lines.lines().map(|line| serde_json::from_str(line).unwrap()));
    events.extend(frames.all().await.iter().map(|frame| serde_json::from_str(&frame.data).unwrap()));
    assert!(events.len() > 30 && events.iter().all(|event| event["times"] == 1), "{events:?}");
}

#[tokio::test]
async fn changes_of_a_state_do_not_show_a_secret() {
    #[derive(Debug, Clone, Default, serde::Serialize, Deserialize, JsonSchema)]
    struct Account {
        name: String,
        note: String,
        iban: String,
    }
    let long = "Long enough that the log has the change and not the whole state.";
    let brain = brain("Refund")
        .step("Begin", async |_| Ok(Account { name: "Ann".to_owned(), note: long.to_owned(), iban: String::new() }))
        .step("Find", async |cx| Ok(Account { iban: SECRET.to_owned(), ..cx.state.clone() }));
    let shop = Shop::with(ScriptedModel::new([]), brain, |runner| {
        Options::builder().brains(runner).redact(redact_fields(["iban"])).build()
    });
    let token = shop.token(None, &Scope::ALL).await;
    let start = async || {
        let run = shop.post(&token, "/api/v1/runs", json!({ "brain": "Refund" })).await.json();
        let run = RunId::new(run["id"].as_str().unwrap_or_else(|| panic!("{run}")));
        shop.end(&run).await;
        run
    };
    let (run, other) = (start().await, start().await);
    let base = format!("/api/v1/runs/{run}");
    let log = shop.client.events(&run, positronic_core::record::Seq(0)).await.unwrap();

    let mut answers = vec![
        shop.get(&token, &format!("{base}/events")).await.text,
        shop.get(&token, &format!("{base}/timeline")).await.text,
        shop.get(&token, &format!("/api/v1/diff?a={run}&b={other}")).await.text,
    ];
    for seq in 0..log.len() {
        answers.push(shop.get(&token, &format!("{base}/state?at={seq}&since=0")).await.text);
        answers.push(shop.get(&token, &format!("{base}/state?at={seq}")).await.text);
    }

    let log: String = log.iter().map(|event| event.to_json().unwrap()).collect();
    assert!(log.contains("/iban") && log.contains(SECRET), "{log}");
    assert!(answers.iter().all(|text| !text.contains(SECRET)), "{answers:?}");
}

#[tokio::test]
async fn search_does_not_find_a_secret() {
    let (shop, token, run) = started().await;
    shop.question(&token, &run).await;

    for (text, found) in [("it%20costs%20money", 1), ("DE021203", 0), ("iban:DE021203", 0)] {
        let runs = shop.get(&token, &format!("/api/v1/runs?q={text}")).await.json();
        let events = shop.get(&token, &format!("/api/v1/runs/{run}/events?q={text}")).await.json();
        assert_eq!(runs["items"].as_array().unwrap().len(), found, "{text}");
        assert!(runs["items"].as_array().unwrap().iter().all(|run| run["input"].is_null()), "{runs}");
        assert_eq!(events["items"].as_array().unwrap().is_empty(), found == 0, "{text}");
    }
}
