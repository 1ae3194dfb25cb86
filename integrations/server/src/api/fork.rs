//! Forks: `/runs/{run}/fork` and `/runs/{run}/rerun`.

use std::sync::Arc;

use axum::response::Response;
use indexmap::IndexMap;
use positronic_core::machine::{RunState, pending};
use positronic_core::record::{
    Decision, Event, EventKind, Overrides, Path, Pending, RunId, RunSummary, Seq, ToolResult,
};
use positronic_core::runner::{Fork, ForkError};
use positronic_core::store::StoreError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::idempotency::Key;
use super::items::{RunItem, head};
use super::options::read_options;
use super::signals::code_differs;
use crate::app::App;
use crate::auth::{Caller, Question, Scope};
use crate::problem::{Problem, ProblemType};
use crate::routes::{RequestContext, Route, created, json};

pub(super) fn routes() -> Vec<Route> {
    let problems = [
        ProblemType::NotAllowed,
        ProblemType::NotAnApprover,
        ProblemType::BeyondHead,
        ProblemType::OptionsInvalid,
        ProblemType::Unprocessable,
        ProblemType::CodeDiffers,
    ];
    vec![
        Route::get("/api/v1/runs/{run}/fork", "List what a fork will run again", preview)
            .query::<PreviewQuery>()
            .returns::<Preview>(200)
            .problems(&[ProblemType::BeyondHead]),
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

/// Where to fork.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PreviewQuery {
    /// The last common event.
    at: Option<u64>,
    /// Instead of `at`: the path of the stage, the iteration or the call before which to fork.
    from: Option<String>,
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
    /// Results of calls that are open at the fork, by their paths.
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
    /// Results of calls that are open at the fork, by their paths.
    #[serde(default)]
    results: IndexMap<String, Value>,
}

/// What is different in a fork.
struct Changes {
    options: Option<Value>,
    overrides: Overrides,
    results: IndexMap<String, Value>,
}

/// What a fork will run again.
#[derive(Serialize, JsonSchema)]
struct Preview {
    /// The last common event: the asked one, or the last one that belongs to it.
    at: u64,
    /// The effects of the run after that event, which a fork may run again.
    rerun: Vec<Effect>,
    /// The number of effects up to that event, whose outcomes the fork reuses.
    reused: usize,
}

/// An effect of a run.
#[derive(Serialize, JsonSchema)]
struct Effect {
    path: String,
    kind: EffectKind,
    /// The tool, the model or the brain.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// The event that began it.
    seq: u64,
    /// Whether running it again has no further effect: the tool is read-only or idempotent. `false` for a brain that is called as
    /// a destructive tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    may_repeat: Option<bool>,
    /// Whether a person is asked again before it runs.
    asks_again: bool,
}

/// What kind of effect it is.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum EffectKind {
    Step,
    Model,
    Tool,
    Brain,
}

async fn preview(cx: RequestContext) -> Result<Response, Problem> {
    let PreviewQuery { at, from } = cx.query()?;
    let (app, row) = (&cx.app, cx.run()?);
    let at = match (at, from) {
        (Some(at), None) => Seq(at),
        (None, Some(from)) => before(app, &row.run, &from).await?,
        (None, None) => head(row),
        (Some(_), Some(_)) => {
            return Err(Problem::new(ProblemType::InvalidQuery).detail("`at` and `from` exclude each other"));
        }
    };
    let at = app.client.fork_event(&row.run, at).await?;
    let log = app.client.events(&row.run, Seq(0)).await?;
    let (reused, rerun): (Vec<_>, Vec<_>) = log.iter().partition(|event| event.seq <= at);
    let reused = reused.into_iter().filter_map(|event| effect(&log, event, at)).count();
    json(&Preview { at: at.0, rerun: rerun.into_iter().filter_map(|event| effect(&log, event, at)).collect(), reused })
}

/// Returns the effect that an event begins, for a fork after `at`.
fn effect(log: &[Arc<Event>], event: &Event, at: Seq) -> Option<Effect> {
    let call = || {
        log.iter().find_map(|before| match &before.kind {
            EventKind::LoopToolCall(call) if before.path == event.path => Some(call),
            _ => None,
        })
    };
    let (kind, name, may_repeat) = match &event.kind {
        EventKind::StepStart { .. } => (EffectKind::Step, None, None),
        EventKind::LoopModelCall { model, .. } => (EffectKind::Model, Some(model.clone()), None),
        EventKind::LoopToolStart { .. } => {
            let call = call();
            (EffectKind::Tool, call.map(|call| call.tool.clone()), call.map(|call| call.flags.may_repeat()))
        }
        EventKind::LoopBrainStart { title, .. } => {
            let is_destructive = call().is_some_and(|call| call.flags.destructive);
            (EffectKind::Brain, Some(title.clone()), is_destructive.then_some(false))
        }
        _ => return None,
    };
    let asks = |later: &Event| matches!(later.kind, EventKind::LoopApprovalRequested { .. });
    let asks_again = log.iter().any(|later| later.seq > at && later.path == event.path && asks(later));
    Some(Effect { path: event.path.to_string(), kind, name, seq: event.seq.0, may_repeat, asks_again })
}

