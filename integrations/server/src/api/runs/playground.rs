//! The playground: `/runs/{run}/requests/{seq}/send` sends a request of the log again with changes, `…/estimate` says what that is
//! expected to cost.
//!
//! No log gets the request or its answer. On a server that redacts, the model gets what the caller sees, with the marks in the place of
//! secrets: otherwise a caller could ask the model to spell them.

use std::sync::Arc;
use std::time::Instant;

use axum::response::Response;
use futures::future::BoxFuture;
use futures::stream::{StreamExt as _, once, unfold};
use positronic_core::model::{DeltaSink, NoDeltas, Piece};
use positronic_core::record::{
    Attachment, ContextItem, DeltaKind, Message, ModelError, ModelRequest, Settings, ToolChoice, ToolSet, Transcript,
};
use positronic_core::runner::Runner;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json as json_of};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::cost_estimate::EstimateItem;
use super::events::EVENTS;
use super::model_answer::AnswerItem;
use super::requests::{Asked, document};
use crate::api::run_item::value;
use crate::auth::{Scope, may_start};
use crate::problem::{FieldError, Problem, ProblemType};
use crate::redact::Redact;
use crate::routes::{RequestContext, Route, json};
use crate::sse;

/// The maximum bytes of the changes: messages may be long.
const MAX_BODY: usize = 8 << 20;

pub(crate) fn routes() -> Vec<Route> {
    let problems = [
        ProblemType::BeyondHead,
        ProblemType::InvalidPath,
        ProblemType::NotAllowed,
        ProblemType::UnknownBrain,
        ProblemType::Unprocessable,
        ProblemType::TooManyStreams,
    ];
    let changed = |route: Route| {
        let route = route.scopes(&[Scope::Playground]).takes::<RequestChanges>().max_body(MAX_BODY).large_answers();
        route.problems(&problems)
    };
    vec![
        changed(Route::post(
            "/api/v1/runs/{run}/requests/{seq}/estimate",
            "Estimate the cost of a changed request",
            estimate,
        ))
        .returns::<EstimateItem>(200),
        changed(Route::post(
            "/api/v1/runs/{run}/requests/{seq}/send",
            "Send a request again with changes, outside of the run",
            send,
        ))
        .returns::<TrialItem>(200)
        .streams(),
    ]
}

/// Changes of a request. What is absent stays as it was sent.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct RequestChanges {
    /// The system prompt.
    system: Option<String>,
    /// All messages, in the form of `GET /runs/{run}/requests/{seq}`. Their files are files of the recorded request.
    messages: Option<Vec<Value>>,
    /// The name of the model at the same provider.
    model: Option<String>,
    /// Whether the model must call a tool.
    tool_choice: Option<ToolChoiceName>,
    /// The sampling temperature, from 0 to 2.
    #[schemars(range(min = 0, max = 2))]
    temperature: Option<f64>,
    /// The maximum number of tokens in the answer.
    #[schemars(range(min = 1))]
    max_output_tokens: Option<u32>,
    /// Whether the model may ask for several calls at once.
    parallel_tool_calls: Option<bool>,
}

/// Whether a model must call a tool.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ToolChoiceName {
    Auto,
    Required,
    None,
}

/// What a request outside of a run led to: an answer, or a failure of the model.
#[derive(Debug, Serialize, JsonSchema)]
struct TrialItem {
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<AnswerItem>,
    /// How the model failed: `kind`, `message`, and the HTTP `status` if there is one. It is not asked again.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Value>,
}

async fn estimate(cx: RequestContext) -> Result<Response, Problem> {
    let trial = trial(&cx).await?;
    let (prices, redacted) = (cx.app.settings.prices.as_deref(), cx.app.settings.redact.is_some());
    let usage = trial.asked.answer().map(|(response, _)| response.metadata.usage);
    let model = trial.runner.model_name(&trial.request.settings);
    let model = model.split_once('/').unwrap_or(("", &model));
    json(&EstimateItem::of(model, &trial.request, (&trial.asked.request, usage), prices, redacted))
}

