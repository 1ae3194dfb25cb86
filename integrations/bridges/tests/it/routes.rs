//! The routes of the bridges are in the server's table: a caller needs their scopes and sees only its own runs.

use std::cell::RefCell;
use std::collections::HashSet;
use std::io;

use axum::http::StatusCode;
use positronic_bridges::Bridges;
use positronic_server::{Scope, openapi, openapi_with};
use serde_json::{Value, json};

use crate::errors::{decisions, sent};
use crate::support::{Shop, answer, input, said};

/// Lists the routes of the bridges: method, path and scopes.
fn listed() -> Vec<(String, String, Vec<Scope>)> {
    let (own, all) = (openapi(), openapi_with(&Bridges::builder().build().routes()));
    let mut routes = Vec::new();
    for (path, methods) in all["paths"].as_object().unwrap() {
        if own["paths"].get(path).is_none() {
            for (method, operation) in methods.as_object().unwrap() {
                let scopes = serde_json::from_value(operation["x-scopes"].clone()).unwrap();
                routes.push((method.to_uppercase(), path.clone(), scopes));
            }
        }
    }
    routes
}

#[test]
fn operations_have_names_that_generators_of_clients_can_use() {
    let document = openapi_with(&Bridges::builder().build().routes());
    let mut names = HashSet::new();

    for (path, methods) in document["paths"].as_object().unwrap() {
        for operation in methods.as_object().unwrap().values() {
            let name = operation["operationId"].as_str().unwrap().to_owned();
            assert!(name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_'), "{path}: {name}");
            assert!(names.insert(name), "{path}: {}", operation["operationId"]);
        }
    }
}

#[tokio::test]
async fn every_route_needs_a_caller_with_one_of_its_scopes() {
    let shop = Shop::new();
    let routes = listed();
    assert_eq!(routes.len(), 37, "{routes:?}");

    for (method, path, scopes) in routes {
        let at = filled(&path);
        let body = || (method != "GET").then(|| json!({}));
        let others: Vec<_> =
            Scope::ALL.into_iter().filter(|scope| !scopes.contains(scope) && *scope != Scope::Admin).collect();
        let too_small = shop.token(None, &others).await;

        let (stranger, _) = shop.send("", &method, &at, body()).await;
        let (wrong, _) = shop.send("pos_000000000000_wrong", &method, &at, body()).await;
        let (refused, text) = shop.send(&too_small, &method, &at, body()).await;

        assert_eq!((stranger, wrong), (StatusCode::UNAUTHORIZED, StatusCode::UNAUTHORIZED), "{method} {path}");
        assert_eq!(refused, StatusCode::FORBIDDEN, "{method} {path}");
        assert!(scopes.iter().all(|scope| text.contains(&format!("`{scope}`"))), "{method} {path}: {text}");
    }
}

/// Fills the parameters of a path.
fn filled(path: &str) -> String {
    let path = path.replace("{title}", "Refund").replace("{model}", "Refund").replace("{task}", "x:cancel");
    ["{chat}", "{response}", "{config}"].iter().fold(path, |path, name| path.replace(name, "x"))
}

#[tokio::test]
async fn every_route_counts_the_requests_of_its_caller() {
    let shop = Shop::limited();

    for (index, (method, path, _)) in listed().into_iter().enumerate() {
        let token = shop.token(Some(&format!("user {index}")), &Scope::ALL).await;
        let body = || (method != "GET").then(|| json!({}));

        let (first, _) = shop.send(&token, &method, &filled(&path), body()).await;
        let second = shop.send_with(&token, &method, &filled(&path), body(), &[]).await;

        assert_ne!(first, StatusCode::TOO_MANY_REQUESTS, "{method} {path}");
        assert_eq!(second.status(), StatusCode::TOO_MANY_REQUESTS, "{method} {path}");
        assert!(second.headers().contains_key("retry-after"), "{method} {path}");
    }
}

#[tokio::test]
async fn thread_of_another_user_does_not_exist() {
    let shop = Shop::new();
    let scopes = [Scope::Read, Scope::Run, Scope::Decide];
    let (ann, ben) = (shop.token(Some("ann"), &scopes).await, shop.token(Some("ben"), &scopes).await);
    let leg = shop.leg(&ann, "thread", said("pay")).await;
    let decision = answer(&leg, &json!({ "approved": true }));
    let message = json!({ "id": "x", "role": "user", "parts": [{ "type": "text", "text": "hello" }] });

    for (method, path, body) in [
        ("POST", "/api/v1/ag-ui/Refund", Some(input("thread", json!({})))),
        ("POST", "/api/v1/ag-ui/Refund", Some(input("thread", said("hello")))),
        ("POST", "/api/v1/ag-ui/Refund", Some(input("thread", decision.clone()))),
        ("POST", "/api/v1/ai-sdk/Refund", Some(json!({ "id": "thread", "messages": [message] }))),
        ("GET", "/api/v1/ai-sdk/Refund/thread/stream", None),
        ("GET", "/api/v1/ai-sdk/Refund/thread", None),
    ] {
        let (status, text) = shop.send(&ben, method, path, body).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}: {text}");
    }
    let leg = shop.leg(&ann, "thread", decision).await;
    assert_eq!(leg.last().unwrap()["outcome"]["type"], "success");
}

