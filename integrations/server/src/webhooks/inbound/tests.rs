//! Inbound webhooks, from the route to the run.

mod starts;

use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::RunId;
use positronic_core::runner::{RunHandle, Settled};
use positronic_core::store::MemoryStore;
use positronic_core::store::prelude::*;
use positronic_core::testing::TestClock;
use serde::Deserialize;
use serde_json::json;
use tower::ServiceExt as _;

use super::*;
use crate::webhooks::signature::sign;
use crate::webhooks::{GitHub, Slack, StandardWebhooks, WebhookSecret};
use crate::{Options, router};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const NOW: i64 = TestClock::BEGIN.0 / 1_000_000;

#[derive(Deserialize, JsonSchema)]
struct Answer {
    #[serde(rename = "text")]
    _text: String,
}

fn asking() -> Brain<(), ()> {
    brain("Asking")
        .r#loop("Work", |cx| {
            cx.system("").input("Ask.").tool("ask", |t| {
                t.wait(|_: &NoArgs, _| [webhook::<Answer>("orders").on("T-1").resume(|_: &mut (), _| {})])
                    .execute(async |_: NoArgs, _| Ok("asked"))
            })
        })
        .build()
}

struct Bench {
    runner: Runner,
    store: MemoryStore,
}

impl Bench {
    fn new() -> Self {
        let says = |request: &positronic_core::record::ModelRequest| match request.path.as_str() {
            "Work/0" => Reply::call("ask", json!({})),
            _ => Reply::text("Done."),
        };
        let store = MemoryStore::new();
        let runner = Runner::new(ScriptedModel::from_fn(says)).store(store.clone());
        Self { runner: runner.clock(TestClock::default()).linger(Duration::ZERO), store }
    }

    fn router(&self) -> Router {
        let hooks = Hooks::default()
            .add("orders", StandardWebhooks::new(SECRET).unwrap())
            .add("events", Hook::new(StandardWebhooks::new(SECRET).unwrap()).identifier_pointer("/order/id"))
            .add("header", Hook::unsigned().identifier_header(HeaderName::from_static("x-order")))
            .add("github", Hook::new(GitHub::new("It's a Secret to Everybody").unwrap()).identifier(|_| None))
            .add("slack", Hook::new(Slack::new("8f742231b10e8888abcd99yyyzzz85a5").unwrap()).identifier_pointer("/t"));
        router(self.runner.client(), Options::builder().hooks(hooks).max_body_bytes(1000).build())
    }

    async fn waiting(&self) -> RunHandle<()> {
        let run = self.runner.start(asking(), ()).await.unwrap();
        assert!(matches!(run.settled().await, Settled::Waiting(_)));
        run
    }

    /// Sends a request, and returns the status and the body.
    async fn send(&self, path: &str, headers: &[(&str, &str)], body: &str) -> (StatusCode, String) {
        let mut request = Request::post(path).header("host", "localhost").header("x-request-id", "r-1");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = self.router().oneshot(request.body(Body::from(body.to_owned())).unwrap()).await.unwrap();
        let status = response.status();
        let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (status, String::from_utf8(bytes.to_vec()).unwrap())
    }

    /// Sends a request of Standard Webhooks.
    async fn signed(&self, path: &str, id: &str, body: &str) -> (StatusCode, String) {
        let seconds = NOW.to_string();
        let signature = sign(&[WebhookSecret::parse(SECRET).unwrap()], id, &seconds, body.as_bytes());
        let headers = [("webhook-id", id), ("webhook-timestamp", &seconds), ("webhook-signature", &signature)];
        self.send(path, &headers, body).await
    }

    async fn resumes(&self, run: &RunId) -> usize {
        let events = self.runner.client().events(run, positronic_core::record::Seq(0)).await.unwrap();
        events.iter().filter(|event| event.kind.name() == "LOOP_RESUME").count()
    }
}

const ORDERS: &str = "/api/v1/hooks/orders/T-1";
const OK: &str = r#"{"text":"It leaks."}"#;

