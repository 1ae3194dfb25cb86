//! `/runs/{run}/requests`: the requests to models, rebuilt from the log.

use std::sync::Arc;

use axum::response::Response;
use positronic_core::model::cassette::Recording;
use positronic_core::projection::{Traffic, request_for, traffic};
use positronic_core::record::{Event, EventKind, ModelRequest, Seq};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json as json_of};

use super::state::{immutable, within};
use crate::api::items::{List, value};
use crate::app::App;
use crate::problem::{Problem, ProblemType};
use crate::redact::{Redact, redacted};
use crate::routes::{RequestContext, Route, json};

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/runs/{run}/requests", "List the requests of a run to models", list)
            .large_answers()
            .returns::<List<RequestRow>>(200),
        Route::get("/api/v1/runs/{run}/requests/{seq}", "Read a request, compared with the one before", request)
            .large_answers()
            .returns::<RequestItem>(200)
            .problems(&[ProblemType::BeyondHead, ProblemType::InvalidPath]),
    ]
}

/// A request in a list.
#[derive(Serialize, JsonSchema)]
struct RequestRow {
    /// The number of its event.
    seq: u64,
    /// The iteration, or the step or plugin that asks.
    path: String,
    /// The attempt, from 0.
    attempt: u32,
    model: String,
}

/// A request to a model.
#[derive(Serialize, JsonSchema)]
struct RequestItem {
    seq: u64,
    model: String,
    /// The request as the core sent it to the model's adapter.
    request: Value,
    /// The request before it of the same loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    previous: Option<u64>,
    /// How many messages at the beginning are equal to those of the previous request.
    shared: usize,
    /// Whether what precedes the messages is equal, too: the system prompt, the tools and the settings.
    same_head: bool,
    /// The event of the answer or the failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    answer_seq: Option<u64>,
    /// A command that sends a like request to an OpenAI-compatible endpoint.
    curl: String,
    /// The request with its answer, as a line of a cassette. It is absent before the answer, and on a server that redacts,
    /// since a cassette needs the exact texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    cassette: Option<String>,
}

async fn list(cx: RequestContext) -> Result<Response, Problem> {
    let log = cx.app.client.events(&cx.run()?.run, Seq(0)).await?;
    let items = log.iter().filter_map(|event| match &event.kind {
        EventKind::LoopModelCall { attempt, model, .. } => {
            Some(RequestRow { seq: event.seq.0, path: event.path.to_string(), attempt: *attempt, model: model.clone() })
        }
        _ => None,
    });
    json(&List::whole(items.collect()))
}

async fn request(cx: RequestContext) -> Result<Response, Problem> {
    let (app, row) = (&cx.app, cx.run()?);
    let seq = within(row.next, cx.seq("seq")?)?;
    let log = app.client.events(&row.run, Seq(0)).await?;
    let Some((event, model)) = log.get(seq.index()).and_then(|event| match &event.kind {
        EventKind::LoopModelCall { model, .. } => Some((event, model)),
        _ => None,
    }) else {
        return Err(Problem::new(ProblemType::BeyondHead).detail(format!("event {seq} sends no request to a model")));
    };
    let owner = event.path.parent();
    let is_before =
        |before: &&Arc<Event>| matches!(before.kind, EventKind::LoopModelCall { .. }) && before.path.parent() == owner;
    let previous = log.iter().take(seq.index()).rev().find(is_before).map(|before| before.seq);
    let answer = log.iter().skip(seq.index() + 1).find(|later| later.path == event.path && is_outcome(&later.kind));
    let request = rebuilt(app, &log, row, seq).await?;
    let (shared, same_head) = match previous {
        Some(previous) => compared(&rebuilt(app, &log, row, previous).await?, &request),
        None => (0, false),
    };
    let item = RequestItem {
        seq: seq.0,
        model: model.clone(),
        curl: curl(model, &request, app.options.redact.as_ref()),
        cassette: cassette(app, &log, row, &request).await?,
        request: document(&request),
        previous: previous.map(|previous| previous.0),
        shared,
        same_head,
        answer_seq: answer.map(|answer| answer.seq.0),
    };
    let mut response = json(&item)?;
    if item.answer_seq.is_some() {
        immutable(&mut response);
    }
    Ok(response)
}

async fn rebuilt(
    app: &App,
    log: &[Arc<Event>],
    row: &positronic_core::record::RunSummary,
    seq: Seq,
) -> Result<ModelRequest, Problem> {
    let history = app.client.history(&row.run).await?;
    let events = log.iter().map(|event| &**event);
    request_for(events, seq, history, |_| None).map_err(|error| Problem::new(ProblemType::Internal).detail(error))
}

/// Returns a request with its answer as a line that can be added to a cassette.
async fn cassette(
    app: &App,
    log: &[Arc<Event>],
    row: &positronic_core::record::RunSummary,
    request: &ModelRequest,
) -> Result<Option<String>, Problem> {
    if app.options.redact.is_some() {
        return Ok(None);
    }
    let history = app.client.history(&row.run).await?;
    let events = log.iter().map(|event| &**event);
    let all = traffic(events, history, |_| None).map_err(|error| Problem::new(ProblemType::Internal).detail(error))?;
    let line = all.iter().find_map(|one| match one {
        Traffic::Exchange(one) if one.request.path == request.path && one.request.attempt == request.attempt => {
            Some(Recording::default().line(&one.request, &one.outcome))
        }
        _ => None,
    });
    Ok(line)
}

const fn is_outcome(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::LoopModelResult { .. } | EventKind::LoopModelRetry { .. } | EventKind::LoopAnswerRefused { .. }
    )
}

/// Returns a request as JSON.
fn document(request: &ModelRequest) -> Value {
    json_of!({
        "system": request.system,
        "context": request.context,
        "tools": request.tools.tools(),
        "messages": request.messages.messages(),
        "settings": request.settings,
    })
}

/// Returns how many messages two requests share at their beginning, and whether what precedes the messages is equal.
fn compared(before: &ModelRequest, after: &ModelRequest) -> (usize, bool) {
    let (one, other) = (before.messages.messages(), after.messages.messages());
    let shared = one.iter().zip(&other).take_while(|(one, other)| one == other).count();
    let head =
        |request: &ModelRequest| (request.system.clone(), value(&request.settings), value(&request.tools.tools()));
    (shared, head(before) == head(after))
}

/// Returns a shell command that sends the messages to an OpenAI-compatible endpoint, with the key as a variable.
fn curl(model: &str, request: &ModelRequest, redact: Option<&Redact>) -> String {
    let mut messages = vec![json_of!({ "role": "system", "content": &*request.system })];
    messages.extend(request.messages.messages().iter().map(value));
    let model = model.split_once('/').map_or(model, |(_, name)| name);
    let body = redacted(redact, &json_of!({ "model": model, "messages": messages })).unwrap_or_default();
    let body = body.to_string().replace('\'', "'\\''");
    format!(
        "curl \"$OPENAI_BASE_URL/chat/completions\" -H \"Authorization: Bearer $OPENAI_API_KEY\" \
         -H 'Content-Type: application/json' --data-raw '{body}'"
    )
}
