//! A2A, request by request: whose tasks a caller sees and decides, and what a task shows.

use std::time::Duration;

use axum::http::StatusCode;
use futures::future::BoxFuture;
use positronic_bridges::Bridges;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::ModelRequest;
use positronic_core::store::MemoryStore;
use positronic_server::Scope;
use positronic_server::webhooks::{OutgoingRequest, OutgoingResponse, TransportError, WebhookSender, WebhookTransport};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::support::Shop;

const ALL: [Scope; 3] = [Scope::Read, Scope::Run, Scope::Decide];
const PATH: &str = "/api/v1/a2a/Refund";

async fn call(shop: &Shop, token: &str, method: &str, params: Value) -> (StatusCode, Value) {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let (status, text) = shop.send(token, "POST", PATH, Some(body)).await;
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

fn message(id: &str, parts: &Value) -> Value {
    json!({ "message": { "messageId": id, "role": "ROLE_USER", "parts": parts } })
}

fn said(text: &str) -> Value {
    message(&format!("m-{text}"), &json!([{ "text": text }]))
}

/// Sends a message, and returns the task.
async fn task(shop: &Shop, token: &str, params: Value) -> Value {
    let (status, answer) = call(shop, token, "SendMessage", params).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    assert_eq!(answer["error"], Value::Null, "{answer}");
    answer["result"]["task"].clone()
}

/// Returns the answer to the first question of a task.
fn answer(task: &Value, response: &Value) -> Value {
    let question = &task["status"]["message"]["parts"][1]["data"]["question"];
    let mut params = message("decision", &json!([{ "data": { "question": question, "response": response } }]));
    params["message"]["taskId"] = task["id"].clone();
    params
}

#[tokio::test]
async fn approval_is_input_required_and_a_data_part_decides_it() {
    let shop = Shop::new();
    let ann = shop.token(Some("ann"), &ALL).await;

    let asked = task(&shop, &ann, said("pay")).await;
    let done =
        task(&shop, &ann, answer(&asked, &json!({ "approved": true, "editedArgs": { "amount": 3, "iban": "X" } })))
            .await;

    assert_eq!(asked["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    let question = &asked["status"]["message"]["parts"][1]["data"];
    assert_eq!(question["arguments"], json!({ "amount": 7, "iban": "DE02" }));
    assert_eq!(question["responseSchema"]["properties"]["editedArgs"]["properties"]["amount"]["type"], "integer");
    assert_eq!((&done["id"], &done["status"]["state"]), (&asked["id"], &json!("TASK_STATE_COMPLETED")));
    let texts: Vec<_> =
        done["artifacts"].as_array().unwrap().iter().map(|artifact| &artifact["parts"][0]["text"]).collect();
    assert_eq!(texts, ["I pay.", "Done."]);
    assert!(!done.to_string().contains("only the server knows"), "a state is no result: {done}");
}

#[tokio::test]
async fn message_that_is_sent_again_is_one_task() {
    let shop = Shop::new();
    let ann = shop.token(Some("ann"), &ALL).await;
    let ben = shop.token(Some("ben"), &ALL).await;

    let first = task(&shop, &ann, said("pay")).await;
    let again = task(&shop, &ann, said("pay")).await;
    let of_ben = task(&shop, &ben, said("pay")).await;
    let mut named = said("hello");
    named["message"]["contextId"] = "talk".into();
    let named = task(&shop, &ann, named).await;

    assert_eq!((&first["id"], &first["contextId"]), (&again["id"], &again["contextId"]));
    assert_eq!(again["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    assert_ne!(first["id"], of_ben["id"], "ids of messages are those of their sender");
    assert_eq!(named["contextId"], "talk");
}

#[tokio::test]
async fn decision_needs_its_scope_and_its_task() {
    let shop = Shop::new();
    let ann = shop.token(Some("ann"), &[Scope::Read, Scope::Run]).await;
    let ben = shop.token(Some("ben"), &ALL).await;
    let reader = shop.token(None, &[Scope::Read]).await;
    let asked = task(&shop, &ann, said("pay")).await;
    let decision = answer(&asked, &json!({ "approved": true }));

    let (by_ann, refused) = call(&shop, &ann, "SendMessage", decision.clone()).await;
    let (_, by_ben) = call(&shop, &ben, "SendMessage", decision).await;
    let (spoke, _) = call(&shop, &reader, "SendMessage", said("hello")).await;
    let (cancelled, _) = call(&shop, &ann, "CancelTask", json!({ "id": asked["id"] })).await;
    let (_, read) = call(&shop, &reader, "GetTask", json!({ "id": asked["id"] })).await;

    assert_eq!(by_ann, StatusCode::FORBIDDEN);
    assert!(refused["error"]["message"].as_str().unwrap().contains("`decide`"), "{refused}");
    assert_eq!(by_ben["error"]["code"], -32001, "{by_ben}");
    assert_eq!((spoke, cancelled), (StatusCode::FORBIDDEN, StatusCode::FORBIDDEN));
    assert_eq!(read["result"]["status"]["state"], "TASK_STATE_INPUT_REQUIRED");
    assert_eq!(read["result"]["status"]["message"]["parts"][1]["data"]["answerable"], false);
}

#[tokio::test]
async fn secrets_are_redacted_in_tasks_and_streams() {
    let shop = Shop::open(&Bridges::builder().build(), &["iban"]);
    let ann = shop.token(Some("ann"), &ALL).await;

    let asked = task(&shop, &ann, said("pay")).await;
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": said("hello") });
    let (_, stream) = shop.send(&ann, "POST", PATH, Some(body)).await;

    let text = asked.to_string();
    assert!(text.contains("[redacted]") && !text.contains("DE02"), "{text}");
    assert!(stream.contains("TASK_STATE_COMPLETED") && stream.contains("You said hello."), "{stream}");
}

#[tokio::test]
async fn requests_that_are_no_requests_of_the_protocol_get_its_errors() {
    let shop = Shop::new();
    let ann = shop.token(Some("ann"), &ALL).await;
    let code = async |method: &str, params: Value| call(&shop, &ann, method, params).await.1["error"]["code"].clone();

    assert_eq!(code("message/send", json!({})).await, -32601, "a method of version 0.3");
    assert_eq!(code("SendMessage", json!({ "message": 7 })).await, -32602);
    assert_eq!(code("GetTask", json!({ "id": "x" })).await, -32001);
    assert_eq!(code("ListTasks", json!({ "pageToken": "x" })).await, -32602);
    assert_eq!(code("CreateTaskPushNotificationConfig", json!({})).await, -32003);
    assert_eq!(code("GetExtendedAgentCard", json!({})).await, -32007);
    let (_, text) = shop.send(&ann, "POST", PATH, Some(json!({ "method": "GetTask" }))).await;
    assert!(text.contains("-32600"), "{text}");
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": { "id": "x" } });
    let old = shop.send_with(&ann, "POST", PATH, Some(body), &[("a2a-version", "0.3")]).await;
    let bytes = axum::body::to_bytes(old.into_body(), usize::MAX).await.unwrap();
    assert!(String::from_utf8_lossy(&bytes).contains("-32009"));
}

#[tokio::test]
async fn task_whose_loop_was_cut_off_says_so() {
    let brain = brain("Refund").r#loop("Look", |cx| {
        cx.system("Look.").max_iterations(1).tool("look", |t| t.execute(async |_: NoArgs, _| Ok("nothing")))
    });
    let model = ScriptedModel::from_fn(|_| Reply::call("look", json!({})));
    let runner = Runner::new(model).store(MemoryStore::new()).brain(brain);
    let shop = Shop::of(runner, &Bridges::builder().build(), &[]);
    let ann = shop.token(Some("ann"), &ALL).await;

    let status = task(&shop, &ann, said("hello")).await["status"].clone();

    let says = &status["message"]["parts"][0]["text"];
    assert!(says.as_str().is_some_and(|text| text.contains("cut off `Look`")), "{status}");
    assert_eq!(status["message"]["parts"][1]["data"]["cutOff"][0]["loop"], "Look", "{status}");
}

#[tokio::test]
async fn card_lists_the_brains_that_the_caller_may_start() {
    let shop = Shop::new();
    let ann = shop.token(Some("ann"), &ALL).await;
    let reader = shop.token(None, &[Scope::Read]).await;
    let card = async |token: &str, path: &str| {
        let (status, text) = shop.send(token, "GET", path, None).await;
        (status, serde_json::from_str::<Value>(&text).unwrap())
    };

    let (_, all) = card(&ann, "/.well-known/agent-card.json").await;
    let (_, own) = card(&ann, "/api/v1/a2a/Refund/.well-known/agent-card.json").await;
    let (_, none) = card(&reader, "/.well-known/agent-card.json").await;
    let (unknown, _) = card(&ann, "/api/v1/a2a/Other/.well-known/agent-card.json").await;

    assert_eq!(all["skills"][0]["id"], "Refund");
    assert_eq!(own["supportedInterfaces"][0]["url"], "http://127.0.0.1:4747/api/v1/a2a/Refund");
    assert_eq!(none["skills"], json!([]));
    assert_eq!(unknown, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn address_of_a_push_notification_is_guarded_and_belongs_to_its_task() {
    let shop = Shop::open(&Bridges::builder().push_notifications(true).build(), &[]);
    let (ann, ben) = (shop.token(Some("ann"), &ALL).await, shop.token(Some("ben"), &ALL).await);
    let reader = shop.token(None, &[Scope::Read]).await;
    let asked = task(&shop, &ann, said("pay")).await;
    let create = async |token: &str, url: &str, id: &str| {
        let params = json!({ "taskId": asked["id"], "url": url, "id": id, "token": "of-ann" });
        call(&shop, token, "CreateTaskPushNotificationConfig", params).await
    };
    let address = "https://example.org/hook";
    let long = format!("{address}?{}", "a".repeat(2048));

    assert_eq!(create(&ann, address, &"i".repeat(65)).await.1["error"]["code"], -32602, "a long id");
    for url in [
        "http://127.0.0.1/",
        "http://example.org/",
        "https://10.0.0.7/",
        "https://[::1]/",
        "https://ann:secret@example.org/",
        "ftp://example.org/",
        &long,
    ] {
        assert_eq!(create(&ann, url, "x").await.1["error"]["code"], -32602, "{url}");
        let mut params = said(url);
        params["configuration"] = json!({ "taskPushNotificationConfig": { "url": url } });
        assert_eq!(call(&shop, &ann, "SendMessage", params).await.1["error"]["code"], -32602, "{url}");
    }
    let (_, listed) = call(&shop, &ann, "ListTasks", json!({})).await;
    assert_eq!(listed["result"]["totalSize"], 1, "nothing has started: {listed}");
    assert_eq!(create(&ben, address, "1").await.1["error"]["code"], -32001);
    assert_eq!(create(&reader, address, "1").await.0, StatusCode::FORBIDDEN);
    for id in 1..=8 {
        let shown = json!({ "id": id.to_string(), "taskId": asked["id"], "url": address });
        assert_eq!(create(&ann, address, &id.to_string()).await.1["result"], shown, "the token is not shown");
    }
    assert_eq!(create(&ann, address, "9").await.1["error"]["code"], -32602, "a task has at most eight");
    assert_eq!(create(&ann, address, "8").await.1["error"], Value::Null, "one of them is replaced");
    let delete = json!({ "taskId": asked["id"], "id": "8" });
    assert_eq!(call(&shop, &ben, "DeleteTaskPushNotificationConfig", delete).await.1["error"]["code"], -32001);
}

#[tokio::test]
async fn server_without_a_sender_takes_no_addresses() {
    let shop = Shop::new();
    let ann = shop.token(Some("ann"), &ALL).await;
    let mut params = said("pay");
    params["configuration"] = json!({ "taskPushNotificationConfig": { "url": "https://example.org/hook" } });

    let (_, refused) = call(&shop, &ann, "SendMessage", params).await;
    for method in ["Create", "Get", "Delete", "List"] {
        let method = format!("{method}TaskPushNotificationConfig{}", if method == "List" { "s" } else { "" });
        let params = json!({ "taskId": "x", "id": "1", "url": "https://example.org/hook" });
        assert_eq!(call(&shop, &ann, &method, params).await.1["error"]["code"], -32003, "{method}");
    }
    let (_, card) = shop.send(&ann, "GET", &format!("{PATH}/.well-known/agent-card.json"), None).await;

    assert_eq!(refused["error"]["code"], -32003, "{refused}");
    assert!(card.contains(r#""pushNotifications":false"#), "{card}");
}

/// What arrives at the addresses: the URL, and the token of the client.
struct Addresses(mpsc::UnboundedSender<(String, Option<String>)>);

impl WebhookTransport for Addresses {
    fn send<'a>(&'a self, request: &'a OutgoingRequest) -> BoxFuture<'a, Result<OutgoingResponse, TransportError>> {
        let token = request.headers.get("x-a2a-notification-token").and_then(|token| token.to_str().ok());
        _ = self.0.send((request.url.to_string(), token.map(str::to_owned)));
        Box::pin(async { Ok(OutgoingResponse { status: 204, ..OutgoingResponse::default() }) })
    }
}

#[tokio::test]
async fn new_address_of_a_push_notification_gets_the_open_question() {
    let shop = Shop::open(&Bridges::builder().push_notifications(true).build(), &[]);
    let ann = shop.token(Some("ann"), &ALL).await;
    let asked = task(&shop, &ann, said("pay")).await;
    let (sender, mut arrived) = mpsc::unbounded_channel();
    let sender = WebhookSender::builder().client(shop.client.clone()).transport(Addresses(sender)).build();
    let _service = sender.spawn();
    let mut create = async |url: &str, token: &str| {
        let params = json!({ "taskId": asked["id"], "url": url, "id": "1", "token": token });
        assert_eq!(call(&shop, &ann, "CreateTaskPushNotificationConfig", params).await.1["error"], Value::Null);
        let next = tokio::time::timeout(Duration::from_secs(30), arrived.recv()).await.unwrap().unwrap();
        assert_eq!(next, (url.to_owned(), Some(token.to_owned())));
    };

    create("https://example.org/first", "one").await;
    create("https://example.org/second", "one").await;
    create("https://example.org/second", "two").await;
}

#[tokio::test]
async fn address_that_a_person_has_disabled_stays_disabled() {
    let shop = Shop::open(&Bridges::builder().push_notifications(true).build(), &[]);
    let (ann, admin) = (shop.token(Some("ann"), &ALL).await, shop.token(None, &[Scope::Operate, Scope::Admin]).await);
    let asked = task(&shop, &ann, said("pay")).await;
    let address = "https://example.org/hook";
    let params = json!({ "taskId": asked["id"], "url": address, "id": "1" });
    let create =
        async || call(&shop, &ann, "CreateTaskPushNotificationConfig", params.clone()).await.1["error"].clone();
    let listed = async || {
        let (_, text) = shop.send(&admin, "GET", "/api/v1/webhooks", None).await;
        serde_json::from_str::<Value>(&text).unwrap()["items"][0].clone()
    };
    assert_eq!(create().await, Value::Null);
    let path = format!("/api/v1/webhooks/{}", listed().await["id"].as_str().unwrap());

    let disabled = shop.send(&admin, "PUT", &path, Some(json!({ "url": address, "enabled": false }))).await;
    let again = create().await;

    assert_eq!((disabled.0, again), (StatusCode::OK, Value::Null));
    assert_eq!(listed().await["enabled"], false);
}

#[tokio::test]
async fn message_starts_nothing_when_there_is_no_room_for_its_address() {
    let shop = Shop::open(&Bridges::builder().push_notifications(true).build(), &[]);
    let (ann, ben) = (shop.token(Some("ann"), &ALL).await, shop.token(Some("ben"), &ALL).await);
    let push = |text: &str| {
        let mut params = said(text);
        params["configuration"] = json!({ "taskPushNotificationConfig": { "url": "https://example.org/hook" } });
        params
    };
    for number in 0..13 {
        let asked = task(&shop, &ann, message(&format!("m-{number}"), &json!([{ "text": "pay" }]))).await;
        for id in 0..8 {
            let params = json!({ "taskId": asked["id"], "url": "https://example.org/hook", "id": id.to_string() });
            let (_, created) = call(&shop, &ann, "CreateTaskPushNotificationConfig", params).await;
            let is_over = number * 8 + id >= 100;
            assert_eq!(created["error"]["code"], if is_over { json!(-32602) } else { Value::Null }, "{created}");
        }
    }

    let (_, refused) = call(&shop, &ann, "SendMessage", push("hello")).await;
    let of_ben = task(&shop, &ben, push("hello")).await;

    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let (_, listed) = call(&shop, &ann, "ListTasks", json!({})).await;
    assert_eq!(listed["result"]["totalSize"], 13, "{listed}");
    assert_eq!(of_ben["status"]["state"], "TASK_STATE_COMPLETED");
}

#[tokio::test]
async fn answer_with_a_file_is_refused_and_says_why() {
    let brain = brain("Refund").r#loop("Ask", |cx| {
        cx.system("Ask.").tool("ask", |t| {
            let wait = |_: &NoArgs, _: &_| [webhook::<String>("name").on("1").person().prompt("Which name?")];
            t.wait(wait).execute(async |_: NoArgs, _| Ok("asked"))
        })
    });
    let says = |request: &ModelRequest| match request.path.as_str() {
        "Ask/0" => Reply::call("ask", json!({})),
        _ => Reply::text("Done."),
    };
    let runner = Runner::new(ScriptedModel::from_fn(says)).store(MemoryStore::new()).brain(brain);
    let shop = Shop::of(runner, &Bridges::builder().build(), &[]);
    let ann = shop.token(Some("ann"), &ALL).await;
    let asked = task(&shop, &ann, said("hello")).await;
    let mut with_file = message("m-file", &json!([{ "text": "Ann" }, { "raw": "AAAA", "filename": "a.png" }]));
    with_file["message"]["taskId"] = asked["id"].clone();
    let mut alone = message("m-alone", &json!([{ "text": "Ann" }]));
    alone["message"]["taskId"] = asked["id"].clone();

    let (_, refused) = call(&shop, &ann, "SendMessage", with_file).await;
    let done = task(&shop, &ann, alone).await;

    let says = refused["error"]["message"].as_str().unwrap();
    assert!(says.contains("has no files"), "{says}");
    assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED");
}
