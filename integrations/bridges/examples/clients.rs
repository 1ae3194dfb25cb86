//! Serves brains to the clients of others, for the tests of `.ci/bridges`: `cargo run -p positronic-bridges --example clients`.
//!
//! Its model answers by what the user says, and stops in the middle of an answer until `POST /gate`. To `minute` it says the time, twenty
//! times a second, for `scripts/bridge_load`. The first line of the output
//! is JSON with the address and the tokens.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::disallowed_methods, reason = "it serves tests")]

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::extract::State;
use axum::routing::post;
use futures::future::BoxFuture;
use positronic_bridges::Bridges;
use positronic_core::dsl::{each, form};
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::model::{DeltaSink, Model, Piece, RetryPolicy};
use positronic_core::prelude::*;
use positronic_core::record::{
    DeltaKind, Message, ModelError, ModelErrorKind, ModelRequest, ModelResponse, Part, ProposedCall, RunId, SignalId,
    SignalKind, Timestamp, Usage,
};
use positronic_core::runner::Client;
use positronic_core::store::MemoryStore;
use positronic_server::webhooks::{HttpTransport, PrivateAddresses, WebhookSender};
use positronic_server::{Options, Scope, Token, router};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

/// A model that answers by the last message.
struct ByText {
    script: ScriptedModel,
    gate: Arc<Semaphore>,
}

/// The answers that stream in pieces: between two of them the model waits for the gate.
const SLOW: [&str; 2] = ["The first half, ", "and the second half."];

/// The output of a loop, in pieces.
const REPORT: [&str; 2] = [r#"{"title":"Kettles","findings":["They bo"#, r#"il.","They whistle."]}"#];

impl Model for ByText {
    fn name(&self) -> String {
        "test/by-text".to_owned()
    }

    fn wire(&self, request: &ModelRequest) -> String {
        self.script.wire(request)
    }

    fn call<'a>(
        &'a self,
        request: &'a ModelRequest,
        deltas: &'a dyn DeltaSink,
    ) -> BoxFuture<'a, Result<ModelResponse, ModelError>> {
        Box::pin(async move {
            let piece = |text: &str| {
                deltas.piece(Piece { part: 0, kind: DeltaKind::Text, call: None, tool: None, text: text.to_owned() });
            };
            // The first piece must not be sent before a client follows the run.
            while is_streamed(request) && !deltas.has_reader() {
                tokio::task::yield_now().await;
            }
            match last_text(request).as_str() {
                "slow" => {
                    piece(SLOW[0]);
                    self.gate.acquire().await.unwrap().forget();
                    piece(SLOW[1]);
                    let parts = vec![Part::Text { text: SLOW.concat() }];
                    Ok(ModelResponse { parts, ..ModelResponse::default() })
                }
                "minute" => {
                    let mut text = String::new();
                    for _ in 0..1200 {
                        tokio::time::sleep(Duration::from_millis(50)).await;
                        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                        let time = format!("{} ", now.as_millis());
                        piece(&time);
                        text.push_str(&time);
                    }
                    let parts = vec![Part::Text { text }];
                    Ok(ModelResponse { parts, ..ModelResponse::default() })
                }
                "Report on kettles." => {
                    let arguments = |text: &str| {
                        let (kind, tool) = (DeltaKind::Arguments, Some("done".to_owned()));
                        deltas.piece(Piece { part: 0, kind, call: Some(0), tool, text: text.to_owned() });
                    };
                    arguments(REPORT[0]);
                    self.gate.acquire().await.unwrap().forget();
                    arguments(REPORT[1]);
                    let call = ProposedCall {
                        provider_id: None,
                        name: "done".to_owned(),
                        arguments: REPORT.concat(),
                        data: None,
                    };
                    let parts = vec![Part::Call { index: 0 }];
                    Ok(ModelResponse { parts, calls: vec![call], ..ModelResponse::default() })
                }
                "flaky" if request.attempt == 0 => {
                    piece("This will break ");
                    self.gate.acquire().await.unwrap().forget();
                    Err(ModelError::new(ModelErrorKind::Connection, "the connection was closed"))
                }
                _ => self.script.call(request, deltas).await,
            }
        })
    }
}

/// Returns whether a test looks at the pieces of the answer.
fn is_streamed(request: &ModelRequest) -> bool {
    matches!(last_text(request).as_str(), "slow" | "flaky" | "hello" | "Report on kettles.")
}

/// Returns what was said last; nothing if that is not a text.
fn last_text(request: &ModelRequest) -> String {
    match request.messages.messages().pop() {
        Some(Message::User { text, .. }) => text,
        _ => String::new(),
    }
}

