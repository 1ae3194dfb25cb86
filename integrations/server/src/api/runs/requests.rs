//! `/runs/{run}/requests`: the requests to models, rebuilt from the log.

use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use positronic_core::model::cassette::Recording;
use positronic_core::projection::{Exchange, Traffic, request_for, traffic};
use positronic_core::record::{Event, EventKind, ModelRequest, ModelResponse, Path, RunSummary, Seq};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json as json_of};

use super::model_answer::AnswerItem;
use super::state::{immutable, within};
use crate::api::run_item::value;
use crate::app::App;
use crate::cursor::List;
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
    /// The answer, if it was valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<AnswerItem>,
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
    let seq = cx.seq("seq")?;
    let asked = Asked::read(app, row, seq).await?;
    let (request, owner) = (&asked.request, asked.path.parent());
    // Questions about an answer are no requests of its loop.
    let is_before = |before: &&Arc<Event>| match &before.kind {
        EventKind::LoopModelCall { question, .. } => {
            question.is_some() == asked.is_question && before.path.parent() == owner
        }
        _ => false,
    };
    let previous = asked.log.iter().take(seq.index()).rev().find(is_before).map(|before| before.seq);
    let (shared, same_head) = match previous {
        Some(previous) => compared(&rebuilt(app, &asked.log, row, previous).await?, request),
        None => (0, false),
    };
    // A cassette needs the exact texts.
    let recorded = asked.exchange.as_ref().filter(|_| app.settings.redact.is_none());
    let prices = app.settings.prices.as_deref();
    let item = RequestItem {
        seq: seq.0,
        model: asked.model.clone(),
        curl: curl(&asked.model, request, app.settings.redact.as_ref()),
        cassette: recorded.map(|one| Recording::default().line(&one.request, &one.outcome)),
        request: document(request),
        previous: previous.map(|previous| previous.0),
        shared,
        same_head,
        answer_seq: asked.outcome().map(|answer| answer.seq.0),
        answer: asked.answer().map(|(response, took)| AnswerItem::of(&asked.model, request, response, prices, took)),
    };
    let mut response = json(&item)?;
    if item.answer_seq.is_some() {
        immutable(&mut response);
    }
    Ok(response)
}

/// A request of a log, with its outcome.
pub(super) struct Asked {
    log: Vec<Arc<Event>>,
    seq: Seq,
    path: Path,
    /// The model that was asked, as `provider/model`.
    pub(super) model: String,
    is_question: bool,
    pub(super) request: ModelRequest,
    /// The request with its outcome, if it has one.
    exchange: Option<Exchange>,
    /// The time that a valid answer took.
    took: Option<Duration>,
}

impl Asked {
    /// Reads the request of an event.
    pub(super) async fn read(app: &App, row: &RunSummary, seq: Seq) -> Result<Self, Problem> {
        let seq = within(row.next, seq)?;
        let log = app.client.events(&row.run, Seq(0)).await?;
        let Some((path, model, is_question)) = log.get(seq.index()).and_then(|event| match &event.kind {
            EventKind::LoopModelCall { model, question, .. } => {
                Some((event.path.clone(), model.clone(), question.is_some()))
            }
            _ => None,
        }) else {
            return Err(
                Problem::new(ProblemType::BeyondHead).detail(format!("event {seq} sends no request to a model"))
            );
        };
        let request = rebuilt(app, &log, row, seq).await?;
        let mut asked = Self { log, seq, path, model, is_question, request, exchange: None, took: None };
        asked.took = asked.outcome().and_then(|event| match &event.kind {
            EventKind::LoopModelResult { duration, .. } => Some(*duration),
            _ => None,
        });
        asked.exchange = exchange(app, &asked.log, row, &asked.request).await?;
        Ok(asked)
    }

    /// Returns the event of the answer or the failure.
    fn outcome(&self) -> Option<&Arc<Event>> {
        let mut later = self.log.iter().skip(self.seq.index() + 1);
        later.find(|later| later.path == self.path && is_outcome(&later.kind))
    }

    /// Returns the valid answer, and the time that it took.
    pub(super) fn answer(&self) -> Option<(&ModelResponse, Duration)> {
        Some((self.exchange.as_ref()?.outcome.as_ref().ok()?, self.took?))
    }
}

async fn rebuilt(app: &App, log: &[Arc<Event>], row: &RunSummary, seq: Seq) -> Result<ModelRequest, Problem> {
    let history = app.client.history(&row.run).await?;
    let events = log.iter().map(|event| &**event);
    request_for(events, seq, history, |_| None).map_err(|error| Problem::new(ProblemType::Internal).detail(error))
}

/// Finds a request with its outcome in the traffic of a log.
async fn exchange(
    app: &App,
    log: &[Arc<Event>],
    row: &RunSummary,
    request: &ModelRequest,
) -> Result<Option<Exchange>, Problem> {
    let history = app.client.history(&row.run).await?;
    let events = log.iter().map(|event| &**event);
    let all = traffic(events, history, |_| None).map_err(|error| Problem::new(ProblemType::Internal).detail(error))?;
    Ok(all.into_iter().find_map(|one| match one {
        Traffic::Exchange(one) if one.request.path == request.path && one.request.attempt == request.attempt => {
            Some(*one)
        }
        _ => None,
    }))
}

const fn is_outcome(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::LoopModelResult { .. } | EventKind::LoopModelRetry { .. } | EventKind::LoopAnswerRefused { .. }
    )
}

/// Returns a request as JSON.
pub(super) fn document(request: &ModelRequest) -> Value {
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
