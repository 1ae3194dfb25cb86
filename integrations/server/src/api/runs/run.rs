//! `/runs/{run}`: a run, with what waits in it and what the caller may do with it.

use axum::http::header::{ETAG, IF_NONE_MATCH};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use positronic_core::machine::{RunState, admit};
use positronic_core::record::{RunSummary, Signal, SignalId, SignalKind, Status, hash_json};
use positronic_core::runner::RetryError;
use positronic_core::store::PendingFilter;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::can_continue::{checked_code, continuation};
use super::wait::{Wait, WaitQuery};
use crate::api::pending::pending_item::{Allowed, PendingItem};
use crate::api::run_item::{RunRow, StatusName, head, value};
use crate::app::App;
use crate::auth::{Caller, Scope, may_start};
use crate::continuation::Continuation;
use crate::problem::{Problem, ProblemType};
use crate::redact::AsIs;
use crate::routes::{RequestContext, Route, json};

/// The most forks that are listed.
const MAX_FORKS: usize = 20;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/runs/{run}", "Read a run, with what waits in it and what the caller may do", run)
            .query::<WaitQuery>()
            .returns::<RunDetail>(200)
            .returns_nothing(304)
            .problems(&[ProblemType::TooManyStreams]),
    ]
}

/// A run.
#[derive(Serialize, JsonSchema)]
struct RunDetail {
    #[serde(flatten)]
    row: RunRow,
    /// The options of its brain.
    options: Value,
    /// What its brain has returned, once it has completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Value>,
    /// Its result in one sentence; until it has one, what the model said last. Absent if fields are redacted.
    #[serde(skip_serializing_if = "Option::is_none")]
    result_text: Option<String>,
    pending: Vec<PendingItem>,
    actions: Actions,
    /// Whether this server has the code of its brain.
    brain_known: bool,
    /// How the code of this server differs from that with which the run began.
    #[serde(skip_serializing_if = "Option::is_none")]
    changed: Option<String>,
    /// Why the workers of this server have no model for it, while it has work and no worker, or if it can be retried.
    #[serde(skip_serializing_if = "Option::is_none")]
    missing_model: Option<String>,
    /// The budget with which it was started, or that of its brain.
    #[serde(skip_serializing_if = "Option::is_none")]
    budget: Option<Value>,
    /// The number of runs of its conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    conversation_runs: Option<usize>,
    /// The latest forks of it.
    forks: Vec<ForkItem>,
}

/// A fork of a run.
#[derive(Serialize, JsonSchema)]
struct ForkItem {
    id: String,
    #[schemars(with = "StatusName")]
    status: Status,
}

/// What the caller may do with a run now.
#[derive(Serialize, JsonSchema)]
struct Actions {
    pause: Allowed,
    resume: Allowed,
    cancel: Allowed,
    message: Allowed,
    fork: Allowed,
    rerun: Allowed,
    /// Whether it has failed or was parked, and work on it can continue.
    retry: Allowed,
}

async fn run(cx: RequestContext) -> Result<Response, Problem> {
    let (app, caller, before) = (&cx.app, cx.caller()?, cx.run()?);
    Wait::of(&cx)?.wait(app, &before.run).await?;
    let place = cx.answer_place().await;
    let row = &app.row(caller, &before.run).await?;
    let state = app.client.state(&row.run).await?;
    let items = app.client.store().pending(&PendingFilter::builder().run(row.run.clone()).build()).await?;
    let check = checked_code(app, row).await?;
    let shown = items.iter().map(|item| app.pending_item(caller, item, (&state, check.calls.as_deref())));
    let pending = shown.collect();
    let root = state.root.as_deref();
    let mut run_row = app.run_row(row).await?;
    // A run has the whole result where lists have its sentence.
    let result_text = run_row.result.take();
    let continuation = continuation_of(app, row, &run_row).await?;
    let (brain_changed, changed) = (check.brain.clone(), check.brain.or(check.calls));
    let detail = RunDetail {
        options: root.map(|root| Value::clone(&root.options)).unwrap_or_default(),
        result: state.result().cloned().filter(|_| row.status == Status::Completed),
        budget: root.and_then(|root| root.budget.as_deref()).map(value),
        actions: actions(app, caller, row, &state, (brain_changed.as_deref(), &continuation)),
        brain_known: app.brain(&row.brain).is_ok(),
        changed,
        missing_model: continuation.missing_model,
        conversation_runs: match &row.conversation {
            Some(conversation) => Some(app.client.conversations().runs(conversation).await?.len()),
            None => None,
        },
        forks: forks(app, caller, row).await?,
        row: run_row,
        result_text,
        pending,
    };
    // More than the log belongs to it, such as whether its worker lives.
    let mut seen = value(&detail);
    // The hash of a secret could be compared with those of guesses.
    if let Some(redact) = &app.settings.redact {
        redact(&mut seen);
    }
    let hash: String = hash_json(&seen).as_str().chars().take(16).collect();
    let etag = format!("\"{}-{hash}\"", head(row));
    let is_known = cx.parts.headers.get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == etag.as_bytes());
    let mut response = if is_known { StatusCode::NOT_MODIFIED.into_response() } else { json(&seen)? };
    response.extensions_mut().insert(AsIs);
    if let Some(place) = place {
        response.extensions_mut().insert(place);
    }
    if let Ok(etag) = HeaderValue::try_from(etag) {
        response.headers_mut().insert(ETAG, etag);
    }
    Ok(response)
}

