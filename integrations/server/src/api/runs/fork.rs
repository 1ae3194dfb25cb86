//! Forks: `/runs/{run}/fork` and `/runs/{run}/rerun`.

use std::sync::Arc;

use axum::response::Response;
use indexmap::IndexMap;
use positronic_core::record::{Event, EventKind, Overrides, Path, RunId, RunSummary, Seq, ToolResult};
use positronic_core::runner::{Fork, ForkError};
use positronic_core::store::StoreError;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::fork_decisions::may_decide;
use super::signals::code_differs;
use crate::api::idempotency::Key;
use crate::api::run_item::RunItem;
use crate::app::App;
use crate::auth::{Scope, may_start};
use crate::problem::{Problem, ProblemType};
use crate::redact::with_secrets;
use crate::routes::{RequestContext, Route, created};

pub(crate) fn routes() -> Vec<Route> {
    let problems = [
        ProblemType::NotAllowed,
        ProblemType::NotAnApprover,
        ProblemType::BeyondHead,
        ProblemType::OptionsInvalid,
        ProblemType::Unprocessable,
        ProblemType::CodeDiffers,
    ];
    vec![
        Route::post("/api/v1/runs/{run}/fork", "Fork a run after an event", fork)
            .scopes(&[Scope::Operate])
            .takes::<NewFork>()
            .idempotent()
            .returns::<RunItem>(201)
            .problems(&problems),
        Route::post("/api/v1/runs/{run}/rerun", "Fork a run before a stage, an iteration or a call", rerun)
            .scopes(&[Scope::Operate])
            .takes::<NewRerun>()
            .idempotent()
            .returns::<RunItem>(201)
            .problems(&problems),
    ]
}

/// A fork.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewFork {
    /// The last common event. Events that belong together stay together.
    at: u64,
    /// The new options; completed stages have read the original ones.
    #[serde(default)]
    options: Option<Value>,
    /// The model of all loops, from their next iteration on.
    #[serde(default)]
    model: Option<String>,
    /// The system prompt of all loops, from their next iteration on.
    #[serde(default)]
    system: Option<String>,
    /// Results of open calls, by their paths. They need the scope `decide`, unless the call waits only for programs.
    #[serde(default)]
    results: IndexMap<String, Value>,
}

/// A fork that runs a part again.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewRerun {
    /// The path of the stage, the iteration or the call that runs again, with all that follows.
    from: String,
    /// The new options; completed stages have read the original ones.
    #[serde(default)]
    options: Option<Value>,
    /// The model of all loops, from their next iteration on.
    #[serde(default)]
    model: Option<String>,
    /// The system prompt of all loops, from their next iteration on.
    #[serde(default)]
    system: Option<String>,
    /// Results of open calls, by their paths. They need the scope `decide`, unless the call waits only for programs.
    #[serde(default)]
    results: IndexMap<String, Value>,
}

/// What is different in a fork.
struct ForkChanges {
    options: Option<Value>,
    overrides: Overrides,
    results: IndexMap<String, Value>,
}

async fn fork(cx: RequestContext) -> Result<Response, Problem> {
    let NewFork { at, options, model, system, results } = cx.json()?;
    forked(&cx, Seq(at), ForkChanges { options, overrides: Overrides { system, model }, results }).await
}

async fn rerun(cx: RequestContext) -> Result<Response, Problem> {
    let NewRerun { from, options, model, system, results } = cx.json()?;
    let at = before(&cx.app, &cx.run()?.run, &from).await?;
    forked(&cx, at, ForkChanges { options, overrides: Overrides { system, model }, results }).await
}

/// Returns the event right before a run entered a place.
pub(super) async fn before(app: &App, run: &RunId, from: &str) -> Result<Seq, Problem> {
    let refused = |detail: String| Problem::new(ProblemType::Unprocessable).detail(detail);
    let path = Path::parse(from).map_err(|error| refused(error.to_string()))?;
    if path.is_root() {
        return Err(refused("`from` is empty: name a stage, an iteration or a call of the run".to_owned()));
    }
    let found = app.client.before(run, &path).await?;
    found.ok_or_else(|| refused(format!("the run has not entered `{from}`")))
}