#[tokio::test]
async fn run_of_another_user_is_no_thread() {
    let shop = Shop::new();
    let scopes = [Scope::Read, Scope::Run, Scope::Decide];
    let (ann, ben) = (shop.token(Some("ann"), &scopes).await, shop.token(Some("ben"), &scopes).await);
    let (_, started) = shop.send(&ann, "POST", "/api/v1/runs", Some(json!({ "brain": "Refund" }))).await;
    let started: Value = serde_json::from_str(&started).unwrap();
    let run = started["id"].as_str().unwrap().to_owned();
    let part = json!({ "type": "text", "text": "hello" });
    let message = json!({ "id": "x", "role": "user", "parts": [part] });
    let task = json!({ "messageId": "m", "role": "ROLE_USER", "contextId": run, "parts": [{ "text": "hello" }] });
    let completion = json!({ "model": "Refund", "messages": [{ "role": "user", "content": "hello" }], "metadata": { "conversation": run } });

    for (path, body) in [
        ("ag-ui/Refund", input(&run, json!({}))),
        ("ag-ui/Refund", input(&run, said("hello"))),
        ("ai-sdk/Refund", json!({ "id": run, "messages": [message] })),
        ("a2a/Refund/message:send", json!({ "message": task })),
        ("openai/v1/chat/completions", completion),
    ] {
        let (status, text) = shop.send(&ben, "POST", &format!("/api/v1/{path}"), Some(body)).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}: {text}");
    }
    assert!(shop.client.conversations().runs(&run).await.unwrap().is_empty());
}

#[tokio::test]
async fn reader_can_attach_and_can_neither_speak_nor_decide() {
    let shop = Shop::new();
    let ann = shop.token(Some("ann"), &[Scope::Read, Scope::Run]).await;
    let reader = shop.token(None, &[Scope::Read]).await;
    let leg = shop.leg(&ann, "thread", said("pay")).await;
    let decision = answer(&leg, &json!({ "approved": true }));

    let (spoke, of_run) = shop.send(&reader, "POST", "/api/v1/ag-ui/Refund", Some(input("thread", said("more")))).await;
    let decided = shop.leg(&ann, "thread", decision).await;
    let attached = shop.leg(&reader, "thread", json!({})).await;

    assert!(spoke == StatusCode::FORBIDDEN && of_run.contains("`run`"), "{of_run}");
    let refused = decided.iter().find(|event| event["name"] == "positronic.refused").unwrap();
    assert_eq!(refused["value"]["code"], "scope-missing");
    assert_eq!(
        decided.last().unwrap()["outcome"]["interrupts"][0]["id"],
        refused["value"]["interruptId"],
        "it is open"
    );
    let interrupt = &attached.last().unwrap()["outcome"]["interrupts"][0];
    assert_eq!(interrupt["metadata"]["positronic"]["answerable"], false);
}