async fn send(cx: RequestContext) -> Result<Response, Problem> {
    let trial = trial(&cx).await?;
    let model = trial.runner.model_name(&trial.request.settings);
    let Trial { runner, request, .. } = trial;
    let (app, by) = (Arc::clone(&cx.app), cx.caller()?.subject().to_owned());
    let place = format!("{} {}", cx.run()?.run, cx.param("seq")?);
    let finish = move |request: &ModelRequest, result: Result<_, ModelError>, began: Instant| {
        let item = match result {
            Ok(response) => {
                let answer =
                    AnswerItem::of(&model, request, &response, app.settings.prices.as_deref(), began.elapsed());
                TrialItem { answer: Some(answer), error: None }
            }
            Err(error) => TrialItem { answer: None, error: Some(value(&error)) },
        };
        let cost = item.answer.as_ref().and_then(|answer| answer.cost.as_ref()).map(|cost| cost.amount.as_str());
        tracing::info!(by, request = place, model, cost, "sent a request of the playground");
        item
    };
    #[expect(clippy::disallowed_methods, reason = "it only measures how long the model takes")]
    let began = Instant::now();
    if !cx.accepts(EVENTS) {
        let result = runner.ask(&request, &NoDeltas).await;
        return json(&finish(&request, result, began));
    }
    let (sender, pieces) = unbounded_channel();
    let shows = cx.app.settings.redact.is_none();
    let work = async move {
        let result = runner.ask(&request, &Pieces { sender, shows }).await;
        finish(&request, result, began)
    };
    let state = Sending { work: Some(Box::pin(work)), pieces, item: None };
    sse::stream(&cx, unfold(state, Sending::next).chain(once(async { sse::end() })))
}

/// A request that is being sent, with the pieces of its answer.
struct Sending {
    work: Option<BoxFuture<'static, TrialItem>>,
    pieces: UnboundedReceiver<sse::Event>,
    item: Option<TrialItem>,
}

impl Sending {
    /// Returns the next piece, and after all pieces the answer.
    async fn next(mut self) -> Option<(sse::Event, Self)> {
        if let Some(work) = &mut self.work {
            tokio::select! {
                biased;
                Some(piece) = self.pieces.recv() => return Some((piece, self)),
                item = work => self.item = Some(item),
            }
            self.work = None;
        }
        if let Ok(piece) = self.pieces.try_recv() {
            return Some((piece, self));
        }
        let item = self.item.take()?;
        Some((sse::event("answer", &item), self))
    }
}

/// Sends the pieces of an answer on.
struct Pieces {
    sender: UnboundedSender<sse::Event>,
    /// A piece alone cannot be redacted.
    shows: bool,
}

impl DeltaSink for Pieces {
    fn piece(&self, piece: Piece) {
        if self.shows && matches!(piece.kind, DeltaKind::Text | DeltaKind::Reasoning) {
            // A client that has gone reads nothing.
            _ = self.sender.send(sse::event("delta", &json_of!({ "kind": piece.kind, "text": piece.text })));
        }
    }

    fn restart(&self) {
        _ = self.sender.send(sse::event("restart", &json_of!({})));
    }

    fn has_reader(&self) -> bool {
        self.shows
    }
}

/// A request with changes, the recorded one, and the runner that sends it.
struct Trial {
    runner: Runner,
    request: ModelRequest,
    asked: Asked,
}

async fn trial(cx: &RequestContext) -> Result<Trial, Problem> {
    let (app, row) = (&cx.app, cx.run()?);
    let changes: RequestChanges = cx.json()?;
    may_start(&app.settings, cx.caller()?, &row.brain)?;
    let brain = app.brain(&row.brain)?;
    let mut asked = Asked::read(app, row, cx.seq("seq")?).await?;
    if asked.request.settings.in_code {
        let detail = "the loop's code has answered this request instead of a model";
        return Err(Problem::new(ProblemType::Unprocessable).detail(detail));
    }
    let refused = |reason| Problem::new(ProblemType::Unprocessable).detail(reason);
    let runner = app.settings.brains.models(&brain.title).await.map_err(|none| refused(none.message))?;
    if let Some(redact) = &app.settings.redact {
        asked.request = as_seen(redact, &asked.request)?;
    }
    let request = changes.applied(&asked.request)?;
    Ok(Trial { runner, request, asked })
}

