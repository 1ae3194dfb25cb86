//! Errors of each bridge, in the form of its protocol: what failed, on what, and what to do.

use std::fmt::Write as _;

use axum::body::to_bytes;
use axum::response::Response;
use positronic_bridges::Bridges;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{RunId, Seq};
use positronic_core::store::MemoryStore;
use positronic_server::Scope;
use serde_json::{Value, json};

use crate::support::{Shop, input, said};

const ALL: [Scope; 3] = [Scope::Read, Scope::Run, Scope::Decide];
const VERSION: &str = "2026-07-28";

/// A request of a client.
pub(crate) struct Request {
    pub(crate) bridge: &'static str,
    method: &'static str,
    path: String,
    body: Option<Value>,
    headers: Vec<(&'static str, &'static str)>,
}

fn post(bridge: &'static str, path: &str, body: Value) -> Request {
    let path = format!("/api/v1/{path}");
    Request { bridge, method: "POST", path, body: Some(body), headers: Vec::new() }
}

/// Creates a request of MCP in its protocol without sessions.
fn mcp(name: &'static str, mut params: Value) -> Request {
    params["name"] = name.into();
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": { "form": {} } },
    });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let headers = vec![
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", VERSION),
        ("mcp-method", "tools/call"),
        ("mcp-name", name),
    ];
    Request { headers, ..post("mcp", "mcp", body) }
}

fn chat(id: &str, message: &Value) -> Value {
    json!({ "id": id, "messages": [message] })
}

fn text_of(id: &str) -> Value {
    json!({ "id": id, "role": "user", "parts": [{ "type": "text", "text": "hello" }] })
}

fn completion(model: &str) -> Value {
    json!({ "model": model, "messages": [{ "role": "user", "content": "hello" }] })
}

