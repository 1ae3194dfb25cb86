//! `/conversations/{conversation}/messages`: sends messages to conversations.

use std::sync::Arc;

use axum::response::Response;
use positronic_core::definition::BrainDefinition;
use positronic_core::record::{EventKind, RunId, RunSummary, Seq, UserMessage, sha256};
use positronic_core::runner::RunHandle;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::attachments::{MAX_FILES_BODY, MessageFile};
use super::message_key;
use crate::api::idempotency::Key;
use crate::api::run_item::RunItem;
use crate::api::runs::event_stream::{Update, updates};
use crate::api::runs::events::EVENTS;
use crate::api::runs::start_rules::{conversation, given_options, of_conversation, user_for};
use crate::app::App;
use crate::auth::{Scope, may_start};
use crate::problem::{Problem, ProblemType};
use crate::routes::{RequestContext, Route, created};
use crate::sse;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::post("/api/v1/conversations/{conversation}/messages", "Send a message, and follow the answer", send)
            .scopes(&[Scope::Run])
            .takes::<NewMessage>()
            .max_body(MAX_FILES_BODY)
            .idempotent()
            .returns::<RunItem>(201)
            .streams()
            .problems(&[
                ProblemType::NotAllowed,
                ProblemType::NotFound,
                ProblemType::UnknownBrain,
                ProblemType::OptionsInvalid,
                ProblemType::NotWaiting,
                ProblemType::Unprocessable,
                ProblemType::TooManyStreams,
            ]),
    ]
}

/// A message to a conversation.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewMessage {
    /// The title of the brain that answers.
    brain: String,
    text: String,
    #[serde(default)]
    files: Vec<MessageFile>,
    /// The options of the brain; its default options by default.
    #[serde(default)]
    options: Option<Value>,
    /// The user of a new conversation: that of the caller by default.
    #[serde(default)]
    user: Option<String>,
}

async fn send(cx: RequestContext) -> Result<Response, Problem> {
    let (app, id) = (&cx.app, cx.param("conversation")?);
    let NewMessage { brain, text, files, options, user } = cx.json()?;
    let definition = app.brain(&brain)?;
    may_start(&app.settings, cx.caller()?, &brain)?;
    let options = given_options(app, &definition, options)?;
    let key = Key::of(&cx)?;
    let message = UserMessage::new(text).files(app.stored_files(files).await?);
    let sent =
        send_once(&cx, &key, id, MessageRequest { definition, options, user, tags: Vec::new(), message }).await?;
    answer(&cx, &sent, &key).await
}

/// A message to a conversation, and the run that it begins there.
pub(crate) struct MessageRequest {
    pub(crate) definition: Arc<BrainDefinition>,
    pub(crate) options: Option<Value>,
    pub(crate) user: Option<String>,
    pub(crate) tags: Vec<String>,
    pub(crate) message: UserMessage,
}

/// The run that has got a message.
pub(crate) struct SentMessage {
    pub(crate) run: RunId,
    /// The event from which on the answer is followed.
    pub(crate) from: Seq,
    pub(crate) is_replay: bool,
}

