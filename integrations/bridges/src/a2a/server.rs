//! The methods of the protocol.

use axum::response::Response;
use futures::{Stream, StreamExt as _};
use positronic_server::Problem;
use positronic_server::extension::{Frame, RequestContext};
use serde_json::{Value, json};

use super::encoder::TaskEncoder;
use super::error::Refusal;
use super::input::{ClientMessage, Configuration, ListParams, RpcRequest, SendParams, TaskParams};
use super::{VERSION, push, send, tasks};
use crate::bridges::Shared;
use crate::leg::Leg;

/// Answers a request.
pub(super) async fn answer(shared: &Shared, cx: &RequestContext) -> Result<Response, Problem> {
    let request: RpcRequest = match cx.json() {
        Ok(request) => request,
        Err(problem) => {
            let refusal = Refusal::invalid_request(super::error::text(&problem));
            return cx.answer(200, &refusal.answer(&Value::Null)?);
        }
    };
    match answered(shared, cx, &request).await {
        Ok(Answer::Value(result)) => cx.answer(200, &result_of(&request.id, &result)),
        Ok(Answer::Stream(response)) => Ok(response),
        Err(refusal) => cx.answer(200, &refusal.answer(&request.id)?),
    }
}

enum Answer {
    Value(Value),
    Stream(Response),
}

fn result_of(id: &Value, result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

async fn answered(shared: &Shared, cx: &RequestContext, request: &RpcRequest) -> Result<Answer, Refusal> {
    if request.jsonrpc != "2.0" {
        return Err(Refusal::invalid_request("`jsonrpc` has to be `2.0`"));
    }
    if let Some(asked) = cx.header("a2a-version").map(str::trim).filter(|asked| !matches!(*asked, "" | VERSION)) {
        return Err(Refusal::version(asked));
    }
    Ok(Answer::Value(match request.method.as_str() {
        "SendMessage" => sent(shared, cx, request.read()?).await?,
        "SendStreamingMessage" => return streamed(shared, cx, request).await,
        "SubscribeToTask" => {
            let params: TaskParams = request.read()?;
            let (row, leg) = send::subscribed(cx, shared, &params.id).await?;
            let encoder = tasks::encoder(cx, shared, &row)?;
            return stream(shared, cx, &request.id, leg, encoder).await;
        }
        "GetTask" => tasks::get(cx, shared, &request.read()?).await?,
        "CancelTask" => tasks::cancel(cx, shared, &request.read()?).await?,
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

/// Sends a message, and stores where the client wants to hear of its task.
async fn send_with_push(
    shared: &Shared,
    cx: &RequestContext,
    message: &ClientMessage,
    configuration: &Configuration,
) -> Result<send::Sent, Refusal> {
    let push = configuration.task_push_notification_config.as_ref();
    if let Some(push) = push {
        push.check(cx, shared, &message.task_id).await?;
    }
    let sent = send::send(cx, shared, message).await?;
    if let Some(push) = push {
        push.store(cx, &sent.row).await?;
    }
    Ok(sent)
}

/// Sends a message, and waits until the task has ended or asks something.
async fn sent(shared: &Shared, cx: &RequestContext, params: SendParams) -> Result<Value, Refusal> {
    let send::Sent { row, leg, .. } = send_with_push(shared, cx, &params.message, &params.configuration).await?;
    if !params.configuration.return_immediately {
        let mut events = Box::pin(events(shared, cx, leg, tasks::encoder(cx, shared, &row)?).await?);
        let mut last = Ok(());
        cx.wait(async {
            while let Some(event) = events.next().await {
                last = event.map(drop);
            }
        })
        .await?;
        last?;
    }
    Ok(json!({ "task": tasks::read(cx, shared, &row, params.configuration.history_length).await? }))
}

async fn streamed(shared: &Shared, cx: &RequestContext, request: &RpcRequest) -> Result<Answer, Refusal> {
    let params: SendParams = request.read()?;
    let send::Sent { row, leg, has_answered } =
        send_with_push(shared, cx, &params.message, &params.configuration).await?;
    let encoder = tasks::encoder(cx, shared, &row)?.answered(has_answered);
    let encoder = encoder.history_length(params.configuration.history_length);
    stream(shared, cx, &request.id, leg, encoder).await
}

async fn events(
    shared: &Shared,
    cx: &RequestContext,
    leg: Leg,
    encoder: TaskEncoder,
) -> Result<impl Stream<Item = Result<Value, Problem>> + Send + use<>, Problem> {
    let (viewer, reader) = (cx.viewer()?, shared.read(cx.client(), &leg));
    leg.open(viewer, reader, None, encoder).await
}

async fn stream(
    shared: &Shared,
    cx: &RequestContext,
    id: &Value,
    leg: Leg,
    encoder: TaskEncoder,
) -> Result<Answer, Refusal> {
    let (events, id) = (events(shared, cx, leg, encoder).await?, id.clone());
    let frames = events.map(move |event| {
        let answer = event.map(|event| result_of(&id, &event)).or_else(|problem| Refusal::from(problem).answer(&id));
        Frame::json(&answer.unwrap_or_else(|problem| internal(&id, &problem)))
    });
    Ok(Answer::Stream(cx.stream(frames)?))
}

/// Returns a problem without an error of its own in the protocol, after the stream has begun.
fn internal(id: &Value, problem: &Problem) -> Value {
    let error = json!({ "code": -32603, "message": super::error::text(problem) });
    json!({ "jsonrpc": "2.0", "id": id, "error": error })
}
