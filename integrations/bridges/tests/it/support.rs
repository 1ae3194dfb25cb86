//! A shop with the routes of the bridges, and callers with tokens.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use axum::response::Response;
use positronic_bridges::Bridges;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{Message, ModelRequest, Timestamp};
use positronic_core::runner::Client;
use positronic_core::store::MemoryStore;
use positronic_server::{DeciderPolicy, DeciderRule, Options, Scope, Shutdown, Token, redact_fields, router};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tower::ServiceExt as _;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Till {
    refunded: u32,
    secret: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Payment {
    /// Euros
    amount: u32,
    iban: String,
}

/// A brain that refunds money after an approval.
fn refund() -> Brain<(), Till> {
    brain("Refund")
        .state(Till { refunded: 0, secret: "only the server knows".to_owned() })
        .r#loop("Chat", |cx| {
            cx.system("You refund.").tool("pay", |t| {
                t.description("Pays").requires_approval("it costs money").execute(
                    async |Payment { amount, iban }, cx| {
                        cx.update(move |till| till.refunded += amount);
                        Ok(format!("paid {amount} to {iban}"))
                    },
                )
            })
        })
        .build()
}

fn reply(request: &ModelRequest) -> Reply {
    match request.messages.messages().pop() {
        Some(Message::User { text, .. }) if text == "pay" => {
            Reply::call("pay", json!({ "amount": 7, "iban": "DE02" })).and_text("I pay.")
        }
        Some(Message::User { text, .. }) => Reply::text(format!("You said {text}.")),
        _ => Reply::text("Done."),
    }
}

/// A router over a store in memory, with a runner that works.
pub(crate) struct Shop {
    pub(crate) client: Client,
    router: Router,
    /// It works as long as it exists.
    pub(crate) runner: Runner,
}

impl Shop {
    pub(crate) fn new() -> Self {
        Self::open(&Bridges::builder().build(), &[])
    }

    /// Opens a shop whose answers leave out the values of some fields. With such a field, texts are sent only as a whole.
    pub(crate) fn open(bridges: &Bridges, redacted: &[&str]) -> Self {
        Self::of(Self::worker(), bridges, redacted)
    }

    /// Opens a shop with other brains.
    pub(crate) fn of(runner: Runner, bridges: &Bridges, redacted: &[&str]) -> Self {
        let options = Options::builder().brains(runner.clone()).routes(bridges.routes());
        let options = match redacted {
            [] => options.build(),
            fields => options.redact(redact_fields(fields.iter().copied())).build(),
        };
        Self::with(runner, options)
    }

    /// Opens a shop that clients reach under a public URL.
    pub(crate) fn published(url: &str) -> Self {
        let runner = Self::worker();
        let options = Options::builder().brains(runner.clone()).routes(Bridges::builder().build().routes());
        Self::with(runner, options.public_url(url.parse().unwrap()).build())
    }

    /// Opens a shop that takes one request of each caller a minute.
    pub(crate) fn limited() -> Self {
        let runner = Self::worker();
        let options = Options::builder().brains(runner.clone()).routes(Bridges::builder().build().routes());
        Self::with(runner, options.requests_per_minute(1).build())
    }

    /// Opens a shop with other brains that a shutdown stops.
    pub(crate) fn stopped_by(runner: Runner, shutdown: Shutdown) -> Self {
        let options = Options::builder().brains(runner.clone()).routes(Bridges::builder().build().routes());
        Self::with(runner, options.shutdown(shutdown).build())
    }

    /// Opens a shop in which a run is decided by others than its starter.
    pub(crate) fn of_four_eyes() -> Self {
        let runner = Self::worker();
        let options = Options::builder().brains(runner.clone()).routes(Bridges::builder().build().routes());
        let deciders = DeciderPolicy::from_iter([DeciderRule::not_the_starter()]);
        Self::with(runner, options.deciders(deciders).build())
    }

    fn worker() -> Runner {
        Runner::new(ScriptedModel::from_fn(reply)).store(MemoryStore::new()).brain(refund())
    }

