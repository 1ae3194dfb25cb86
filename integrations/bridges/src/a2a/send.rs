//! Sends a message, whichever binding has brought it, and follows its task. The message goes to the questions of a task, to an open task,
//! or to a new one.

use std::sync::Arc;

use futures::stream::BoxStream;
use futures::{Stream, StreamExt as _};
use positronic_core::definition::BrainDefinition;
use positronic_core::machine::pending;
use positronic_core::record::RunSummary;
use positronic_core::store::content_hash;
use positronic_server::extension::{Decision, RequestContext, ThreadMessage};
use positronic_server::{Problem, Scope};
use serde_json::{Value, json};

use super::card::{has_loop, title, unknown};
use super::encoder::{TaskEncoder, context_of};
use super::error::{ProtocolError, Refusal};
use super::input::{ClientMessage, Configuration, Said, SendParams};
use super::tasks::row;
use super::{VERSION, tasks};
use crate::answer_form::decision;
use crate::decisions::{Decisions, check_answers};
use crate::leg::Leg;
use crate::shared::Shared;
use crate::thread::{Thread, question, text_question, with_place_of_options};

/// What a stream sends: a task, then its artifacts and its states.
pub(super) type TaskEvents = BoxStream<'static, Result<Value, ProtocolError>>;

/// Refuses a client that asks for another version of the protocol.
pub(super) fn check_version(cx: &RequestContext) -> Result<(), Refusal> {
    let asked = cx.header("a2a-version").map(str::trim).filter(|asked| !matches!(*asked, "" | VERSION));
    asked.map_or(Ok(()), |asked| Err(Refusal::version(asked)))
}

/// Sends a message, and waits until the task has ended or asks something.
pub(super) async fn send_message(shared: &Shared, cx: &RequestContext, params: SendParams) -> Result<Value, Refusal> {
    let Sent { row, leg, .. } = send_with_push(shared, cx, &params.message, &params.configuration).await?;
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
    let Sent { row, leg, has_answered } = send_with_push(shared, cx, &params.message, &params.configuration).await?;
    let encoder = tasks::encoder(cx, shared, &row)?.answered(has_answered);
    let encoder = encoder.history_length(params.configuration.history_length);
    followed(cx, leg, encoder).await
}

/// Follows a task that has not ended.
pub(super) async fn subscribe(shared: &Shared, cx: &RequestContext, id: &str) -> Result<TaskEvents, Refusal> {
    let (row, leg) = subscribed(cx, shared, id).await?;
    let encoder = tasks::encoder(cx, shared, &row)?;
    followed(cx, leg, encoder).await
}

/// Sends a message, and stores where the client wants to hear of its task.
async fn send_with_push(
    shared: &Shared,
    cx: &RequestContext,
    message: &ClientMessage,
    configuration: &Configuration,
) -> Result<Sent, Refusal> {
    configuration.check()?;
    let push = configuration.task_push_notification_config.as_ref();
    if let Some(push) = push {
        push.check(cx, shared, &message.task_id).await?;
    }
    let sent = send(cx, shared, message).await?;
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

/// A message that has been sent.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) row: RunSummary,
    pub(super) leg: Leg,
    /// Whether it has answered what the run asked.
    pub(super) has_answered: bool,
}