/// Returns what would happen to a run that no worker continues now.
async fn continuation_of(app: &App, row: &RunSummary, shown: &RunRow) -> Result<Continuation, Problem> {
    let is_claimed = shown.worker.as_ref().is_some_and(|worker| worker.live);
    // The workers have said themselves why they refuse it.
    if row.status == Status::Running && (is_claimed || row.refused.is_some()) {
        return Ok(Continuation::default());
    }
    continuation(app, row).await
}

/// Checks each signal against the state as the sender would, without sending it.
fn actions(
    app: &App,
    caller: &Caller,
    row: &RunSummary,
    state: &RunState,
    (changed, continuation): (Option<&str>, &Continuation),
) -> Actions {
    let to = |scope, kind: SignalKind| {
        let allowed = Allowed::to(app, caller, scope);
        let signal = Signal { id: SignalId::new("question"), actor: positronic_core::record::Actor::default(), kind };
        let admitted = admit(state, &signal, app.now(), &|_, _| Ok(()));
        match admitted {
            Err(refusal) if allowed.allowed => Allowed::no(&refusal),
            _ => allowed,
        }
    };
    let resume = match (to(Scope::Operate, SignalKind::Resume), changed) {
        (allowed, Some(difference)) if allowed.allowed => Allowed::no(&difference),
        (allowed, _) => allowed,
    };
    let brain = state.root.as_deref().map_or("", |root| &root.title);
    let for_starters = |allowed: Allowed| match may_start(&app.settings, caller, brain) {
        Err(_) if allowed.allowed => Allowed::no(&"the caller may not start such runs"),
        _ => allowed,
    };
    let fork = for_starters(Allowed::to(app, caller, Scope::Operate));
    let retry = match (row.status, &continuation.retry_refused) {
        (Status::Failed, Some(refusal)) => Allowed::no(refusal),
        (Status::Failed, None) => fork.clone(),
        (Status::Paused, _) if row.parked => for_starters(resume.clone()),
        (status, _) => Allowed::no(&RetryError::NotFailed { status }),
    };
    Actions {
        pause: to(Scope::Operate, SignalKind::Pause),
        resume,
        cancel: to(Scope::Operate, SignalKind::Cancel { reason: None }),
        message: for_starters(to(Scope::Run, SignalKind::message("?"))),
        fork: fork.clone(),
        rerun: fork,
        retry,
    }
}

/// Returns the latest forks of a run that the caller sees.
async fn forks(app: &App, caller: &Caller, row: &RunSummary) -> Result<Vec<ForkItem>, Problem> {
    let mut seen = Vec::new();
    for fork in app.forks.of(app.client.store(), &row.run).await?.into_iter().take(MAX_FORKS) {
        match app.row(caller, &fork).await {
            Ok(row) => seen.push(ForkItem { id: fork.to_string(), status: row.status }),
            // It was pruned, or belongs to another user.
            Err(problem) if problem.kind() == ProblemType::UnknownRun => {}
            Err(problem) => return Err(problem),
        }
    }
    Ok(seen)
}