async fn forked(cx: &RequestContext, at: Seq, changes: ForkChanges) -> Result<Response, Problem> {
    let (app, row, key) = (&cx.app, cx.run()?, Key::of(cx)?);
    let ForkChanges { options, overrides, results } = changes;
    may_start(&app.settings, cx.caller()?, &row.brain)?;
    let mut fork = Fork::builder().actor(cx.actor()?).overrides(overrides).build();
    let new = RunId::new(key.id(&format!("fork\n{}", row.run)));
    fork.run = Some(new.clone());
    if let Some(options) = options {
        fork.options = Some(fork_options(app, row, options).await?);
    }
    for (path, result) in results {
        let path = Path::parse(&path).map_err(|error| Problem::new(ProblemType::Unprocessable).detail(error))?;
        fork.results.insert(path, ToolResult::success(result));
    }
    let is_known = match app.client.store().run(&new).await {
        Ok(_) => true,
        Err(StoreError::NoSuchRun { .. }) => false,
        Err(error) => return Err(error.into()),
    };
    if !is_known {
        may_decide(cx, row, at, &fork).await?;
        if let Some(difference) = difference(app, row, at).await? {
            return Err(code_differs(&difference));
        }
    }
    let wanted = fork.clone();
    let is_replay = match app.client.fork(&row.run, at, fork).await {
        Ok(_) => false,
        Err(ForkError::Store(StoreError::Conflict { .. })) => {
            is_same_fork(app, row, &new, at, &wanted).await?;
            true
        }
        Err(error) => return Err(error.into()),
    };
    let forked = app.client.store().run(&new).await?;
    let mut response = created("../", new.as_str(), &app.run_items(&[forked]).await?.into_iter().next())?;
    key.mark(&mut response, is_replay);
    Ok(response)
}

/// Returns how the code of this server differs from that with which the fork would have to continue.
async fn difference(app: &App, row: &RunSummary, at: Seq) -> Result<Option<String>, Problem> {
    if app.brain(&row.brain).is_err() {
        return Ok(None);
    }
    let at = app.client.fork_event(&row.run, at).await?;
    match app.settings.brains.runner(&row.brain).await {
        Ok(runner) => Ok(runner.fork_difference(&row.run, at).await?),
        Err(_) => Ok(None),
    }
}

/// Puts the secrets of the run's options back into new ones, and checks them by the schema of the brain, if this server has it.
async fn fork_options(app: &App, row: &RunSummary, options: Value) -> Result<Value, Problem> {
    let state = app.states.at(&row.run, Seq(0)).await?;
    let original = state.root.as_ref().map(|root| &*root.options).unwrap_or(&Value::Null);
    let options = with_secrets(app.settings.redact.as_ref(), original, options)?;
    match app.brain(&row.brain) {
        Ok(brain) => app.read_options(&brain, &options),
        Err(_) => Ok(options),
    }
}

/// Refuses another fork under the key of an earlier one.
async fn is_same_fork(app: &App, row: &RunSummary, new: &RunId, at: Seq, wanted: &Fork) -> Result<(), Problem> {
    let (store, at) = (app.client.store(), app.client.fork_event(&row.run, at).await?);
    let (origin, first) = (store.read(&row.run, Seq(0), 1).await?, store.read(new, Seq(0), 1).await?);
    let begin = |events: &[Arc<Event>]| match events.first().map(|event| event.kind.clone()) {
        Some(EventKind::BrainStart(begin)) => Some(begin),
        _ => None,
    };
    let (Some(origin), Some(begin)) = (begin(&origin), begin(&first)) else {
        return Err(ProblemType::KeyReused.into());
    };
    let is_same_start = begin
        .start
        .as_ref()
        .is_some_and(|start| start.forked_from == Some((row.run.clone(), at)) && start.overrides == wanted.overrides);
    let is_same = is_same_start && begin.options == *wanted.options.as_ref().unwrap_or(&origin.options);
    // The given results follow the shared events. A worker's own come after its claim.
    let after = store.read(new, at.next(), wanted.results.len() + 1).await?;
    let given = after.iter().map_while(|event| match &event.kind {
        EventKind::LoopToolResult { result, .. } => Some((event.path.clone(), result.clone())),
        _ => None,
    });
    if is_same && given.collect::<IndexMap<_, _>>() == wanted.results {
        return Ok(());
    }
    Err(ProblemType::KeyReused.into())
}