/// Sends a message to a conversation, once under its key.
pub(crate) async fn send_once(
    cx: &RequestContext,
    key: &Key,
    id: &str,
    request: MessageRequest,
) -> Result<SentMessage, Problem> {
    let MessageRequest { definition, options, user, tags, message } = request;
    let (app, caller) = (&cx.app, cx.caller()?);
    let request = serde_json::json!([definition.title, options, user, tags, message]);
    let request = sha256(request.to_string().as_bytes());
    let message_id = key.message_id(id);
    let rows = app.client.conversations().runs(id).await?;
    if rows.first().is_some_and(|last| !caller.sees(last)) {
        return Err(Problem::no_conversation(id));
    }
    if key.is_given()
        && let Some((run, from)) = message_key::find(app, id, &message_id, &request).await?
    {
        return Ok(SentMessage { run, from, is_replay: true });
    }
    let known = find_message(app, rows.first(), &message_id, (&definition, options.as_ref(), &tags, &message)).await?;
    if let Some((run, from, is_same)) = known {
        return if is_same {
            Ok(SentMessage { run, from, is_replay: true })
        } else {
            Err(ProblemType::KeyReused.into())
        };
    }
    // An open run gets the message, whatever its brain is.
    if let Some(last) = rows.first().filter(|last| !last.status.is_over()) {
        may_start(&app.settings, caller, &last.brain)?;
    }
    // A conversation keeps its user: a message in the name of another one must not reach it.
    let user = match rows.first() {
        Some(last) if user.is_some() && user != last.user => return Err(Problem::no_conversation(id)),
        Some(last) => last.user.clone(),
        None => user_for(caller, user)?,
    };
    let options = options.unwrap_or_else(|| app.settings.brains.default_options(&definition));
    app.read_options(&definition, &options)?;
    let before = rows.first().map(|last| (last.run.clone(), last.next));
    let conversation = conversation(&app.starter(&definition.title).await?, id, user).tags(tags).actor(cx.actor()?);
    let run: RunHandle<Value> =
        conversation.send_definition(definition, options, message.id(&message_id)).await.map_err(of_conversation)?;
    let from = before.filter(|(last, _)| last == run.id()).map_or(Seq(0), |(_, next)| next);
    if key.is_given() {
        message_key::store(app, id, &message_id, request, (run.id(), from)).await?;
    }
    Ok(SentMessage { run: run.id().clone(), from, is_replay: false })
}

/// Finds a message under an id in the last run of a conversation: the run, the number of its event, and whether the rest of the
/// request is the same.
async fn find_message(
    app: &App,
    last: Option<&RunSummary>,
    id: &str,
    (brain, options, tags, message): (&BrainDefinition, Option<&Value>, &[String], &UserMessage),
) -> Result<Option<(RunId, Seq, bool)>, Problem> {
    let Some(last) = last else { return Ok(None) };
    let log = app.client.events(&last.run, Seq(0)).await?;
    let has_options =
        |known: &Value| options.is_none_or(|options| app.read_options(brain, options).is_ok_and(|read| read == *known));
    Ok(log.iter().find_map(|event| match &event.kind {
        EventKind::BrainStart(begin) => {
            let start = begin.start.as_ref()?;
            let opening = start.message.as_ref().filter(|opening| opening.id.as_deref() == Some(id))?;
            let is_same = (&opening.text, &opening.files, &opening.caller_tools)
                == (&message.text, &message.files, &message.caller_tools)
                && (begin.title.as_str(), start.tags.as_slice()) == (brain.title.as_str(), tags)
                && has_options(&begin.options);
            Some((last.run.clone(), event.seq, is_same))
        }
        EventKind::LoopMessage { message_id: Some(known), text, files, caller_tools, .. } if known == id => {
            let is_same = (text, files, caller_tools) == (&message.text, &message.files, &message.caller_tools);
            Some((last.run.clone(), event.seq, is_same))
        }
        _ => None,
    }))
}

/// Answers with the run, or follows it from an event on.
async fn answer(cx: &RequestContext, sent: &SentMessage, key: &Key) -> Result<Response, Problem> {
    use futures::StreamExt as _;
    let SentMessage { run, from, is_replay } = sent;
    if cx.accepts(EVENTS) {
        let events = updates(cx, run, *from).map(|update| match update {
            Update::Event(event) => {
                sse::Event::new(event.kind.name(), event.to_json().unwrap_or_default()).id(event.seq)
            }
            Update::Other(event) => event,
        });
        return sse::stream(cx, events);
    }
    let row = cx.app.client.store().run(run).await?;
    let item = cx.app.run_items(&[row]).await?.into_iter().next();
    let mut response = created("../../runs/", run.as_str(), &item)?;
    key.mark(&mut response, *is_replay);
    Ok(response)
}
