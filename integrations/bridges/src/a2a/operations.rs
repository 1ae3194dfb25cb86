//! The operations that give an answer or a stream, whichever binding has brought the request. Those of tasks and of push notifications
//! are in [`tasks`] and in `push`.

use futures::stream::BoxStream;
use futures::{Stream, StreamExt as _};
use positronic_server::Problem;
use positronic_server::extension::RequestContext;
use serde_json::{Value, json};

use super::encoder::TaskEncoder;
use super::error::{ProtocolError, Refusal};
use super::input::{ClientMessage, Configuration, SendParams};
use super::{VERSION, send, tasks};
use crate::leg::Leg;
use crate::shared::Shared;

/// What a stream sends: a task, then its artifacts and its states.
pub(super) type TaskEvents = BoxStream<'static, Result<Value, ProtocolError>>;

/// Refuses a client that asks for another version of the protocol.
pub(super) fn check_version(cx: &RequestContext) -> Result<(), Refusal> {
    let asked = cx.header("a2a-version").map(str::trim).filter(|asked| !matches!(*asked, "" | VERSION));
    asked.map_or(Ok(()), |asked| Err(Refusal::version(asked)))
}

/// Sends a message, and waits until the task has ended or asks something.
pub(super) async fn send_message(shared: &Shared, cx: &RequestContext, params: SendParams) -> Result<Value, Refusal> {
    let send::Sent { row, leg, .. } = send_with_push(shared, cx, &params.message, &params.configuration).await?;
    if !params.configuration.return_immediately {
        let mut events = Box::pin(events(cx, leg, tasks::encoder(cx, shared, &row)?).await?);
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

/// Sends a message, and follows its task until it has ended or asks something.
pub(super) async fn stream_message(
    shared: &Shared,
    cx: &RequestContext,
    params: SendParams,
) -> Result<TaskEvents, Refusal> {
    let send::Sent { row, leg, has_answered } =
        send_with_push(shared, cx, &params.message, &params.configuration).await?;
    let encoder = tasks::encoder(cx, shared, &row)?.answered(has_answered);
    let encoder = encoder.history_length(params.configuration.history_length);
    followed(cx, leg, encoder).await
}

/// Follows a task that has not ended.
pub(super) async fn subscribe(shared: &Shared, cx: &RequestContext, id: &str) -> Result<TaskEvents, Refusal> {
    let (row, leg) = send::subscribed(cx, shared, id).await?;
    let encoder = tasks::encoder(cx, shared, &row)?;
    followed(cx, leg, encoder).await
}

/// Sends a message, and stores where the client wants to hear of its task.
async fn send_with_push(
    shared: &Shared,
    cx: &RequestContext,
    message: &ClientMessage,
    configuration: &Configuration,
) -> Result<send::Sent, Refusal> {
    configuration.check()?;
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

async fn events(
    cx: &RequestContext,
    leg: Leg,
    encoder: TaskEncoder,
) -> Result<impl Stream<Item = Result<Value, Problem>> + Send + use<>, Problem> {
    leg.open(cx.viewer()?, None, encoder).await
}

async fn followed(cx: &RequestContext, leg: Leg, encoder: TaskEncoder) -> Result<TaskEvents, Refusal> {
    let events = events(cx, leg, encoder).await?;
    Ok(events.map(|event| event.map_err(|problem| ProtocolError::of(&problem))).boxed())
}
