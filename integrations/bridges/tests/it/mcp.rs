//! Brains as tools of MCP: by our own client over HTTP and over streams, and message by message.

use axum::body::to_bytes;
use axum::http::StatusCode;
use positronic_bridges::Bridges;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{EventKind, ToolResult};
use positronic_core::store::MemoryStore;
use positronic_mcp::{Mcp, McpHttp, McpOptions, McpServer, McpStream};
use positronic_server::extension::LocalCaller;
use positronic_server::{Caller, Options, Scope, Shutdown};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use crate::support::Shop;

const ALL: [Scope; 3] = [Scope::Read, Scope::Run, Scope::Decide];
const PATH: &str = "/api/v1/mcp";
const BOTH: (&str, &str) = ("accept", "application/json, text/event-stream");

/// Runs a brain whose model calls one tool of a server, and returns the result of the call.
async fn call(server: McpServer, tool: &str, arguments: Value) -> ToolResult {
    let calls = Reply::call(tool, arguments);
    let model = ScriptedModel::new([calls, Reply::text("done")]);
    let runner = Runner::new(model).store(MemoryStore::new());
    let caller = brain("Caller").r#loop("Work", move |cx| cx.system("Work.").input("Go.").plugin(Mcp::of([&server])));
    let run = runner.start(caller, ()).await.unwrap();
    _ = run.result().await;
    let log = runner.client().events(run.id(), positronic_core::record::Seq(0)).await.unwrap();
    let result = log.iter().find_map(|event| match &event.kind {
        EventKind::LoopToolResult { result, .. } => Some(result.clone()),
        _ => None,
    });
    result.unwrap_or_else(|| panic!("the tool has no result: {log:?}"))
}

/// Connects our own client with a shop.
async fn over_http(shop: &Shop, token: &str) -> McpServer {
    let http = McpHttp::new(format!("{}{PATH}", shop.listen().await)).bearer(token);
    McpServer::new("shop", http, McpOptions::builder().ask(false).build()).unwrap()
}

#[tokio::test]
async fn brain_calls_a_brain_over_http() {
    let shop = Shop::new();
    let ann = shop.token(Some("ann"), &ALL).await;

    let result = call(over_http(&shop, &ann).await, "shop__Refund", json!({ "message": "hello" })).await;

    let ToolResult::Success { output, .. } = result else { panic!("{result:?}") };
    assert!(output.to_string().contains("You said hello."), "{output}");
    assert!(!output.to_string().contains("only the server knows"), "a state is no result: {output}");
}

