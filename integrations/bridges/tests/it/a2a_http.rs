//! A2A over HTTP+JSON, request by request: the same operations, rights and redaction as over JSON-RPC, in another form.

use axum::body::to_bytes;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use positronic_bridges::Bridges;
use positronic_core::model::scripted::ScriptedModel;
use positronic_core::prelude::*;
use positronic_core::store::MemoryStore;
use positronic_server::Scope;
use serde_json::{Value, json};

use crate::support::Shop;

const ALL: [Scope; 3] = [Scope::Read, Scope::Run, Scope::Decide];
const BASE: &str = "/api/v1/a2a/Refund";
/// The agent of all brains.
const EVERY: &str = "/api/v1/a2a-http";
const MEDIA_TYPE: &str = "application/a2a+json";

async fn call(shop: &Shop, token: &str, method: &str, path: &str, body: Option<Value>) -> (StatusCode, Value) {
    let (status, text) = shop.send(token, method, path, body).await;
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

fn message(id: &str, parts: &Value) -> Value {
    json!({ "message": { "messageId": id, "role": "ROLE_USER", "parts": parts } })
}

fn said(text: &str) -> Option<Value> {
    Some(message(&format!("m-{text}"), &json!([{ "text": text }])))
}

/// Sends a message, and returns the task.
async fn task(shop: &Shop, token: &str, body: Option<Value>) -> Value {
    let (status, answer) = call(shop, token, "POST", &format!("{BASE}/message:send"), body).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    answer["task"].clone()
}

/// Returns the path of a task.
fn at(task: &Value, rest: &str) -> String {
    format!("{BASE}/tasks/{}{rest}", task["id"].as_str().unwrap())
}

/// Returns the message that answers the first question of a task.
fn answer(task: &Value, response: &Value) -> Option<Value> {
    let question = &task["status"]["message"]["parts"][1]["data"]["question"];
    let mut body = message("decision", &json!([{ "data": { "question": question, "response": response } }]));
    body["message"]["taskId"] = task["id"].clone();
    Some(body)
}

/// Returns the reason of an error, which has to have the form of the binding.
fn reason((status, body): &(StatusCode, Value)) -> (u16, String) {
    let error = &body["error"];
    assert_eq!(error["code"], status.as_u16(), "{body}");
    assert!(error["message"].as_str().is_some_and(|text| !text.is_empty()), "{body}");
    assert_eq!(error["details"][0]["@type"], "type.googleapis.com/google.rpc.ErrorInfo", "{body}");
    (status.as_u16(), error["details"][0]["reason"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn task_is_sent_answered_read_and_listed() {
    let shop = Shop::new();
    let ann = shop.token(Some("ann"), &ALL).await;

    let asked = task(&shop, &ann, said("pay")).await;
    let done = task(&shop, &ann, answer(&asked, &json!({ "approved": true }))).await;
    let (_, read) = call(&shop, &ann, "GET", &at(&asked, "?historyLength=0"), None).await;
    let list = format!("{BASE}/tasks?status=TASK_STATE_COMPLETED&pageSize=10&includeArtifacts=true");
    let (_, listed) = call(&shop, &ann, "GET", &list, None).await;
    let after = |time: &str| format!("{EVERY}/tasks?statusTimestampAfter={time}");
    let (_, since) = call(&shop, &ann, "GET", &after("2000-01-01T00:00:00Z"), None).await;
    let (_, none) = call(&shop, &ann, "GET", &after("2999-01-01T00:00:00Z"), None).await;

    assert_eq!(asked["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    assert_eq!((&done["id"], &done["status"]["state"]), (&asked["id"], &json!("TASK_STATE_COMPLETED")));
    assert_eq!((&read["artifacts"], &read["history"]), (&done["artifacts"], &json!([])));
    assert_eq!((&listed["totalSize"], &listed["tasks"][0]["artifacts"]), (&json!(1), &done["artifacts"]));
    assert_eq!((&since["totalSize"], &none["totalSize"]), (&json!(1), &json!(0)));
}

#[tokio::test]
async fn streams_have_the_values_of_the_protocol_alone() {
    let shop = Shop::new();
    let ann = shop.token(Some("ann"), &ALL).await;

    let (_, stream) = shop.send(&ann, "POST", &format!("{BASE}/message:stream"), said("hello")).await;
    let asked = task(&shop, &ann, said("pay")).await;
    let ended: Vec<Value> = events(&stream);
    let mut subscribed = Vec::new();
    for method in ["GET", "POST"] {
        let response = shop.send_with(&ann, method, &at(&asked, ":subscribe"), None, &[]).await;
        let kind = response.headers()[CONTENT_TYPE].to_str().unwrap().to_owned();
        let mut body = response.into_body().into_data_stream();
        let first = futures::StreamExt::next(&mut body).await.unwrap().unwrap();
        subscribed.push((kind, events(&String::from_utf8_lossy(&first))[0].clone()));
    }

    assert_eq!(ended[0]["task"]["status"]["state"], "TASK_STATE_WORKING");
    assert_eq!(ended.last().unwrap()["statusUpdate"]["status"]["state"], "TASK_STATE_COMPLETED");
    for (kind, first) in subscribed {
        assert_eq!((kind.as_str(), &first["task"]["id"]), ("text/event-stream", &asked["id"]));
        assert_eq!(first["task"]["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    }
}

fn events(stream: &str) -> Vec<Value> {
    let lines = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn errors_have_a_status_and_a_reason() {
    let shop = Shop::new();
    let ann = shop.token(Some("ann"), &ALL).await;
    let operator = shop.token(None, &[Scope::Read, Scope::Operate]).await;
    let asked = task(&shop, &ann, said("pay")).await;
    let refused = async |token: &str, method: &str, path: &str, body: Option<Value>| {
        reason(&call(&shop, token, method, path, body).await)
    };
    let send = format!("{BASE}/message:send");
    let invalid = (400, "INVALID_PARAMS".to_owned());

    let (_, cancelled) = call(&shop, &operator, "POST", &at(&asked, ":cancel"), None).await;

    assert_eq!(cancelled["status"]["state"], "TASK_STATE_CANCELED");
    let again = refused(&operator, "POST", &at(&asked, ":cancel"), None).await;
    assert_eq!(again, (400, "TASK_NOT_CANCELABLE".to_owned()));
    let late = refused(&ann, "POST", &at(&asked, ":subscribe"), None).await;
    assert_eq!(late, (400, "UNSUPPORTED_OPERATION".to_owned()));
    let unknown = refused(&ann, "GET", &format!("{BASE}/tasks/x"), None).await;
    assert_eq!(unknown, (404, "TASK_NOT_FOUND".to_owned()));
    let verb = refused(&ann, "POST", &at(&asked, ":start"), None).await;
    assert_eq!(verb, (404, "METHOD_NOT_FOUND".to_owned()));
    assert_eq!(refused(&ann, "POST", &send, Some(json!({}))).await, invalid);
    assert_eq!(refused(&ann, "POST", &send, Some(json!({ "message": 7 }))).await, invalid);
    for query in ["pageSize=x", "pageToken=x", "status=x", "statusTimestampAfter=x", "pagesize=1"] {
        assert_eq!(refused(&ann, "GET", &format!("{BASE}/tasks?{query}"), None).await, invalid, "{query}");
    }
    let card = refused(&ann, "GET", &format!("{BASE}/extendedAgentCard"), None).await;
    assert_eq!(card, (400, "EXTENDED_AGENT_CARD_NOT_CONFIGURED".to_owned()));
    let push = refused(&ann, "GET", &at(&asked, "/pushNotificationConfigs"), None).await;
    assert_eq!(push, (400, "PUSH_NOTIFICATION_NOT_SUPPORTED".to_owned()));
    let old = shop.send_with(&ann, "POST", &send, said("hello"), &[("a2a-version", "0.3")]).await;
    assert_eq!(old.status(), StatusCode::BAD_REQUEST);
    let bytes = to_bytes(old.into_body(), usize::MAX).await.unwrap();
    assert!(String::from_utf8_lossy(&bytes).contains("VERSION_NOT_SUPPORTED"));
}

#[tokio::test]
async fn rights_are_those_of_the_other_binding() {
    let shop = Shop::new();
    let ann = shop.token(Some("ann"), &[Scope::Read, Scope::Run]).await;
    let ben = shop.token(Some("ben"), &ALL).await;
    let reader = shop.token(None, &[Scope::Read]).await;
    let asked = task(&shop, &ann, said("pay")).await;
    let decision = answer(&asked, &json!({ "approved": true }));
    let send = format!("{BASE}/message:send");

    let (by_ann, refused) = call(&shop, &ann, "POST", &send, decision.clone()).await;
    let by_ben = call(&shop, &ben, "POST", &send, decision).await;
    let (spoke, _) = call(&shop, &reader, "POST", &send, said("hello")).await;
    let (cancelled, problem) = call(&shop, &ann, "POST", &at(&asked, ":cancel"), None).await;
    let (_, of_ben) = call(&shop, &ben, "GET", &format!("{EVERY}/tasks"), None).await;
    let (_, read) = call(&shop, &reader, "GET", &at(&asked, ""), None).await;

    let refused = (by_ann, refused);
    assert_eq!(reason(&refused), (403, "SCOPE_MISSING".to_owned()));
    assert!(refused.1["error"]["message"].as_str().unwrap().contains("`decide`"), "{refused:?}");
    assert_eq!(reason(&by_ben), (404, "TASK_NOT_FOUND".to_owned()));
    assert_eq!((spoke, cancelled), (StatusCode::FORBIDDEN, StatusCode::FORBIDDEN));
    assert!(problem["error"]["message"].as_str().unwrap().contains("`operate`"), "{problem}");
    assert_eq!(of_ben["totalSize"], 0);
    assert_eq!(read["status"]["message"]["parts"][1]["data"]["answerable"], false);
    for (method, rest) in [("GET", ""), ("GET", ":subscribe"), ("POST", ":subscribe")] {
        let hidden = call(&shop, &ben, method, &at(&asked, rest), None).await;
        assert_eq!(reason(&hidden), (404, "TASK_NOT_FOUND".to_owned()), "{method} {rest}");
    }
}

#[tokio::test]
async fn answers_have_the_media_type_of_the_protocol_and_are_redacted() {
    let shop = Shop::open(&Bridges::builder().build(), &["iban"]);
    let ann = shop.token(Some("ann"), &ALL).await;
    let own = [("accept", MEDIA_TYPE)];
    let asked = task(&shop, &ann, said("pay")).await;

    for (headers, wanted) in
        [(&[][..], MEDIA_TYPE), (&own, MEDIA_TYPE), (&[("accept", "application/json")], "application/json")]
    {
        let response = shop.send_with(&ann, "GET", &at(&asked, ""), None, headers).await;
        assert_eq!(response.headers()[CONTENT_TYPE], wanted);
        let text = String::from_utf8(to_bytes(response.into_body(), usize::MAX).await.unwrap().to_vec()).unwrap();
        assert!(text.contains("[redacted]") && !text.contains("DE02"), "{text}");
    }
    let again = Some(message("m-again", &json!([{ "text": "pay" }])));
    let (_, stream) = shop.send(&ann, "POST", &format!("{BASE}/message:stream"), again).await;
    assert!(stream.contains("[redacted]") && !stream.contains("DE02"), "{stream}");
    let body = [("content-type", MEDIA_TYPE)];
    let sent = shop.send_with(&ann, "POST", &format!("{BASE}/message:send"), said("hello"), &body).await;
    assert_eq!(sent.status(), StatusCode::OK);
}

#[tokio::test]
async fn addresses_of_push_notifications_are_created_read_and_deleted() {
    let shop = Shop::open(&Bridges::builder().push_notifications(true).build(), &[]);
    let (ann, ben) = (shop.token(Some("ann"), &ALL).await, shop.token(Some("ben"), &ALL).await);
    let asked = task(&shop, &ann, said("pay")).await;
    let configs = at(&asked, "/pushNotificationConfigs");
    let body =
        |task: &Value| Some(json!({ "id": "1", "taskId": task, "url": "https://example.org/hook", "token": "of-ann" }));

    let (_, created) = call(&shop, &ann, "POST", &configs, body(&json!(""))).await;
    let other = call(&shop, &ann, "POST", &configs, body(&json!("x"))).await;
    let of_ben = call(&shop, &ben, "GET", &configs, None).await;
    let (_, read) = call(&shop, &ann, "GET", &format!("{configs}/1"), None).await;
    let (_, listed) = call(&shop, &ann, "GET", &format!("{configs}?pageSize=5"), None).await;
    let deleted = call(&shop, &ann, "DELETE", &format!("{configs}/1"), None).await;
    let gone = call(&shop, &ann, "GET", &format!("{configs}/1"), None).await;

    assert_eq!(created, json!({ "id": "1", "taskId": asked["id"], "url": "https://example.org/hook" }));
    assert_eq!(reason(&other), (400, "INVALID_PARAMS".to_owned()));
    assert_eq!(reason(&of_ben), (404, "TASK_NOT_FOUND".to_owned()));
    assert_eq!((&read, &listed["configs"]), (&created, &json!([created])));
    assert_eq!(deleted, (StatusCode::OK, json!({})));
    assert_eq!(reason(&gone), (404, "TASK_NOT_FOUND".to_owned()));
}

#[tokio::test]
async fn card_lists_both_bindings() {
    let shop = Shop::new();
    let ann = shop.token(Some("ann"), &ALL).await;
    let interfaces = async |path: &str| {
        let (_, card) = call(&shop, &ann, "GET", path, None).await;
        let listed = card["supportedInterfaces"].as_array().unwrap().clone();
        listed.iter().map(|known| format!("{} {}", known["protocolBinding"], known["url"])).collect::<Vec<_>>()
    };

    assert_eq!(
        interfaces("/.well-known/agent-card.json").await,
        [r#""JSONRPC" "http://127.0.0.1:4747/api/v1/a2a""#, r#""HTTP+JSON" "http://127.0.0.1:4747/api/v1/a2a-http""#]
    );
    assert_eq!(
        interfaces("/api/v1/a2a/Refund/.well-known/agent-card.json").await,
        [
            r#""JSONRPC" "http://127.0.0.1:4747/api/v1/a2a/Refund""#,
            r#""HTTP+JSON" "http://127.0.0.1:4747/api/v1/a2a/Refund""#
        ]
    );
}

#[tokio::test]
async fn brain_may_have_the_name_of_a_path() {
    let brain = brain("tasks").step("Done", async |_| Ok(())).build();
    let shop = Shop::of(
        Runner::new(ScriptedModel::new([])).store(MemoryStore::new()).brain(brain),
        &Bridges::builder().build(),
        &[],
    );
    let ann = shop.token(Some("ann"), &ALL).await;
    let body = Some(message("m", &json!([{ "data": {} }])));

    let (_, own) = call(&shop, &ann, "POST", "/api/v1/a2a/tasks/message:send", body.clone()).await;
    let (_, every) = call(&shop, &ann, "POST", "/api/v1/a2a-http/message:send", body).await;

    assert_eq!(own["task"]["metadata"]["skill"], "tasks", "{own}");
    assert_eq!(every["task"]["metadata"]["skill"], "tasks", "{every}");
}

#[tokio::test]
async fn routes_of_a_nested_router_are_below_its_path() {
    let shop = Shop::new().nested("/agents");
    let ann = shop.token(Some("ann"), &ALL).await;

    let (_, card) = call(&shop, &ann, "GET", &format!("/agents{BASE}/.well-known/agent-card.json"), None).await;
    let url = card["supportedInterfaces"][1]["url"].as_str().unwrap();
    let path = url.strip_prefix("http://127.0.0.1:4747").unwrap();
    let (status, sent) = call(&shop, &ann, "POST", &format!("{path}/message:send"), said("hello")).await;

    assert_eq!((status, path), (StatusCode::OK, "/agents/api/v1/a2a/Refund"));
    assert_eq!(sent["task"]["status"]["state"], "TASK_STATE_COMPLETED");
}