fn a2a(message: &Value) -> Value {
    let mut params = json!({ "message": { "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "hello" }] } });
    params["message"].as_object_mut().unwrap().extend(message.as_object().unwrap().clone());
    params
}

fn rpc(params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params })
}

/// Returns a request to each bridge that names a brain, and continues a thread or task.
fn requests(brain: &'static str, thread: &str) -> Vec<Request> {
    let task = match thread {
        "new" => json!({}),
        thread => json!({ "taskId": thread }),
    };
    let talk = thread.strip_suffix("-0").unwrap_or(thread);
    let response = Request { method: "GET", body: None, ..post("openai", "", Value::Null) };
    let mut requests = vec![
        post("ag-ui", &format!("ag-ui/{brain}"), input(talk, said("hello"))),
        post("ai-sdk", &format!("ai-sdk/{brain}"), chat(talk, &text_of("m-hello"))),
    ];
    requests.push(match thread {
        "new" => mcp(brain, json!({ "arguments": { "message": "hello" } })),
        thread => mcp("run_status", json!({ "arguments": { "run": thread } })),
    });
    requests.push(match thread {
        "new" => post("openai", "openai/v1/chat/completions", completion(brain)),
        thread => Request { path: format!("/api/v1/openai/v1/responses/resp_{thread}_0"), ..response },
    });
    requests.push(post("a2a", &format!("a2a/{brain}"), rpc(&a2a(&task))));
    requests.push(post("a2a-http", &format!("a2a/{brain}/message:send"), a2a(&task)));
    requests
}

/// Returns the decision about the call of a run over each bridge that decides.
pub(crate) fn decisions(run: &str, question: &str, approves: bool) -> Vec<Request> {
    let entry = json!({ "interruptId": question, "status": "resolved", "payload": { "approved": approves } });
    let part = json!({ "type": "dynamic-tool", "approval": { "id": question, "approved": approves } });
    let message = json!({ "id": "a", "role": "assistant", "parts": [part] });
    let data = json!({ "data": { "question": question, "response": { "approved": approves } } });
    let decision = a2a(&json!({ "taskId": run, "parts": [data] }));
    let form = json!({ question: { "action": "accept", "content": { "approve": approves } } });
    let call = json!({ "arguments": { "message": "pay" }, "requestState": run, "inputResponses": form });
    vec![
        post("ag-ui", "ag-ui/Refund", input(run, json!({ "resume": [entry] }))),
        post("ai-sdk", "ai-sdk/Refund", chat(run, &message)),
        mcp("Refund", call),
        post("a2a", "a2a/Refund", rpc(&decision)),
        post("a2a-http", "a2a/Refund/message:send", decision),
    ]
}

/// Sends a request.
pub(crate) async fn sent(shop: &Shop, token: &str, request: &Request) -> Response {
    let Request { method, path, body, headers, .. } = request;
    shop.send_with(token, method, path, body.clone(), headers).await
}

/// Writes the answer to a request: its status, its media type, and what it says.
async fn answer(shop: &Shop, token: &str, request: &Request) -> String {
    let (bridge, response) = (request.bridge, sent(shop, token, request).await);
    let (status, kind) = (response.status().as_u16(), response.headers()["content-type"].to_str().unwrap().to_owned());
    let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    // Of a stream, the event about the answer or the last one says what failed.
    let mut events = text.lines().filter(|line| !line.is_empty() && *line != "data: [DONE]");
    let refused = events.clone().find(|line| line.contains("positronic.refused"));
    let last = refused.or(events.next_back()).unwrap_or_default();
    let text = if kind == "text/event-stream" { last } else { &text };
    format!("{bridge}: {status} {kind}\n{text}\n")
}

/// Starts a run that waits for an approval, and returns its id and that of the question.
async fn waiting(shop: &Shop, token: &str, thread: &str) -> (String, String) {
    let message = json!({ "messages": [{ "id": format!("m-{thread}"), "role": "user", "content": "pay" }] });
    let leg = shop.leg(token, thread, message).await;
    let question = leg.last().unwrap()["outcome"]["interrupts"][0]["id"].as_str().unwrap().to_owned();
    (format!("{thread}-0"), question)
}

#[tokio::test]
async fn refusals_have_the_form_of_their_protocol_and_say_what_to_do() {
    let shop = Shop::new();
    let (ann, ben) = (shop.token(Some("ann"), &ALL).await, shop.token(Some("ben"), &ALL).await);
    let reader = shop.token(Some("ann"), &[Scope::Read]).await;
    let (run, _) = waiting(&shop, &ann, "thread").await;
    let mut shown = String::new();
    let mut show = async |case: &str, token: &str, requests: Vec<Request>| {
        writeln!(shown, "# {case}\n").unwrap();
        for request in requests {
            writeln!(shown, "{}", answer(&shop, token, &request).await).unwrap();
        }
    };

    show("a wrong token", "pos_000000000000_wrong", requests("Refund", "new")).await;
    show("a token without the scope `run`", &reader, requests("Refund", "new")).await;
    show("a brain that does not exist", &ann, requests("Refnud", "new")).await;
    show("the run of another user", &ben, requests("Refund", &run)).await;
    let large = |request: Request| {
        let headers = [request.headers, vec![("content-length", "99999999")]].concat();
        Request { headers, ..request }
    };
    show("a body that is too large", &ann, requests("Refund", "new").into_iter().map(large).collect()).await;
    let broken = |request: Request| Request { body: Some("{\"id\":".into()), ..request };
    show("a body that is not JSON", &ann, requests("Refund", "new").into_iter().map(broken).collect()).await;
    let empty = |request: Request| Request { body: Some(json!({ "messages": 7 })), ..request };
    show("a body of another form", &ann, requests("Refund", "new").into_iter().map(empty).collect()).await;

    insta::assert_snapshot!(shown);
}

#[tokio::test]
async fn refused_decisions_say_why_and_leave_the_question_or_the_first_decision() {
    let shop = Shop::new();
    let ann = shop.token(Some("ann"), &ALL).await;
    let powerless = shop.token(Some("ann"), &[Scope::Read, Scope::Run]).await;
    let mut shown = "# by a token without the scope `decide`\n\n".to_owned();
    let (run, question) = waiting(&shop, &ann, "open").await;
    for request in decisions(&run, &question, true) {
        writeln!(shown, "{}", answer(&shop, &powerless, &request).await).unwrap();
    }
    let still = shop.leg(&ann, "open", json!({})).await;
    assert_eq!(still.last().unwrap()["outcome"]["interrupts"][0]["id"], json!(question));

    writeln!(shown, "# by the starter of the run, whom a rule excludes\n").unwrap();
    let four_eyes = Shop::of_four_eyes();
    let starter = four_eyes.token(Some("ann"), &ALL).await;
    let (run, question) = waiting(&four_eyes, &starter, "open").await;
    for request in decisions(&run, &question, true) {
        writeln!(shown, "{}", answer(&four_eyes, &starter, &request).await).unwrap();
    }

    writeln!(shown, "# after another decision\n").unwrap();
    for (index, name) in ["one", "two", "three", "four", "five"].into_iter().enumerate() {
        let (run, question) = waiting(&shop, &ann, name).await;
        let approved = shop.leg(&ann, name, resume(&question)).await;
        assert_eq!(approved.last().unwrap()["outcome"]["type"], "success");
        let request = decisions(&run, &question, false).remove(index);
        writeln!(shown, "{}", answer(&shop, &ann, &request).await).unwrap();
        let log = json!(shop.client.events(&RunId::new(&*run), Seq(0)).await.unwrap()).to_string();
        assert!(log.contains("paid 7"), "the first decision holds: {log}");
    }

    writeln!(shown, "# the same decision again\n").unwrap();
    for (index, name) in ["six", "seven", "eight", "nine", "ten"].into_iter().enumerate() {
        let (run, question) = waiting(&shop, &ann, name).await;
        let request = decisions(&run, &question, true).remove(index);
        let first = answer(&shop, &ann, &request).await;
        assert_ne!(first, "");
        writeln!(shown, "{}", answer(&shop, &ann, &request).await).unwrap();
    }

    insta::assert_snapshot!(shown);
}

fn resume(question: &str) -> Value {
    json!({ "resume": [{ "interruptId": question, "status": "resolved", "payload": { "approved": true } }] })
}

#[derive(Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Greeting {
    name: String,
}

#[tokio::test]
async fn missing_options_are_refused_with_their_place_in_the_protocol() {
    let hello = brain("Refund").options::<Greeting>().r#loop("Greet", |cx| cx.system("Greet."));
    let model = ScriptedModel::from_fn(|_| Reply::text("Hello."));
    let runner = Runner::new(model).store(MemoryStore::new()).brain(hello);
    let shop = Shop::of(runner, &Bridges::builder().build(), &[]);
    let ann = shop.token(Some("ann"), &ALL).await;

    for request in requests("Refund", "new") {
        let place = match request.bridge {
            "ag-ui" => "The options of the brain are `forwardedProps.options`.",
            "ai-sdk" | "openai" => "The options of the brain are `options` in the body.",
            "mcp" => "",
            _ => "The options of the brain are a data part of the message.",
        };

        let text = answer(&shop, &ann, &request).await;

        assert!(text.contains("name") && text.contains("is a required property") && text.contains(place), "{text}");
    }
}