#[tokio::test]
async fn file_of_a_run_is_a_link_that_its_caller_can_read() {
    let model = ScriptedModel::new([Reply::call("save", json!({})), Reply::text("Saved.")]);
    let write = brain("Write").r#loop("Chat", |cx| {
        cx.system("Save.").tool("save", |t| {
            t.description("Saves a recipe").execute(async |_: NoArgs, cx| {
                cx.save_file("recipe.md", "text/markdown", "# Omelette").await?;
                Ok("saved")
            })
        })
    });
    let runner = Runner::new(model).store(MemoryStore::new()).brain(write);
    let shop = Shop::of(runner, &Bridges::builder().build(), &[]);
    let (ann, ben) = (shop.token(Some("ann"), &ALL).await, shop.token(Some("ben"), &ALL).await);
    let params = json!({ "name": "Write", "arguments": { "message": "go" } });
    let answer = rpc(&shop, &ann, "tools/call", params, json!({})).await;
    let content = answer["result"]["content"].as_array().unwrap();
    let link = content.iter().find(|block| block["type"] == "resource_link").unwrap();
    let path = link["uri"].as_str().unwrap().strip_prefix("http://127.0.0.1:4747").unwrap();

    assert_eq!(
        (&link["name"], &link["mimeType"], &link["size"]),
        (&json!("recipe.md"), &json!("text/markdown"), &json!(10))
    );
    assert_eq!(shop.send(&ann, "GET", path, None).await, (StatusCode::OK, "# Omelette".to_owned()));
    assert_eq!(shop.send(&ben, "GET", path, None).await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn brain_calls_a_brain_over_streams() {
    let shop = Shop::new();
    let options = Options::builder().brains(shop.runner.clone()).build();
    let local = LocalCaller::new(shop.client.clone(), options, Caller::service("ann", ALL), "mcp");
    let stream = McpStream::new(move || {
        let local = local.clone();
        async move {
            let (ours, theirs) = tokio::io::duplex(1 << 16);
            let (input, output) = tokio::io::split(theirs);
            tokio::spawn(async move { Bridges::builder().build().serve_mcp(local, input, output).await });
            Ok(tokio::io::split(ours))
        }
    });
    let server = McpServer::new("shop", stream, McpOptions::builder().ask(false).build()).unwrap();

    let result = call(server, "shop__Refund", json!({ "message": "hello" })).await;

    assert!(format!("{result:?}").contains("You said hello."), "{result:?}");
}

#[tokio::test]
async fn call_in_flight_names_its_run_when_the_server_stops() {
    let endless = brain("Order").step("Wait", async |_| {
        std::future::pending::<()>().await;
        Ok(())
    });
    let runner = Runner::new(ScriptedModel::new([])).store(MemoryStore::new()).brain(endless);
    let bridges = Bridges::builder().program("acme").build();
    let shop = Shop::of(runner, &bridges, &[]);
    let shutdown = Shutdown::default();
    let options = Options::builder().brains(shop.runner.clone()).shutdown(shutdown.clone()).build();
    let local = LocalCaller::new(shop.client.clone(), options, Caller::service("ann", ALL), "mcp");
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (answers, mut requests) = tokio::io::split(ours);
    let mut answers = BufReader::new(answers).lines();
    let (input, output) = tokio::io::split(theirs);
    let serving = tokio::spawn(async move { bridges.serve_mcp(local, input, output).await });
    let client = json!({
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" },
    });
    let call = json!({ "name": "Order", "arguments": {}, "_meta": { "progressToken": 7 } });
    for message in [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call }),
    ] {
        requests.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }
    let mut next = async || -> Value { serde_json::from_str(&answers.next_line().await.unwrap().unwrap()).unwrap() };
    assert_eq!(next().await["id"], 1);
    let begun = next().await["params"]["message"].as_str().unwrap().to_owned();
    let run = begun.strip_prefix("run ").unwrap();

    shutdown.begin();
    let mut answer = next().await;
    while answer["id"] != 2 {
        answer = next().await;
    }

    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains(&format!("The run {run} has no result yet: the server is stopping")), "{text}");
    assert!(text.contains(&format!("`acme work {run}`")), "{text}");
    assert_eq!(answer["result"]["_meta"]["positronic/run"], *run);
    serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn client_without_forms_gets_the_command_that_decides() {
    let shop = Shop::new();
    let ann = shop.token(Some("ann"), &ALL).await;

    let result = call(over_http(&shop, &ann).await, "shop__Refund", json!({ "message": "pay" })).await;

    let text = format!("{result:?}");
    assert!(matches!(result, ToolResult::Error { .. }), "the call has no result yet: {text}");
    assert!(text.contains("positronic approve") && text.contains("Chat/0.0"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn call_that_outlasts_its_wait_names_the_webhook_and_the_command_of_the_program() {
    let program = brain("Order").r#loop("Chat", |cx| {
        cx.system("Order.").tool("confirm", |t| {
            t.description("Waits for the shop")
                .wait(|_: &NoArgs, _| [webhook::<String>("shop").on("order 7")])
                .execute(async |_, _| Ok("sent"))
        })
    });
    let model = ScriptedModel::new([Reply::call("confirm", json!({})), Reply::text("Done.")]);
    let runner = Runner::new(model).store(MemoryStore::new()).brain(program);
    let shop = Shop::of(runner, &Bridges::builder().program("acme").build(), &[]);
    let ann = shop.token(Some("ann"), &ALL).await;
    let params = json!({ "name": "Order", "arguments": { "message": "go" } });

    let answer = rpc(&shop, &ann, "tools/call", params, json!({})).await;

    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert_eq!(answer["result"]["isError"], true, "the call has no result yet: {text}");
    assert!(text.contains("waits for another program: the webhook `shop`"), "{text}");
    assert!(text.contains("acme send --webhook shop --identifier 'order 7' --payload JSON"), "{text}");
}

#[tokio::test]
async fn ended_session_answers_without_content() {
    let shop = Shop::new();
    let ann = shop.token(Some("ann"), &ALL).await;
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" },
    });
    let first = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
    let begun = shop.send_with(&ann, "POST", PATH, Some(first), &[BOTH]).await;
    let session = begun.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let headers = [("mcp-session-id", session.as_str())];

    let ended = shop.send_with(&ann, "DELETE", PATH, None, &headers).await;
    let again = shop.send_with(&ann, "DELETE", PATH, None, &headers).await;

    assert_eq!(ended.status(), StatusCode::NO_CONTENT, "clients warn about anything but 200 and 204");
    assert_eq!(again.status(), StatusCode::NOT_FOUND);
}