fn reply(request: &ModelRequest) -> Reply {
    let usage = Usage { input: 12, output: 5, ..Usage::default() };
    let text = last_text(request);
    let reply = match text.as_str() {
        "two" => Reply::calls([("add", json!({ "number": 1 })), ("add", json!({ "number": 2 }))]).and_text("Adding."),
        "refund" => Reply::call("refund", json!({ "amount": 100 })).and_reasoning("It costs money."),
        "both" => Reply::calls([("refund", json!({ "amount": 1 })), ("refund", json!({ "amount": 2 }))]),
        "ask" => Reply::call("ask", json!({ "text": "What colour?" })),
        "hook" => Reply::call("hook", json!({})),
        "weather" => Reply::calls(["Graz", "Bern"].map(|city| ("get_weather", json!({ "city": city })))),
        "desk" => Reply::call("desk", json!({ "order": 7 })),
        "Refund order 7." => Reply::call("refund", json!({ "amount": 70 })),
        "Refund item 1." => Reply::call("refund", json!({ "amount": 1 })),
        "Refund item 2." => Reply::call("refund", json!({ "amount": 2 })),
        "show" => Reply::call("show", json!({})),
        "fail" => Reply::error(ModelError::new(ModelErrorKind::BadRequest, "the request is invalid")),
        "" => Reply::text("Done."),
        said => Reply::text(format!("You said {said:?}.")),
    };
    reply.usage(usage)
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Number {
    number: i64,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Amount {
    /// Euros
    amount: u32,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Colour {
    text: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
struct Order {
    order: u32,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Sums {
    sum: i64,
    /// A browser does not see it.
    secret: String,
}

fn refund_tool<O, S, V>() -> Tool<O, S, V>
where
    O: positronic_core::dsl::Options,
    S: positronic_core::dsl::State,
    V: positronic_core::dsl::Services,
{
    Tool::new("refund", |t| {
        t.description("Refunds money")
            .requires_approval("it costs money")
            .execute(async |Amount { amount }, _| Ok(format!("refunded {amount}")))
    })
}

/// A brain among the tools, whose own tool needs an approval.
fn desk() -> Brain<Order, String> {
    brain("Desk")
        .options::<Order>()
        .r#loop("Decide", |cx| {
            cx.system("Refund.").input(format!("Refund order {}.", cx.options.order)).tools([refund_tool()])
        })
        .step("Close", async |_| Ok("the desk has refunded".to_owned()))
        .build()
}

fn chat() -> Brain<(), Sums> {
    brain("Chat")
        .state(Sums { sum: 0, secret: "hidden".to_owned() })
        .r#loop("Answer", |cx| {
            cx.system("Answer.")
                .tools([refund_tool()])
                .tool("add", |t| {
                    t.description("Adds a number").execute(async |Number { number }, cx| {
                        cx.update(move |sums| sums.sum += number);
                        Ok("added")
                    })
                })
                .tool("ask", |t| {
                    t.description("Asks a person")
                        .execute(async |Colour { text }, cx| Ok(cx.result("asked").wait_for_reply::<Colour>(text)))
                })
                .tool("hook", |t| {
                    t.description("Waits for a program")
                        .wait(|_: &NoArgs, _| [webhook::<Colour>("program").on("7")])
                        .execute(async |_, _| Ok("sent"))
                })
                .tool("show", |t| {
                    t.description("Shows a chart").execute(async |_: NoArgs, cx| {
                        cx.progress("drawing");
                        cx.display_widget("chart", json!({ "bars": [1, 2] }), "a chart with two bars")?;
                        Ok("shown")
                    })
                })
                .tool("desk", |t| t.brain(desk()))
        })
        .build()
}

fn items() -> Brain<(), Vec<String>> {
    let item = brain("Item")
        .options::<u32>()
        .r#loop("Pay", |cx| cx.system("Refund.").input(format!("Refund item {}.", cx.options)).tools([refund_tool()]))
        .step("Close", async |cx| Ok(format!("item {}", cx.options)));
    brain("Items").state(vec![1_u32, 2]).map("Each", |numbers| numbers.clone(), each(item), |_, done| done).build()
}

/// A brain that asks a person for a text.
fn name() -> Brain<(), String> {
    brain("Name")
        .state("the name".to_owned())
        .ask_person(
            "Ask",
            |thing| form::<String>(format!("What is {thing}?")),
            |thing, name| format!("{thing} is {name}"),
        )
        .result(|text: &String| text.to_uppercase())
}

fn survey() -> Brain<(), String> {
    brain("Survey")
        .state("a kettle".to_owned())
        .ask_person("Colour", |thing| form::<Colour>(format!("Which colour has {thing}?")), |_, colour| colour.text)
        .build()
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
struct Place {
    city: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
struct Weather {
    city: String,
    degrees: f64,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
struct Findings {
    title: String,
    findings: Vec<String>,
}

/// A brain whose loop ends with an output of a type.
fn report() -> Brain<(), Findings> {
    brain("Report")
        .state(())
        .loop_to(
            "Research",
            |cx| cx.system("Find out.").input("Report on kettles.").output::<Findings>(),
            |(), findings| findings,
        )
        .build()
}

/// A brain that takes tools of its caller.
fn guide() -> Brain<(), ()> {
    let guide = brain("Guide").r#loop("Help", |cx| {
        cx.system("Help.").tool("clock", |t| t.description("Reads the clock").execute(async |_: NoArgs, _| Ok("noon")))
    });
    guide.caller_tools().build()
}

/// A brain without a loop, whose result has a schema.
fn weather() -> Brain<Place, Weather> {
    brain("Weather report")
        .description("Reports the weather of a city")
        .options::<Place>()
        .step("Measure", async |cx| Ok(cx.options.city.clone()))
        .result(|city: &String| Weather { city: city.clone(), degrees: 7.5 })
        .with_result_schema()
}

/// Says what the bearer of a test's request may: to open the gate, to answer a webhook, or to cancel a run.
#[derive(Clone)]
struct Desk {
    gate: Arc<Semaphore>,
    client: Client,
}

async fn gate(State(desk): State<Desk>) {
    desk.gate.add_permits(1);
}

async fn webhook_arrives(State(desk): State<Desk>) {
    let (id, payload) = (SignalId::new("delivery-1"), json!({ "text": "from the program" }));
    desk.client.deliver(id, "program", "7", payload, "test".into()).await.unwrap();
}

async fn cancel(State(desk): State<Desk>, run: String) {
    let run = RunId::new(&run);
    desk.client.signal(&run, SignalKind::Cancel { reason: None }, "ann").await.unwrap();
}

#[tokio::main]
async fn main() {
    let gate_permits = Arc::new(Semaphore::new(0));
    let model = ByText { script: ScriptedModel::from_fn(reply), gate: Arc::clone(&gate_permits) };
    let retry =
        RetryPolicy::builder().limit(3).first(Duration::from_millis(10)).longest(Duration::from_millis(50)).build();
    let runner = Runner::new(model)
        .store(MemoryStore::new())
        .retry_policy(retry)
        .brain(chat())
        .brain(items())
        .brain(survey())
        .brain(name())
        .brain(report())
        .brain(weather())
        .brain(guide());
    let client = runner.client();
    let token = async |subject: &str, user: Option<&str>, scopes: &[Scope]| {
        let token =
            Token::builder().subject(subject).user(user.map(str::to_owned)).scopes(scopes).created(Timestamp(0));
        Token::create(&client, token.build()).await.unwrap().1
    };
    let ann = token("ann", Some("ann"), &[Scope::Read, Scope::Run, Scope::Decide]).await;
    let ben = token("ben", Some("ben"), &[Scope::Read, Scope::Run, Scope::Decide]).await;
    let reader = token("reader", None, &[Scope::Read]).await;
    let service = token("service", None, &Scope::ALL).await;
    let runs_only = token("ann", Some("ann"), &[Scope::Read, Scope::Run]).await;
    let public = |title: &str, state: &Value| (title == "Chat").then(|| json!({ "sum": state["sum"] }));
    let bridges = Bridges::builder()
        .public_state(public)
        .hold(Duration::from_secs(20))
        .longest_call(Duration::from_secs(3))
        .push_notifications(true)
        .build();
    // The receivers of the tests are on this machine.
    let private = PrivateAddresses::Allow;
    let transport = HttpTransport::new(private).unwrap();
    let _sender = WebhookSender::builder().client(client.clone()).transport(transport).build().spawn();
    let options = Options::builder()
        .brains(runner.clone())
        .routes(bridges.routes())
        .webhook_addresses(private)
        .max_streams(1000)
        .requests_per_minute(100_000)
        .cors_origins(std::env::args().nth(1).map(|origin| vec![origin.parse().unwrap()]).unwrap_or_default())
        .build();
    let desk = Desk { gate: gate_permits, client: runner.client() };
    let controls = Router::new()
        .route("/gate", post(gate))
        .route("/webhook", post(webhook_arrives))
        .route("/cancel", post(cancel))
        .with_state(desk);
    let app = controls.merge(router(runner.client(), options));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    println!(
        "{}",
        json!({ "address": address, "ann": ann, "ben": ben, "reader": reader, "service": service, "runsOnly": runs_only })
    );
    axum::serve(listener, app).await.unwrap();
}