async fn fork(cx: RequestContext) -> Result<Response, Problem> {
    let NewFork { at, options, model, system, results } = cx.json()?;
    forked(&cx, Seq(at), Changes { options, overrides: Overrides { system, model }, results }).await
}

async fn rerun(cx: RequestContext) -> Result<Response, Problem> {
    let NewRerun { from, options, model, system, results } = cx.json()?;
    let at = before(&cx.app, &cx.run()?.run, &from).await?;
    forked(&cx, at, Changes { options, overrides: Overrides { system, model }, results }).await
}

/// Returns the event right before a run entered a place.
async fn before(app: &App, run: &RunId, from: &str) -> Result<Seq, Problem> {
    let path = Path::parse(from).map_err(|error| Problem::new(ProblemType::Unprocessable).detail(error))?;
    let found = app.client.before(run, &path).await?;
    found.ok_or_else(|| Problem::new(ProblemType::Unprocessable).detail(format!("the run has not entered `{from}`")))
}

async fn forked(cx: &RequestContext, at: Seq, changes: Changes) -> Result<Response, Problem> {
    let (app, row, key) = (&cx.app, cx.run()?, Key::of(cx)?);
    let Changes { options, overrides, results } = changes;
    app.may_start(cx.caller()?, &row.brain)?;
    let mut fork = Fork::builder().actor(cx.actor()?).overrides(overrides).build();
    let new = RunId::new(key.id(&format!("fork\n{}", row.run)));
    fork.run = Some(new.clone());
    fork.options = options.map(|options| fork_options(app, row, options)).transpose()?;
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

/// Refuses a fork that decides in the place of other people: with results of calls that wait for them, or with an approval of
/// theirs for a call that runs again.
async fn may_decide(cx: &RequestContext, row: &RunSummary, at: Seq, fork: &Fork) -> Result<(), Problem> {
    let (app, caller) = (&cx.app, cx.caller()?);
    let at = app.client.fork_event(&row.run, at).await?;
    let state = app.states.at(&row.run, at).await?;
    // A result of a call ends what waits within it.
    let is_given = |pending: &Pending| fork.results.keys().any(|path| pending.call.is_within(path));
    let given = pending(&state).into_iter().filter(is_given);
    for pending in given {
        may_decide_item(app, caller, row, &state, &pending)?;
    }
    let log = app.client.events(&row.run, Seq(0)).await?;
    for event in log.iter().take_while(|event| event.seq <= at) {
        let is_approval = matches!(event.kind, EventKind::LoopApprovalDecided { decision: Decision::Approved, .. });
        if !is_approval || state.call(&event.path).is_none_or(|call| call.result().is_some()) {
            continue;
        }
        let before = app.states.at(&row.run, Seq(event.seq.0.saturating_sub(1))).await?;
        for pending in pending(&before).iter().filter(|pending| pending.call == event.path) {
            may_decide_item(app, caller, row, &before, pending)?;
        }
    }
    Ok(())
}

fn may_decide_item(
    app: &App,
    caller: &Caller,
    row: &RunSummary,
    state: &RunState,
    pending: &Pending,
) -> Result<(), Problem> {
    if pending.kind.is_for_person() && !caller.may(Scope::Decide) {
        return Err(Problem::new(ProblemType::ScopeMissing).field("required", [Scope::Decide]));
    }
    app.may_decide(caller, &Question::of(&row.run, state, pending))
}

/// Returns how the code of this server differs from that with which the fork would have to continue.
async fn difference(app: &App, row: &RunSummary, at: Seq) -> Result<Option<String>, Problem> {
    if app.brain(&row.brain).is_err() {
        return Ok(None);
    }
    let at = app.client.fork_event(&row.run, at).await?;
    match app.options.brains.runner(&row.brain).await {
        Ok(runner) => Ok(runner.fork_difference(&row.run, at).await?),
        Err(_) => Ok(None),
    }
}

/// Checks new options by the schema of the brain, if this server has it.
fn fork_options(app: &App, row: &RunSummary, options: Value) -> Result<Value, Problem> {
    match app.brain(&row.brain) {
        Ok(brain) => read_options(&brain, &options),
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