/// Sends a message.
///
/// # Errors
///
/// The reason for which it was refused; nothing has been started then.
pub(super) async fn send(cx: &RequestContext, shared: &Shared, message: &ClientMessage) -> Result<Sent, Refusal> {
    let said = message.said()?;
    if message.message_id.is_empty() {
        return Err(Refusal::invalid_params("`message.messageId` is missing"));
    }
    if !message.task_id.is_empty() {
        return to_task(cx, shared, message, said).await;
    }
    if !said.answers.is_empty() {
        return Err(Refusal::invalid_params("an answer to a question needs the `taskId` of its task"));
    }
    let brain = brain(cx, message)?;
    let files = said.files.clone();
    let (text, options) = opening(&brain, said)?;
    let context = match message.context_id.as_str() {
        "" => new_context(cx, &message.message_id)?,
        context => context.to_owned(),
    };
    let thread = Thread::find(cx, &context).await?;
    if !thread.is_conversation() {
        let text = "this context is a run outside of a conversation, which takes no further tasks";
        return Err(Refusal::unsupported(text));
    }
    // A message that is sent again gets the task that it has begun.
    let is_known = thread.has_message(cx, &message.message_id).await?;
    if let Some(last) = thread.last().filter(|last| !is_known && !last.status.is_over()) {
        if *last.brain != *brain.title {
            let text = format!("the context has the open task `{}` of another agent", last.run);
            return Err(Refusal::unsupported(text));
        }
        refuse_waiting(cx, last).await?;
    }
    begin(
        cx,
        shared,
        ThreadMessage::builder()
            .thread(context)
            .brain(&brain.title)
            .id(&message.message_id)
            .text(text)
            .options(options)
            .files(files)
            .build(),
    )
    .await
}

/// Returns the context of a message that names none: the same each time that the caller sends it, so that a message which is sent again
/// begins one task.
fn new_context(cx: &RequestContext, message: &str) -> Result<String, Problem> {
    let caller = cx.caller()?;
    let user = caller.user_id().unwrap_or_default();
    let hash = content_hash(format!("{}\n{user}\n{message}", caller.subject()).as_bytes())?;
    Ok(format!("a2a-{}", hash.get(..32).unwrap_or(&hash)))
}

/// Returns the brain that a message is for.
fn brain(cx: &RequestContext, message: &ClientMessage) -> Result<Arc<BrainDefinition>, Refusal> {
    cx.require(Scope::Run)?;
    let mut brains = cx.brains()?;
    let Some(asked) = title(cx).or(message.skill()) else {
        if let [_] = brains.as_slice() {
            return Ok(brains.remove(0));
        }
        let titles: Vec<_> = brains.iter().map(|brain| format!("`{}`", brain.title)).collect();
        let text = format!("`message.metadata.skill` has to name one of the skills {}", titles.join(", "));
        return Err(Refusal::invalid_params(text));
    };
    let brain = brains.into_iter().find(|brain| brain.title == asked);
    Ok(brain.ok_or_else(|| unknown(asked))?)
}

/// Returns with what a run begins: a message for a loop, and options.
fn opening(brain: &BrainDefinition, said: Said) -> Result<(Option<String>, Option<Value>), Refusal> {
    let Said { text, options, files, .. } = said;
    if has_loop(brain) {
        return Ok((text, options));
    }
    if !files.is_empty() {
        return Err(Refusal::content_type(format!("`{}` has no loop for files", brain.title)));
    }
    match (text, options) {
        (None, options) => Ok((None, options)),
        (Some(_), Some(_)) => {
            Err(Refusal::invalid_params(format!("`{}` has no loop for a text; send a data part alone", brain.title)))
        }
        (Some(text), None) => match serde_json::from_str(&text) {
            Ok(options) => Ok((None, Some(options))),
            Err(error) => Err(Refusal::invalid_params(format!(
                "`{}` has no loop for a text, so it has to be its options as JSON, or a data part: {error}",
                brain.title
            ))),
        },
    }
}

async fn begin(cx: &RequestContext, shared: &Shared, message: ThreadMessage) -> Result<Sent, Refusal> {
    let sent = cx.send(message).await;
    let sent = sent.map_err(|problem| with_place_of_options(problem, "a data part of the message"))?;
    let row = cx.run_row(&sent.run).await?;
    let leg = shared.from(sent.run, sent.from);
    Ok(Sent { row, leg, has_answered: false })
}