#[tokio::test(start_paused = true)]
async fn signed_webhook_answers_the_waiting_run_once() {
    let bench = Bench::new();
    let run = bench.waiting().await;

    for _ in 0..3 {
        let (status, body) = bench.signed(ORDERS, "msg_1", OK).await;
        assert_eq!((status, body.as_str()), (StatusCode::ACCEPTED, r#"{"accepted":"matched"}"#));
    }

    run.result().await.unwrap();
    assert_eq!(bench.resumes(run.id()).await, 1);
    let events = bench.runner.client().events(run.id(), positronic_core::record::Seq(0)).await.unwrap();
    let resumed = events.iter().find(|event| event.kind.name() == "LOOP_RESUME").unwrap();
    let resumed = resumed.kind.to_value();
    assert_eq!(
        (&resumed["signal"], &resumed["actor"]),
        (&json!("orders:msg_1"), &json!({ "by": "orders", "channel": "webhook" }))
    );
}

#[tokio::test(start_paused = true)]
async fn early_webhook_is_kept_and_a_repetition_is_not_kept_twice() {
    let bench = Bench::new();
    for _ in 0..2 {
        let (status, body) = bench.signed(ORDERS, "msg_1", OK).await;
        assert_eq!((status, body.as_str()), (StatusCode::ACCEPTED, r#"{"accepted":"kept"}"#));
    }
    assert_eq!(bench.store.mailbox().await.unwrap().len(), 1);

    let run = bench.runner.start(asking(), ()).await.unwrap();
    run.result().await.unwrap();

    assert_eq!(bench.signed(ORDERS, "msg_1", OK).await.1, r#"{"accepted":"matched"}"#);
    assert_eq!(bench.resumes(run.id()).await, 1);
}

#[tokio::test(start_paused = true)]
async fn unknown_names_and_wrong_signatures_get_the_same_answer() {
    let bench = Bench::new();
    let run = bench.waiting().await;
    let (_, unknown) = bench.signed("/api/v1/hooks/nothing/T-1", "msg_1", OK).await;
    let seconds = NOW.to_string();
    let wrong = [("webhook-id", "msg_1"), ("webhook-timestamp", seconds.as_str()), ("webhook-signature", "v1,AAAA")];
    for (status, body) in [
        bench.signed("/api/v1/hooks/nothing", "msg_1", OK).await,
        bench.send(ORDERS, &wrong, OK).await,
        bench.send(ORDERS, &[], OK).await,
        // The identifier of this webhook is in its payload.
        bench.signed("/api/v1/hooks/events/T-1", "msg_1", r#"{"order":{"id":"T-1"}}"#).await,
    ] {
        assert_eq!((status, &body), (StatusCode::UNAUTHORIZED, &unknown));
    }
    assert!(unknown.contains("/problems/bad-signature"), "{unknown}");
    assert_eq!(bench.resumes(run.id()).await, 0);
    assert!(bench.store.mailbox().await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn old_requests_are_refused_by_the_clock_of_the_runner() {
    let bench = Bench::new();
    tokio::time::sleep(Duration::from_secs(301)).await;
    let (status, _) = bench.signed(ORDERS, "msg_1", OK).await;
    // The test clock begins with its first reading.
    assert_eq!(status, StatusCode::ACCEPTED);

    tokio::time::sleep(Duration::from_secs(301)).await;

    assert_eq!(bench.signed(ORDERS, "msg_1", OK).await.0, StatusCode::UNAUTHORIZED);
}

#[tokio::test(start_paused = true)]
async fn unusable_payloads_are_refused_and_not_kept() {
    let bench = Bench::new();
    let run = bench.waiting().await;
    for (path, body, detail) in [
        (ORDERS, "{", "the body is not JSON: EOF while parsing an object at line 1 column 1"),
        (ORDERS, r#"{"text":1}"#, "1 is not of type"),
        ("/api/v1/hooks/orders", OK, "the identifier at the end of the URL's path is missing"),
        ("/api/v1/hooks/events", OK, "the identifier at `/order/id` of the payload is missing"),
        ("/api/v1/hooks/orders/T-1%00", OK, "the identifier has a control character or an invisible character"),
        ("/api/v1/hooks/events", r#"{"order":{"id":"T-1\u0000"}}"#, "the identifier has a control character"),
        ("/api/v1/hooks/events", r#"{"order":{"id":"T-1\u202e"}}"#, "the identifier has a control character"),
    ] {
        let (status, answer) = bench.signed(path, "msg_1", body).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{answer}");
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(answer["type"], "/problems/payload-invalid");
        assert!(answer["detail"].as_str().unwrap().contains(detail), "{answer}");
    }
    let (status, _) = bench.signed(ORDERS, "msg_1", &format!(r#"{{"text":"{}"}}"#, "x".repeat(1000))).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
    let (status, _) = bench.signed(ORDERS, &"m".repeat(513), OK).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);

    assert!(bench.store.mailbox().await.unwrap().is_empty());
    assert_eq!(bench.resumes(run.id()).await, 0);
    assert_eq!(bench.signed(ORDERS, "msg_1", OK).await.0, StatusCode::ACCEPTED, "the sender may correct it");
}

#[tokio::test(start_paused = true)]
async fn ids_of_different_webhooks_do_not_meet() {
    let bench = Bench::new();
    let run = bench.waiting().await;

    let kept = bench.signed("/api/v1/hooks/events", "msg_1", r#"{"order":{"id":7}}"#).await;
    let unsigned = bench.send("/api/v1/hooks/header", &[("x-order", "T-1"), ("webhook-id", "msg_1")], OK).await;
    let matched = bench.signed(ORDERS, "msg_1", OK).await;

    assert_eq!(kept.1, r#"{"accepted":"kept"}"#);
    assert_eq!(unsigned.1, r#"{"accepted":"kept"}"#);
    assert_eq!(matched.1, r#"{"accepted":"matched"}"#);
    let mailbox = bench.store.mailbox().await.unwrap();
    let kept: Vec<_> = mailbox.iter().map(|it| (it.id.as_str(), it.identifier.as_str())).collect();
    assert!(kept.contains(&("events:msg_1", "7")) && kept.contains(&("header:msg_1", "T-1")), "{kept:?}");
    run.result().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn requests_that_are_not_deliveries_are_answered() {
    let bench = Bench::new();
    _ = bench.runner.client().now();
    let digest = |body: &str| {
        let slack = "8f742231b10e8888abcd99yyyzzz85a5".as_bytes();
        use hmac::Mac as _;
        let mut mac = hmac::Hmac::<sha2::Sha256>::new_from_slice(slack).unwrap();
        mac.update(format!("v0:{NOW}:{body}").as_bytes());
        mac.finalize().into_bytes().iter().fold("v0=".to_owned(), |text, byte| format!("{text}{byte:02x}"))
    };
    let now = NOW.to_string();
    let slack = async |body: &str| {
        let headers = [("x-slack-request-timestamp", now.as_str()), ("x-slack-signature", &digest(body))];
        bench.send("/api/v1/hooks/slack", &headers, body).await
    };

    let check = slack(r#"{"type":"url_verification","challenge":"3eZbrw1aB"}"#).await;
    let event = slack(r#"{"type":"event_callback","event_id":"Ev1","t":"17.4"}"#).await;

    assert_eq!(check, (StatusCode::OK, "3eZbrw1aB".to_owned()));
    assert_eq!(event, (StatusCode::OK, String::new()), "Slack expects an empty answer");
    assert_eq!(bench.store.mailbox().await.unwrap().len(), 1);
    let ping = [
        ("x-hub-signature-256", "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"),
        ("x-github-event", "ping"),
    ];
    assert_eq!(bench.send("/api/v1/hooks/github", &ping, "Hello, World!").await.0, StatusCode::UNPROCESSABLE_ENTITY);
}
