//! `/conversations`: lists them, and sends messages to them.

use axum::response::Response;
use positronic_core::record::{EventKind, RunId, RunSummary, Seq, UserMessage};
use positronic_core::runner::RunHandle;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::attachments::{MAX_FILES_BODY, NewFile};
use super::events::{EVENTS, Update, updates};
use super::idempotency::Key;
use super::items::{List, RunItem};
use super::start::{conversation, of_conversation, user_for};
use crate::app::App;
use crate::auth::{Caller, Scope};
use crate::problem::{Problem, ProblemType};
use crate::routes::{Call, Route, created, json};
use crate::sse;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/conversations", "List conversations, the latest first", list)
            .returns::<List<ConversationItem>>(200),
        Route::get("/api/v1/conversations/{conversation}", "Read a conversation, with its runs", read)
            .returns::<ConversationDetail>(200)
            .problems(&[ProblemType::NotFound]),
        Route::post("/api/v1/conversations/{conversation}/messages", "Send a message, and follow the answer", send)
            .scopes(&[Scope::Run])
            .takes::<NewMessage>()
            .max_body(MAX_FILES_BODY)
            .idempotent()
            .returns::<RunItem>(201)
            .streams()
            .problems(&[
                ProblemType::NotFound,
                ProblemType::UnknownBrain,
                ProblemType::OptionsInvalid,
                ProblemType::NotWaiting,
                ProblemType::Unprocessable,
                ProblemType::TooManyStreams,
            ]),
    ]
}

/// A conversation in a list.
#[derive(Serialize, JsonSchema)]
struct ConversationItem {
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    /// The number of its runs.
    runs: usize,
    last: RunItem,
}

/// A conversation.
#[derive(Serialize, JsonSchema)]
struct ConversationDetail {
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    /// Its runs, in order.
    runs: Vec<RunItem>,
}

/// A message to a conversation.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewMessage {
    /// The title of the brain that answers.
    brain: String,
    text: String,
    #[serde(default)]
    files: Vec<NewFile>,
    /// The options of the brain; its default options by default.
    #[serde(default)]
    options: Option<Value>,
    /// The user of a new conversation: that of the caller by default.
    #[serde(default)]
    user: Option<String>,
}

async fn list(call: Call) -> Result<Response, Problem> {
    let (app, caller) = (&call.app, call.caller()?);
    let mut items = Vec::new();
    for known in app.client.conversations().await?.into_iter().filter(|known| caller.sees(&known.last)) {
        let last = app.run_items(std::slice::from_ref(&known.last)).await?;
        items.extend(last.into_iter().map(|last| ConversationItem {
            id: known.id.clone(),
            user: known.last.user.clone(),
            runs: known.runs,
            last,
        }));
    }
    json(&List::whole(items))
}

async fn read(call: Call) -> Result<Response, Problem> {
    let (app, id) = (&call.app, call.param("conversation")?);
    let mut rows = seen_runs(app, call.caller()?, id).await?;
    let Some(user) = rows.first().map(|row| row.user.clone()) else { return Err(ProblemType::NotFound.into()) };
    rows.reverse();
    json(&ConversationDetail { id: id.to_owned(), user, runs: app.run_items(&rows).await? })
}

/// Returns the runs of a conversation, the last one first; none if it belongs to another user.
async fn seen_runs(app: &App, caller: &Caller, id: &str) -> Result<Vec<RunSummary>, Problem> {
    let rows = app.client.conversation(id).await?;
    Ok(if rows.first().is_some_and(|last| caller.sees(last)) { rows } else { Vec::new() })
}

async fn send(call: Call) -> Result<Response, Problem> {
    let (app, caller, id) = (&call.app, call.caller()?, call.param("conversation")?);
    let body: NewMessage = call.json()?;
    let definition = app.brain(&body.brain)?;
    let key = Key::of(&call)?;
    let message_id = key.id(&format!("message\n{id}"));
    let rows = app.client.conversation(id).await?;
    if rows.first().is_some_and(|last| !caller.sees(last)) {
        return Err(ProblemType::NotFound.into());
    }
    if let Some((run, from, is_same)) = find_message(app, rows.first(), &message_id, &body.text).await? {
        if !is_same {
            return Err(ProblemType::KeyReused.into());
        }
        return answer(&call, &run, from, &key, true).await;
    }
    // A conversation keeps its user: a message in the name of another one must not reach it.
    let user = match rows.first() {
        Some(last) if body.user.is_some() && body.user != last.user => return Err(ProblemType::NotFound.into()),
        Some(last) => last.user.clone(),
        None => user_for(caller, body.user)?,
    };
    let options = body.options.unwrap_or_else(|| app.options.brains.default_options(&definition));
    let files = app.stored_files(body.files).await?;
    let message = UserMessage::new(body.text).id(message_id).files(files);
    let before = rows.first().map(|last| (last.run.clone(), last.next));
    let conversation = conversation(&app.starter(&body.brain).await?, id, user).actor(call.actor()?);
    let run: RunHandle<Value> =
        conversation.send_definition(definition, options, message).await.map_err(of_conversation)?;
    let from = before.filter(|(last, _)| last == run.id()).map_or(Seq(0), |(_, next)| next);
    answer(&call, run.id(), from, &key, false).await
}

/// Finds a message under an id in the last run of a conversation: the run, the number of its event, and whether the text is
/// the same.
async fn find_message(
    app: &App,
    last: Option<&RunSummary>,
    id: &str,
    said: &str,
) -> Result<Option<(RunId, Seq, bool)>, Problem> {
    let Some(last) = last else { return Ok(None) };
    let log = app.client.events(&last.run, Seq(0)).await?;
    Ok(log.iter().find_map(|event| match &event.kind {
        EventKind::BrainStart(begin) => {
            let opening = begin.start.as_ref()?.message.as_ref()?;
            (opening.id.as_deref() == Some(id)).then(|| (last.run.clone(), event.seq, opening.text == said))
        }
        EventKind::LoopMessage { message_id: Some(known), text, .. } if known == id => {
            Some((last.run.clone(), event.seq, text == said))
        }
        _ => None,
    }))
}

/// Answers with the run, or follows it from an event on.
async fn answer(call: &Call, run: &RunId, from: Seq, key: &Key, is_replay: bool) -> Result<Response, Problem> {
    use futures::StreamExt as _;
    if call.accepts(EVENTS) {
        let events = updates(&call.app.client, run, from).map(|update| match update {
            Update::Event(event) => sse::Event::default()
                .id(event.seq.to_string())
                .event(event.kind.name())
                .data(event.to_json().unwrap_or_default()),
            Update::Other(event) => event,
        });
        return sse::stream(call, events);
    }
    let row = call.app.client.store().run(run).await?;
    let item = call.app.run_items(&[row]).await?.into_iter().next();
    let mut response = created(&format!("../../runs/{run}"), &item)?;
    key.mark(&mut response, is_replay);
    Ok(response)
}
