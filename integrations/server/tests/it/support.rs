//! A shop with a router: runs that wait for a person, and callers with tokens.

use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, StatusCode};
use futures::StreamExt as _;
use positronic_core::dsl::Runnable;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{ModelRequest, RunId, Timestamp};
use positronic_core::runner::Client;
use positronic_core::store::MemoryStore;
use positronic_server::{Options, Scope, Token, router};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tower::ServiceExt as _;

/// The options of the brain `Refund`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Order {
    /// The order's number
    pub(crate) number: u32,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Amount {
    /// Euros
    amount: u32,
}

/// A brain that refunds 100 euros after an approval.
pub(crate) fn refund() -> Brain<Order, ()> {
    brain("Refund")
        .options::<Order>()
        .r#loop("Chat", |cx| {
            let pay = Tool::new("refund", |t| {
                t.description("Refunds money")
                    .requires_approval("it costs money")
                    .execute(async |Amount { amount }, _| Ok(format!("refunded {amount}")))
            });
            cx.system("You refund.").input(format!("Refund order {}.", cx.options.number)).tools([pay])
        })
        .build()
}

/// A model that calls the tool `refund` once.
pub(crate) fn refunding() -> ScriptedModel {
    ScriptedModel::from_fn(|request: &ModelRequest| match request.messages.len() {
        1 => Reply::call("refund", json!({ "amount": 100 })),
        _ => Reply::text("Done."),
    })
}

/// A router over a store in memory, with a runner that works.
pub(crate) struct Shop {
    pub(crate) client: Client,
    pub(crate) router: Router,
    /// It works as long as it exists.
    _runner: Runner,
}

/// An answer of the router.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Returns the slug of a problem document.
    #[track_caller]
    pub(crate) fn problem(&self) -> String {
        assert_eq!(self.header("content-type"), "application/problem+json", "{self:?}");
        let document = self.json();
        assert_eq!(document["status"], self.status.as_u16(), "{document}");
        document["type"].as_str().unwrap().trim_start_matches("/problems/").to_owned()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

impl Shop {
    pub(crate) fn new() -> Self {
        Self::open(|runner| Options::builder().brains(runner).build())
    }

    /// Opens a shop; `change` sets further options.
    pub(crate) fn open(change: impl FnOnce(Runner) -> Options) -> Self {
        Self::with(refunding(), refund(), change)
    }

    /// Opens a shop with another model and brain.
    pub(crate) fn with(model: ScriptedModel, brain: impl Runnable, change: impl FnOnce(Runner) -> Options) -> Self {
        Self::of(Runner::new(model).store(MemoryStore::new()).brain(brain), change)
    }

    /// Opens a shop with a runner.
    pub(crate) fn of(runner: Runner, change: impl FnOnce(Runner) -> Options) -> Self {
        let client = runner.client();
        Self { router: router(client.clone(), change(runner.clone())), client, _runner: runner }
    }

    /// Creates a token: of a user, or of a service that sees all runs.
    pub(crate) async fn token(&self, user: Option<&str>, scopes: &[Scope]) -> String {
        let token = Token::builder()
            .subject(user.unwrap_or("service"))
            .user(user.map(str::to_owned))
            .scopes(scopes)
            .created(Timestamp(0))
            .build();
        Token::create(&self.client, token).await.unwrap().1
    }

    /// Sends a request without a caller.
    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, usize::MAX).await.unwrap();
        Answer { status: parts.status, headers: parts.headers, text: String::from_utf8(bytes.to_vec()).unwrap() }
    }

    /// Sends a request with a token.
    pub(crate) async fn call(&self, token: &str, method: &str, path: &str, body: Option<Value>) -> Answer {
        self.send(request(token, method, path, body)).await
    }

    pub(crate) async fn get(&self, token: &str, path: &str) -> Answer {
        self.call(token, "GET", path, None).await
    }

    pub(crate) async fn post(&self, token: &str, path: &str, body: Value) -> Answer {
        self.call(token, "POST", path, Some(body)).await
    }

    /// Starts a run and waits until it waits for an approval. Returns its id and that of the pending item.
    pub(crate) async fn waiting_run(&self, token: &str, number: u32) -> (RunId, String) {
        let started =
            self.post(token, "/api/v1/runs", json!({ "brain": "Refund", "options": { "number": number } })).await;
        assert_eq!(started.status, StatusCode::CREATED, "{started:?}");
        let run = RunId::new(started.json()["id"].as_str().unwrap());
        let id = self.question(token, &run).await;
        (run, id)
    }

    /// Waits until a run waits, and returns the id of its pending item.
    pub(crate) async fn question(&self, token: &str, run: &RunId) -> String {
        let mut updates = self.client.follow(run, positronic_core::record::Seq(0));
        while let Some(update) = updates.next().await {
            if matches!(update.unwrap(), positronic_core::runner::RunUpdate::Settled(_)) {
                break;
            }
        }
        let pending = self.get(token, &format!("/api/v1/pending?run={run}")).await.json();
        pending["items"][0]["id"].as_str().unwrap_or_else(|| panic!("{pending}")).to_owned()
    }

    /// Waits until a run has ended.
    pub(crate) async fn end(&self, run: &RunId) {
        let mut updates = self.client.follow(run, positronic_core::record::Seq(0));
        while let Some(update) = updates.next().await {
            update.unwrap();
        }
    }

    /// Opens a stream of events and returns its body.
    pub(crate) async fn stream(&self, token: &str, path: &str, last: Option<&str>) -> (StatusCode, Frames) {
        let mut request = request(token, "GET", path, None);
        request.headers_mut().insert("accept", "text/event-stream".parse().unwrap());
        if let Some(last) = last {
            request.headers_mut().insert("last-event-id", last.parse().unwrap());
        }
        let response = self.router.clone().oneshot(request).await.unwrap();
        (response.status(), Frames::of(response))
    }

    /// Sends a request whose answer is a stream.
    pub(crate) async fn frames(&self, request: Request<Body>) -> Frames {
        Frames::of(self.router.clone().oneshot(request).await.unwrap())
    }
}