/// Returns a request as a caller sees it, with marks in the place of secrets.
fn as_seen(redact: &Redact, request: &ModelRequest) -> Result<ModelRequest, Problem> {
    fn part<T: DeserializeOwned>(seen: &mut Value, name: &str) -> Result<T, Problem> {
        let part = seen.get_mut("request").and_then(|request| request.get_mut(name)).map(Value::take);
        serde_json::from_value(part.unwrap_or_default()).map_err(|_| {
            let detail = format!("the redaction of this server leaves no valid `{name}` of the request");
            Problem::new(ProblemType::Unprocessable).detail(detail)
        })
    }
    let mut seen = json_of!({ "request": document(request) });
    redact(&mut seen);
    Ok(ModelRequest {
        system: part::<String>(&mut seen, "system")?.into(),
        context: part::<Vec<ContextItem>>(&mut seen, "context")?.into(),
        tools: Arc::new(part::<ToolSet>(&mut seen, "tools")?),
        messages: Transcript::new(part::<Vec<Message>>(&mut seen, "messages")?),
        settings: Arc::new(part::<Settings>(&mut seen, "settings")?),
        ..request.clone()
    })
}

impl RequestChanges {
    /// Returns the request with these changes.
    fn applied(self, recorded: &ModelRequest) -> Result<ModelRequest, Problem> {
        let Self { system, messages, model, tool_choice, temperature, max_output_tokens, parallel_tool_calls } = self;
        let mut request = recorded.clone();
        if let Some(system) = system {
            request.system = system.into();
        }
        if let Some(messages) = messages {
            request.messages = Transcript::new(checked(messages, recorded)?);
        }
        let settings = Arc::make_mut(&mut request.settings);
        settings.model =
            model.map(|model| model.trim().to_owned()).filter(|model| !model.is_empty()).or(settings.model.take());
        settings.temperature = temperature.or(settings.temperature);
        settings.max_output_tokens = max_output_tokens.or(settings.max_output_tokens);
        settings.parallel_tool_calls = parallel_tool_calls.or(settings.parallel_tool_calls);
        settings.tool_choice = match tool_choice {
            Some(ToolChoiceName::Auto) => ToolChoice::Auto,
            Some(ToolChoiceName::Required) => ToolChoice::Required,
            Some(ToolChoiceName::None) => ToolChoice::None,
            None => settings.tool_choice,
        };
        Ok(request)
    }
}

/// Decodes messages. Their files are those of the recorded request: a reference could name a file of another user.
fn checked(messages: Vec<Value>, recorded: &ModelRequest) -> Result<Vec<Message>, Problem> {
    let invalid = |index: usize, detail: String| {
        let errors = vec![FieldError::new(format!("/messages/{index}"), detail)];
        Problem::new(ProblemType::InvalidBody).errors(errors)
    };
    if messages.is_empty() {
        let errors = vec![FieldError::new("/messages", "a request needs a message")];
        return Err(Problem::new(ProblemType::InvalidBody).errors(errors));
    }
    let known = recorded.messages.messages();
    let known: Vec<&Attachment> = known.iter().flat_map(Message::files).collect();
    let decoded = messages.into_iter().enumerate().map(|(index, message)| {
        let message: Message = serde_json::from_value(message).map_err(|error| invalid(index, error.to_string()))?;
        let foreign = message.files().find(|file| !known.iter().any(|known| known.file() == file.file()));
        if let Some(name) = foreign.map(|file| &file.file().name) {
            return Err(invalid(index, format!("the file `{name}` is not one of the recorded request")));
        }
        Ok(message)
    });
    decoded.collect()
}