/// Sends a request in the protocol without sessions, and returns its answer.
async fn rpc(shop: &Shop, token: &str, method: &str, params: Value, capabilities: Value) -> Value {
    messages(shop, token, method, params, capabilities).await.pop().unwrap()
}

/// Sends a request in the protocol without sessions, and returns what the server notifies, and its answer.
async fn messages(shop: &Shop, token: &str, method: &str, mut params: Value, capabilities: Value) -> Vec<Value> {
    let version = "2026-07-28";
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    });
    let name = params["name"].as_str().or(params["taskId"].as_str()).unwrap_or_default().to_owned();
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let headers = [BOTH, ("mcp-protocol-version", version), ("mcp-method", method), ("mcp-name", name.as_str())];
    let headers = if name.is_empty() { &headers[..3] } else { &headers[..] };
    let response = shop.send_with(token, "POST", PATH, Some(body), headers).await;
    let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    let lines: Vec<_> = text.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line)).collect();
    let messages: Vec<_> = lines.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok()).collect();
    assert!(!messages.is_empty(), "{method} has no answer: {text}");
    messages
}

fn forms() -> Value {
    json!({ "elicitation": { "form": {} } })
}

fn pay() -> Value {
    json!({ "name": "Refund", "arguments": { "message": "pay" } })
}

/// Answers the forms of a result, as the parameters of the next request.
fn answered(result: &Value, action: &str, content: &Value) -> Value {
    let forms = result["inputRequests"].as_object().unwrap().keys();
    let answers = forms.map(|key| (key.clone(), json!({ "action": action, "content": content })));
    Value::Object(answers.collect())
}

/// Returns the parameters of the second request of a call.
fn again(result: &Value, action: &str, content: &Value) -> Value {
    let mut params = pay();
    params["requestState"] = result["requestState"].clone();
    params["inputResponses"] = answered(result, action, content);
    params
}

