//! The binding JSON-RPC: one route for each agent, and the methods of the protocol in the body.

use std::sync::Arc;

use axum::response::Response;
use futures::StreamExt as _;
use positronic_server::extension::{Frame, RequestContext, Route};
use positronic_server::{Problem, ProblemType, Scope};
use schemars::JsonSchema;
use serde_json::{Value, json};

use super::error::{ProtocolError, Refusal};
use super::input::RpcRequest;
use super::send::{TaskEvents, check_version, send_message, stream_message, subscribe};
use super::tasks::{ListParams, TaskParams};
use super::{push, tasks};
use crate::json_rpc_error::json_rpc_problem;
use crate::shared::{MAX_BODY, Shared};

/// An answer of JSON-RPC.
#[derive(JsonSchema)]
#[schemars(rename = "A2aAnswer")]
#[expect(dead_code, reason = "it describes what the server encodes as values")]
struct RpcAnswer {
    jsonrpc: String,
    id: Value,
    #[serde(default)]
    result: Option<Value>,
    #[serde(default)]
    error: Option<Value>,
}

pub(super) fn routes(shared: &Arc<Shared>) -> Vec<Route> {
    let route = |path, summary| {
        let shared = Arc::clone(shared);
        Route::post(path, summary, move |cx| {
            let shared = Arc::clone(&shared);
            async move { answer(&shared, &cx).await }
        })
        .scopes(&[Scope::Read])
        .takes::<RpcRequest>()
        .max_body(MAX_BODY)
        .waits()
        .returns::<RpcAnswer>(200)
        .streams()
        .problems(&[ProblemType::NotAllowed, ProblemType::NotAnApprover, ProblemType::TooManyStreams])
        .problems_as("application/json", json_rpc_problem)
    };
    vec![
        route("/api/v1/a2a", "Send a request of A2A"),
        route("/api/v1/a2a/{title}", "Send a request of A2A to the agent of a brain"),
    ]
}

/// Answers a request.
async fn answer(shared: &Shared, cx: &RequestContext) -> Result<Response, Problem> {
    let request: RpcRequest = match cx.json() {
        Ok(request) => request,
        Err(problem) => {
            let refusal = Refusal::invalid_request(problem.message());
            return cx.answer(200, &error_of(&Value::Null, &refusal.into_error()?));
        }
    };
    match answered(shared, cx, &request).await {
        Ok(Answer::Value(result)) => cx.answer(200, &result_of(&request.id, &result)),
        Ok(Answer::Stream(events)) => stream(cx, &request.id, events),
        Err(refusal) => cx.answer(200, &error_of(&request.id, &refusal.into_error()?)),
    }
}

enum Answer {
    Value(Value),
    Stream(TaskEvents),
}

fn result_of(id: &Value, result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

fn error_of(id: &Value, error: &ProtocolError) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": error.json_rpc() })
}

async fn answered(shared: &Shared, cx: &RequestContext, request: &RpcRequest) -> Result<Answer, Refusal> {
    if request.jsonrpc != "2.0" {
        return Err(Refusal::invalid_request("`jsonrpc` has to be `2.0`"));
    }
    check_version(cx)?;
    Ok(Answer::Value(match request.method.as_str() {
        "SendMessage" => send_message(shared, cx, request.read()?).await?,
        "SendStreamingMessage" => return stream_message(shared, cx, request.read()?).await.map(Answer::Stream),
        "SubscribeToTask" => {
            let params: TaskParams = request.read()?;
            return subscribe(shared, cx, &params.id).await.map(Answer::Stream);
        }
        "GetTask" => tasks::get(cx, shared, &request.read()?).await?,
        "CancelTask" => tasks::cancel(cx, shared, &request.read::<TaskParams>()?.id).await?,
        "ListTasks" => {
            let params = if request.params.is_null() { ListParams::default() } else { request.read()? };
            tasks::list(cx, shared, &params).await?
        }
        "CreateTaskPushNotificationConfig" => push::create(cx, shared, &request.read()?).await?,
        "GetTaskPushNotificationConfig" => push::get(cx, shared, &request.read()?).await?,
        "ListTaskPushNotificationConfigs" => push::list(cx, shared, &request.read()?).await?,
        "DeleteTaskPushNotificationConfig" => push::delete(cx, shared, &request.read()?).await?,
        "GetExtendedAgentCard" => return Err(Refusal::no_extended_card()),
        unknown => return Err(Refusal::unknown_method(unknown)),
    }))
}

fn stream(cx: &RequestContext, id: &Value, events: TaskEvents) -> Result<Response, Problem> {
    let id = id.clone();
    cx.stream(events.map(move |event| {
        Frame::json(&match event {
            Ok(event) => result_of(&id, &event),
            Err(error) => error_of(&id, &error),
        })
    }))
}