/// Sends a message to a task that exists.
async fn to_task(cx: &RequestContext, shared: &Shared, message: &ClientMessage, said: Said) -> Result<Sent, Refusal> {
    let row = row(cx, &message.task_id).await?;
    if !message.context_id.is_empty() && message.context_id != context_of(&row) {
        return Err(Refusal::invalid_params("`contextId` is not that of the task"));
    }
    let attached = |row: RunSummary| {
        let leg = shared.attach(&row);
        Sent { row, leg, has_answered: true }
    };
    if !said.answers.is_empty() {
        if said.text.is_some() || said.options.is_some() || !said.files.is_empty() {
            return Err(Refusal::invalid_params("a message with answers has no other parts"));
        }
        answer(cx, &row, &message.message_id, said.answers).await?;
        return Ok(attached(row));
    }
    if row.status.is_over() {
        let text = format!("the task `{}` has ended; send the message with its `contextId` alone", row.run);
        return Err(Refusal::unsupported(text));
    }
    let Said { text: Some(text), options: None, files, .. } = said else {
        return Err(Refusal::invalid_params("a data part for a task is an answer: `question` and `response`"));
    };
    if let Some(question) = text_question(cx, &row).await? {
        if !files.is_empty() {
            return Err(Refusal::invalid_params("an answer to a question has no files; send its text alone"));
        }
        let mut decisions = Decisions::new(cx);
        decisions.check_scope(&row, &question)?;
        let reply = Decision::Reply { payload: text.as_str().into(), wait: None };
        decisions.send(&row, &question, reply, &format!("a2a/{}/{question}", message.message_id)).await?;
        return Ok(attached(row));
    }
    refuse_waiting(cx, &row).await?;
    let Some(context) = row.conversation.clone() else {
        return Err(Refusal::unsupported("the run is outside of a conversation, which takes no messages here"));
    };
    let message = ThreadMessage::builder().thread(context).brain(&*row.brain).id(&message.message_id).text(Some(text));
    let message = message.files(files).build();
    begin(cx, shared, message).await
}

/// Refuses a text for a run that waits for a person: it would neither be an answer nor be read before there is one.
async fn refuse_waiting(cx: &RequestContext, row: &RunSummary) -> Result<(), Refusal> {
    let state = cx.client().state(&row.run).await.map_err(Problem::from)?;
    if !pending(&state).iter().any(|item| item.kind.is_for_person()) {
        return Ok(());
    }
    let text = format!(
        "the task `{}` waits for an answer: a data part with `question` and `response`, as its status describes them",
        row.run
    );
    Err(Refusal::invalid_params(text))
}

/// Sends the answers to questions of a run. All are read before the first one is sent.
async fn answer(cx: &RequestContext, row: &RunSummary, id: &str, answers: Vec<(String, Value)>) -> Result<(), Refusal> {
    let mut decisions = Decisions::new(cx);
    decisions.check_scope(row, answers.first().map_or("", |(question, _)| question))?;
    check_answers(answers.len())?;
    let mut read = Vec::new();
    for (index, (question_id, response)) in answers.into_iter().enumerate() {
        let open = question(cx, row, &question_id).await?;
        let pointer = format!("/message/parts/{index}/data/response");
        read.push((question_id, decision(open.as_ref(), &response, &pointer)?));
    }
    for (question_id, decision) in read {
        decisions.send(row, &question_id, decision, &format!("a2a/{id}/{question_id}")).await?;
    }
    Ok(())
}

/// Returns the leg of a client that follows a task: the questions that the task shows do not end it.
///
/// # Errors
///
/// `UNSUPPORTED_OPERATION` for a task that has ended.
pub(super) async fn subscribed(cx: &RequestContext, shared: &Shared, id: &str) -> Result<(RunSummary, Leg), Refusal> {
    let row = row(cx, id).await?;
    if row.status.is_over() {
        return Err(Refusal::unsupported(format!("the task `{id}` has ended; `GetTask` returns it")));
    }
    let state = cx.client().state(&row.run).await.map_err(Problem::from)?;
    let viewer = cx.viewer()?;
    let items = pending(&state);
    let seen = items.iter().map(|item| viewer.question(&row.run, &state, item).id);
    let mut leg = shared.from(row.run.clone(), state.next);
    leg.seen = seen.collect();
    Ok((row, leg))
}