thread_local! {
    /// What this thread has logged. A subscriber of one thread alone would miss what another one has logged first.
    static LOGGED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

struct LogOfThread;

impl io::Write for LogOfThread {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        LOGGED.with_borrow_mut(|logged| logged.extend_from_slice(line));
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn refused_decisions_are_in_the_log_of_the_server() {
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(|| LogOfThread).finish();
    tracing::subscriber::set_global_default(subscriber).unwrap();
    let shop = Shop::new();
    let ann = shop.token(Some("ann"), &[Scope::Read, Scope::Run]).await;
    let leg = shop.leg(&ann, "thread", said("pay")).await;
    let question = leg.last().unwrap()["outcome"]["interrupts"][0]["id"].as_str().unwrap();

    for request in decisions("thread-0", question, true) {
        let bridge = request.bridge;
        sent(&shop, &ann, &request).await;
        let lines = String::from_utf8(LOGGED.take()).unwrap();

        let refused: Vec<_> = lines.lines().filter(|line| line.contains("refused decisions of a client")).collect();
        let [line] = refused[..] else { panic!("{bridge}: {lines}") };
        assert!(line.contains("run=thread-0") && line.contains(r#"by="ann" count=1"#), "{line}");
        assert!(line.contains(&format!(r#"first="{question} (scope-missing)""#)), "{line}");
    }

    // One line a request, however many answers it has.
    let decider = shop.token(Some("ann"), &[Scope::Read, Scope::Run, Scope::Decide]).await;
    let part = |id| json!({ "type": "dynamic-tool", "approval": { "id": format!("unknown-{id}"), "approved": true } });
    let parts: Vec<_> = (0..256).map(part).collect();
    let body = json!({ "id": "thread", "messages": [{ "id": "a", "role": "assistant", "parts": parts }] });
    LOGGED.take();
    shop.send(&decider, "POST", "/api/v1/ai-sdk/Refund", Some(body)).await;
    let lines = String::from_utf8(LOGGED.take()).unwrap();

    let refused: Vec<_> = lines.lines().filter(|line| line.contains("refused decisions of a client")).collect();
    let [line] = refused[..] else { panic!("{lines}") };
    assert!(line.contains("count=256") && line.contains("unknown-2 (unknown-call)"), "{line}");
    assert!(!line.contains("unknown-3 "), "{line}");
}

#[tokio::test]
async fn secrets_are_redacted_in_arguments_results_and_snapshots() {
    let shop = Shop::open(&Bridges::builder().build(), &["iban"]);
    let ann = shop.token(Some("ann"), &[Scope::Read, Scope::Run, Scope::Decide]).await;
    let first = shop.leg(&ann, "thread", said("pay")).await;
    let second = shop.leg(&ann, "thread", json!({})).await;
    let (_, chat) = shop.send(&ann, "GET", "/api/v1/ai-sdk/Refund/thread/stream", None).await;
    let (_, messages) = shop.send(&ann, "GET", "/api/v1/ai-sdk/Refund/thread", None).await;

    for text in [json!(first).to_string(), json!(second).to_string(), chat, messages] {
        assert!(text.contains("[redacted]") && !text.contains("DE02"), "{text}");
    }
    let form = &first.last().unwrap()["outcome"]["interrupts"][0]["responseSchema"]["properties"]["editedArgs"];
    assert_eq!(form["properties"]["iban"]["type"], "string", "the form still has the field");
    let decision = json!({ "approved": true, "editedArgs": { "amount": 3, "iban": "[redacted]" } });
    let third = shop.leg(&ann, "thread", answer(&first, &decision)).await;
    assert!(json!(third).to_string().contains("paid 3 to DE02"), "the log keeps the secret: {third:?}");
}

#[tokio::test]
async fn malformed_input_is_refused_with_its_place() {
    let shop = Shop::new();
    let ann = shop.token(Some("ann"), &[Scope::Read, Scope::Run, Scope::Decide]).await;
    let leg = shop.leg(&ann, "thread", said("pay")).await;
    let image = json!({ "messages": [{ "id": "x", "role": "user", "content": [{ "type": "image" }] }] });

    for (more, pointer) in [
        (answer(&leg, &json!({ "ok": true })), "/resume/0/payload/approved"),
        (answer(&leg, &json!({ "approved": false, "reason": 7 })), "/resume/0/payload/reason"),
        (image, "/messages/0/content"),
        (json!({ "resume": [{ "interruptId": "x", "status": "maybe" }] }), "/resume"),
        (json!({ "threadId": "" }), "/threadId"),
    ] {
        let (status, text) = shop.send(&ann, "POST", "/api/v1/ag-ui/Refund", Some(input("thread", more))).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{text}");
        assert!(text.lines().any(|line| line.starts_with(pointer)), "{text}");
    }
    let (status, _) = shop.send(&ann, "POST", "/api/v1/ag-ui/Refund", Some(input("none", json!({})))).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "a thread that has not begun does not begin by itself");
}