pub(crate) fn request(token: &str, method: &str, path: &str, body: Option<Value>) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(path).header("host", "127.0.0.1:4747");
    if !token.is_empty() {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    match body {
        Some(body) => request.header("content-type", "application/json").body(Body::from(body.to_string())).unwrap(),
        None => request.body(Body::empty()).unwrap(),
    }
}

/// The events of a stream.
pub(crate) struct Frames {
    body: axum::body::BodyDataStream,
    text: String,
}

/// A server-sent event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) id: Option<u64>,
    pub(crate) event: String,
    pub(crate) data: String,
}

impl Frames {
    fn of(response: axum::response::Response) -> Self {
        Self { body: response.into_body().into_data_stream(), text: String::new() }
    }

    /// Returns the next event; `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<Frame> {
        loop {
            while let Some((frame, rest)) = self.text.split_once("\n\n") {
                let frame = frame.to_owned();
                self.text = rest.to_owned();
                let field = |name: &str| {
                    frame.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ").map(str::to_owned))
                };
                if let Some(event) = field("event") {
                    let id = field("id").map(|id| id.parse().unwrap());
                    return Some(Frame { id, event, data: field("data").unwrap_or_default() });
                }
            }
            let chunk = tokio::time::timeout(Duration::from_secs(20), self.body.next()).await;
            let chunk = chunk.expect("the stream has another event")?;
            self.text.push_str(std::str::from_utf8(&chunk.unwrap()).unwrap());
        }
    }

    /// Waits for the end of the stream, however long it takes.
    pub(crate) async fn ended(&mut self) {
        while let Some(chunk) = self.body.next().await {
            chunk.unwrap();
        }
    }

    /// Returns all events up to the end of the stream.
    pub(crate) async fn all(mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        while let Some(frame) = self.next().await {
            frames.push(frame);
        }
        frames
    }
}