    fn with(runner: Runner, options: Options) -> Self {
        let client = runner.client();
        Self { router: router(client.clone(), options), client, runner }
    }

    /// Nests the routes in a service of its own, at a path.
    pub(crate) fn nested(self, at: &str) -> Self {
        Self { router: Router::new().nest(at, self.router), ..self }
    }

    /// Creates a token: of a user, or of a service that sees all runs.
    pub(crate) async fn token(&self, user: Option<&str>, scopes: &[Scope]) -> String {
        let token = Token::builder().subject(user.unwrap_or("service")).user(user.map(str::to_owned)).scopes(scopes);
        Token::create(&self.client, token.created(Timestamp(0)).build()).await.unwrap().1
    }

    /// Serves the shop on a port of this machine, and returns its address.
    pub(crate) async fn listen(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let router = self.router.clone();
        tokio::spawn(async move { axum::serve(listener, router).await });
        address
    }

    /// Sends a request, and returns its status and its whole answer.
    pub(crate) async fn send(
        &self,
        token: &str,
        method: &str,
        path: &str,
        body: Option<Value>,
    ) -> (StatusCode, String) {
        let response = self.send_with(token, method, path, body, &[]).await;
        let status = response.status();
        let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (status, String::from_utf8(bytes.to_vec()).unwrap())
    }

    /// Sends a request with further headers.
    pub(crate) async fn send_with(
        &self,
        token: &str,
        method: &str,
        path: &str,
        body: Option<Value>,
        headers: &[(&str, &str)],
    ) -> Response {
        let mut request = Request::builder().method(method).uri(path).header("host", "127.0.0.1:4747");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if !token.is_empty() {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let request = match body {
            // A text is a body as it is, also one that is not JSON.
            Some(Value::String(text)) => request.header("content-type", "application/json").body(Body::from(text)),
            Some(body) => request.header("content-type", "application/json").body(Body::from(body.to_string())),
            None => request.body(Body::empty()),
        };
        self.router.clone().oneshot(request.unwrap()).await.unwrap()
    }

    /// Runs a leg of AG-UI, and returns its events.
    pub(crate) async fn leg(&self, token: &str, thread: &str, more: Value) -> Vec<Value> {
        let (status, text) = self.send(token, "POST", "/api/v1/ag-ui/Refund", Some(input(thread, more))).await;
        assert_eq!(status, StatusCode::OK, "{text}");
        text.lines()
            .filter_map(|line| line.strip_prefix("data: "))
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

/// Returns the input of a leg.
pub(crate) fn input(thread: &str, more: Value) -> Value {
    let mut input = json!({ "threadId": thread, "runId": "leg", "messages": [], "tools": [], "context": [] });
    let Value::Object(more) = more else { return input };
    input.as_object_mut().unwrap().extend(more);
    input
}

/// Returns a user's message as a part of an input.
pub(crate) fn said(text: &str) -> Value {
    json!({ "messages": [{ "id": format!("m-{text}"), "role": "user", "content": text }] })
}

/// Returns the answer to the first interrupt at the end of a leg.
pub(crate) fn answer(leg: &[Value], payload: &Value) -> Value {
    let id = &leg.last().unwrap()["outcome"]["interrupts"][0]["id"];
    json!({ "resume": [{ "interruptId": id, "status": "resolved", "payload": payload }] })
}

/// Returns the types of events.
pub(crate) fn types(leg: &[Value]) -> Vec<&str> {
    leg.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

/// A runner whose brain waits for a program.
pub(crate) fn waiting_order() -> Runner {
    let order = brain("Order").r#loop("Chat", |cx| {
        cx.system("Order.").tool("confirm", |t| {
            t.description("Waits for the shop")
                .wait(|_: &NoArgs, _| [webhook::<String>("shop").on("order 7")])
                .execute(async |_, _| Ok("sent"))
        })
    });
    let model = ScriptedModel::new([Reply::call("confirm", json!({})), Reply::text("Done.")]);
    Runner::new(model).store(MemoryStore::new()).brain(order)
}