#[tokio::test]
async fn approval_is_a_form_and_its_answer_is_the_decision() {
    let shop = Shop::open(&Bridges::builder().build(), &["iban"]);
    let ann = shop.token(Some("ann"), &ALL).await;

    let asked = rpc(&shop, &ann, "tools/call", pay(), forms()).await;
    let asked = &asked["result"];
    let closed = rpc(&shop, &ann, "tools/call", again(asked, "cancel", &Value::Null), forms()).await;
    let edited = json!({ "approve": true, "arguments": r#"{"amount": 3, "iban": "[redacted]"}"# });
    let done = rpc(&shop, &ann, "tools/call", again(asked, "accept", &edited), forms()).await;

    assert_eq!(asked["resultType"], "input_required");
    let form = asked["inputRequests"].as_object().unwrap().values().next().unwrap();
    let message = form["params"]["message"].as_str().unwrap();
    assert!(message.contains("[redacted]") && !message.contains("DE02"), "{message}");
    assert_eq!(closed["result"]["isError"], true, "a closed form leaves the question open: {closed}");
    assert_eq!(done["result"]["content"][0]["text"], "Done.", "{done}");
    let run = asked["requestState"].as_str().unwrap();
    let log = shop.client.events(&positronic_core::record::RunId::new(run), positronic_core::record::Seq(0)).await;
    assert!(json!(log.unwrap()).to_string().contains("paid 3 to DE02"), "the log keeps the secret");
}

#[tokio::test]
async fn answer_to_a_form_after_the_decision_of_another_person_is_the_same_or_says_that_it_was_not_recorded() {
    let shop = Shop::new();
    let ann = shop.token(Some("ann"), &ALL).await;
    let mut answered = Vec::new();

    for (action, content) in [("accept", json!({ "approve": true })), ("decline", Value::Null), ("cancel", Value::Null)]
    {
        let asked = rpc(&shop, &ann, "tools/call", pay(), forms()).await["result"].clone();
        let run = positronic_core::record::RunId::new(asked["requestState"].as_str().unwrap());
        let open = positronic_core::machine::pending(&shop.client.state(&run).await.unwrap());
        shop.client.approve(&run, &open[0].call, "boss").await.unwrap();
        answered.push(rpc(&shop, &ann, "tools/call", again(&asked, action, &content), forms()).await["result"].clone());
    }

    let [same, other, closed] = &answered[..] else { panic!("{answered:?}") };
    assert_eq!(same["content"][0]["text"], "Done.", "{same}");
    assert_eq!(closed["content"][0]["text"], "Done.", "{closed}");
    let text = other["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("already approved by boss") && text.contains("run_status"), "{text}");
}

#[tokio::test]
async fn call_belongs_to_its_user_and_only_who_may_decide_is_asked() {
    let shop = Shop::new();
    let (ann, ben) = (shop.token(Some("ann"), &ALL).await, shop.token(Some("ben"), &ALL).await);
    let powerless = shop.token(Some("ann"), &[Scope::Read, Scope::Run]).await;
    let reader = shop.token(Some("ann"), &[Scope::Read]).await;
    let yes = json!({ "approve": true });

    let asked = rpc(&shop, &ann, "tools/call", pay(), forms()).await["result"].clone();
    let stolen = rpc(&shop, &ben, "tools/call", again(&asked, "accept", &yes), forms()).await;
    let status = json!({ "name": "run_status", "arguments": { "run": asked["requestState"] } });
    let read = rpc(&shop, &ben, "tools/call", status.clone(), json!({})).await;
    let not_asked = rpc(&shop, &powerless, "tools/call", pay(), forms()).await;
    let refused = rpc(&shop, &powerless, "tools/call", again(&asked, "accept", &yes), forms()).await;
    let tools = rpc(&shop, &reader, "tools/list", json!({}), json!({})).await;
    let own = rpc(&shop, &reader, "tools/call", status, json!({})).await;

    assert!(stolen["error"]["message"].as_str().unwrap().contains("there is no run"), "{stolen}");
    assert_eq!(read["result"]["isError"], true, "{read}");
    assert_eq!(not_asked["result"]["isError"], true, "{not_asked}");
    assert!(refused["result"]["content"][0]["text"].as_str().unwrap().contains("scope"), "{refused}");
    assert_eq!(tools["result"]["tools"].as_array().unwrap().len(), 1, "a reader starts no runs: {tools}");
    assert!(own["result"]["content"][0]["text"].as_str().unwrap().contains("waits"), "{own}");
}

fn tasks() -> Value {
    json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } })
}

#[tokio::test]
async fn subscription_reports_the_tasks_that_its_caller_sees() {
    let shop = Shop::open(&Bridges::builder().build(), &["iban"]);
    let (ann, ben) = (shop.token(Some("ann"), &ALL).await, shop.token(Some("ben"), &ALL).await);
    let created = rpc(&shop, &ann, "tools/call", pay(), tasks()).await["result"]["taskId"].clone();
    let done = rpc(&shop, &ann, "tools/call", pay(), tasks()).await["result"]["taskId"].clone();
    let run = positronic_core::record::RunId::new(done.as_str().unwrap());
    shop.client.cancel(&run, "enough").await.unwrap();
    let status =
        async |id: &Value| rpc(&shop, &ann, "tasks/get", json!({ "taskId": id }), tasks()).await["result"].clone();
    while status(&done).await["status"] != "cancelled" {}
    let listen = |ids: Value| json!({ "notifications": { "taskIds": ids } });

    let ended = messages(&shop, &ann, "subscriptions/listen", listen(json!([done, "unknown"])), tasks()).await;
    let of_ben = messages(&shop, &ben, "subscriptions/listen", listen(json!([created, done])), tasks()).await;
    let without = rpc(&shop, &ann, "subscriptions/listen", listen(json!([done])), forms()).await;
    let many = rpc(&shop, &ann, "subscriptions/listen", listen(json!(vec!["x"; 65])), tasks()).await;
    let no_list = rpc(&shop, &ann, "subscriptions/listen", listen(json!(7)), tasks()).await;
    let of_tools = json!({ "notifications": { "toolsListChanged": true } });
    let other = rpc(&shop, &ann, "subscriptions/listen", of_tools, tasks()).await;

    let methods: Vec<_> = ended.iter().map(|message| message["method"].clone()).collect();
    assert_eq!(methods, [json!("notifications/subscriptions/acknowledged"), json!("notifications/tasks"), Value::Null]);
    assert_eq!(ended[0]["params"]["notifications"]["taskIds"], json!([done]));
    let mut told = ended[1]["params"].clone();
    assert_eq!(told["_meta"]["io.modelcontextprotocol/subscriptionId"], 1);
    let mut read = status(&done).await;
    for value in [&mut told, &mut read] {
        value.as_object_mut().unwrap().retain(|name, _| name != "_meta" && name != "resultType");
    }
    assert_eq!(told, read, "it is what `tasks/get` returns");
    assert_eq!(ended[2]["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 1);
    assert_eq!((of_ben.len(), &of_ben[0]["params"]["notifications"]["taskIds"]), (2, &json!([])), "{of_ben:?}");
    assert_eq!(without["error"]["code"], -32021, "{without}");
    assert!(without["error"]["data"]["requiredCapabilities"]["extensions"].is_object(), "{without}");
    assert_eq!((&many["error"]["code"], &no_list["error"]["code"]), (&json!(-32602), &json!(-32602)));
    assert_eq!(other["error"]["code"], -32601, "no other changes are reported: {other}");
}

#[tokio::test]
async fn run_that_waits_is_a_task_which_its_user_answers() {
    let shop = Shop::new();
    let (ann, ben) = (shop.token(Some("ann"), &ALL).await, shop.token(Some("ben"), &ALL).await);
    let tasks = || json!({ "extensions": { "io.modelcontextprotocol/tasks": {} }, "elicitation": { "form": {} } });

    let created = rpc(&shop, &ann, "tools/call", pay(), tasks()).await["result"].clone();
    let task = || json!({ "taskId": created["taskId"] });
    let waiting = rpc(&shop, &ann, "tasks/get", task(), tasks()).await["result"].clone();
    let hidden = rpc(&shop, &ben, "tasks/get", task(), tasks()).await;
    let cancelled = rpc(&shop, &ann, "tasks/cancel", task(), tasks()).await;
    let mut update = task();
    update["inputResponses"] = answered(&waiting, "accept", &json!({ "approve": true }));
    rpc(&shop, &ann, "tasks/update", update, tasks()).await;
    let done = loop {
        let read = rpc(&shop, &ann, "tasks/get", task(), tasks()).await["result"].clone();
        if read["status"] != "working" {
            break read;
        }
    };

    assert_eq!((&created["resultType"], &waiting["status"]), (&json!("task"), &json!("input_required")));
    assert!(hidden["error"].is_object(), "{hidden}");
    assert!(cancelled["error"].is_object(), "to cancel needs the scope `operate`: {cancelled}");
    assert_eq!((&done["status"], &done["result"]["content"][0]["text"]), (&json!("completed"), &json!("Done.")));
}

#[tokio::test]
async fn session_belongs_to_the_caller_that_began_it() {
    let shop = Shop::new();
    let (ann, ben) = (shop.token(Some("ann"), &ALL).await, shop.token(Some("ben"), &ALL).await);
    let client = json!({ "name": "test", "version": "1" });
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
    let begun = shop.send_with(&ann, "POST", PATH, Some(body), &[BOTH]).await;
    let session = begun.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let list = || Some(json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" }));
    let headers = [BOTH, ("mcp-session-id", session.as_str())];
    let initialized = Some(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    shop.send_with(&ann, "POST", PATH, initialized, &headers).await;

    let own = shop.send_with(&ann, "POST", PATH, list(), &headers).await.status();
    let other = shop.send_with(&ben, "POST", PATH, list(), &headers).await.status();
    let ended = shop.send_with(&ben, "DELETE", PATH, None, &headers).await.status();

    assert_eq!((own, other, ended), (StatusCode::OK, StatusCode::NOT_FOUND, StatusCode::NOT_FOUND));
}

/// Returns the answers to the forms of a result until it has no more, with the message of each form before.
async fn insist(shop: &Shop, token: &str, content: &Value) -> (Vec<String>, Value) {
    let (mut messages, mut result) =
        (Vec::new(), rpc(shop, token, "tools/call", pay(), forms()).await["result"].clone());
    while result["resultType"] == "input_required" {
        let form = result["inputRequests"].as_object().unwrap().values().next().unwrap();
        messages.push(form["params"]["message"].as_str().unwrap().to_owned());
        result = rpc(shop, token, "tools/call", again(&result, "accept", content), forms()).await["result"].clone();
    }
    (messages, result)
}

#[tokio::test]
async fn answer_that_does_not_fit_is_asked_again_with_the_reason_and_three_end_the_call() {
    let shop = Shop::new();
    let ann = shop.token(Some("ann"), &ALL).await;
    let cases = [
        (json!({ "accept": true }), "`approve` is neither true nor false"),
        (json!({ "approve": true, "arguments": r#"{"amount": "x", "iban": "DE02"}"# }), "/amount: "),
    ];

    for (content, reason) in cases {
        let (messages, result) = insist(&shop, &ann, &content).await;

        assert_eq!(messages.len(), 3, "{messages:?}");
        assert!(!messages[0].contains("not recorded") && messages[0].contains("May `pay` run"), "{}", messages[0]);
        assert!(messages[1].contains(reason) && messages[1].contains("May `pay` run"), "{}", messages[1]);
        let text = result["content"].to_string();
        assert!(result["isError"] == true && text.contains("positronic approve") && text.contains(reason), "{text}");
    }
}

#[tokio::test]
async fn answer_to_a_task_that_does_not_fit_is_refused_with_the_reason() {
    let shop = Shop::new();
    let ann = shop.token(Some("ann"), &ALL).await;
    let tasks = || json!({ "extensions": { "io.modelcontextprotocol/tasks": {} }, "elicitation": { "form": {} } });
    let created = rpc(&shop, &ann, "tools/call", pay(), tasks()).await["result"].clone();
    let task = json!({ "taskId": created["taskId"] });
    let waiting = rpc(&shop, &ann, "tasks/get", task.clone(), tasks()).await["result"].clone();
    let mut update = task;
    update["inputResponses"] = answered(&waiting, "accept", &json!({ "accept": true }));

    let refused = rpc(&shop, &ann, "tasks/update", update, tasks()).await;

    let message = refused["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("`approve` is neither true nor false"), "{refused}");
}

#[tokio::test]
async fn result_says_which_calls_did_not_run() {
    let shop = Shop::new();
    let ann = shop.token(Some("ann"), &ALL).await;
    let asked = rpc(&shop, &ann, "tools/call", pay(), forms()).await["result"].clone();

    let no = json!({ "approve": false, "reason": "too much" });
    let done = rpc(&shop, &ann, "tools/call", again(&asked, "accept", &no), forms()).await["result"].clone();
    let status = json!({ "name": "run_status", "arguments": { "run": asked["requestState"] } });
    let read = rpc(&shop, &ann, "tools/call", status, forms()).await["result"].clone();

    let said = "The call of `pay` did not run: a person has rejected it: too much.";
    assert_eq!((&done["content"][0]["text"], &done["content"][1]["text"]), (&json!("Done."), &json!(said)));
    assert_eq!(read["content"], done["content"]);
}

#[tokio::test]
async fn arguments_that_do_not_fit_the_schema_are_refused_with_their_names() {
    let shop = Shop::new();
    let ann = shop.token(Some("ann"), &ALL).await;
    let call = async |name: &str, arguments: Value| {
        let params = json!({ "name": name, "arguments": arguments });
        rpc(&shop, &ann, "tools/call", params, forms()).await
    };

    let number = call("Refund", json!({ "message": 7 })).await;
    let unknown = call("Refund", json!({ "message": "hello", "version": "1.0" })).await;
    let status = call("run_status", json!({ "run": 5 })).await;

    assert_eq!(number["result"]["content"][0]["text"], "`message`: expected a text that is not empty");
    let text = unknown["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("`version`") && !text.contains("/options") && !text.contains('\n'), "{text}");
    assert_eq!(status["error"]["message"], "`run`: expected the id as a text");
    assert!(shop.client.store().runs(&Default::default()).await.unwrap().is_empty(), "no run has begun");
}
