//! Forks: `/runs/{run}/fork` and `/runs/{run}/rerun`.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use axum::response::Response;
use indexmap::IndexMap;
use positronic_core::record::{Event, EventKind, Overrides, Path, RunId, RunSummary, Seq, ToolCall, ToolResult};
use positronic_core::runner::{Fork, ForkError};
use positronic_core::store::StoreError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::fork_decisions::may_decide;
use super::next_model::NextModel;
use super::signals::code_differs;
use crate::api::idempotency::Key;
use crate::api::run_item::{RunItem, head};
use crate::app::App;
use crate::auth::{Scope, may_start};
use crate::problem::{Problem, ProblemType};
use crate::redact::with_secrets;
use crate::routes::{RequestContext, Route, created, json};

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
        Route::get("/api/v1/runs/{run}/fork", "List what a fork will run again", preview)
            .large_answers()
            .query::<ForkPreviewQuery>()
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
struct ForkPreviewQuery {
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

/// What a fork will run again.
#[derive(Serialize, JsonSchema)]
struct Preview {
    /// The last common event: the asked one, or the last one that belongs to it.
    at: u64,
    /// The effects of the run after that event, which a fork may run again.
    rerun: Vec<ForkEffect>,
    /// The number of effects up to that event, whose outcomes the fork reuses.
    reused: usize,
    /// Which model answers next in the fork.
    model: NextModel,
}

/// An effect of a run.
#[derive(Serialize, JsonSchema)]
struct ForkEffect {
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
    /// Whether it asks a person again, before it runs or while it runs.
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
    let ForkPreviewQuery { at, from } = cx.query()?;
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
    let calls = ForkCalls::of(&log, at);
    let shared = log.get(..at.next().index()).unwrap_or_default();
    let model = NextModel::of(app, &row.brain, shared).await;
    let (reused, rerun): (Vec<_>, Vec<_>) = log
        .iter()
        .filter_map(|event| calls.effect(event))
        .partition(|effect| effect.seq <= at.0 && !calls.begins_again(effect));
    json(&Preview { at: at.0, rerun, reused: reused.len(), model })
}

/// The calls of a run, those that have asked a person after the event of a fork, and the last event of each path up to it.
struct ForkCalls<'a> {
    calls: HashMap<&'a Path, &'a ToolCall>,
    asking: HashSet<&'a Path>,
    last: HashMap<&'a str, Seq>,
}

impl<'a> ForkCalls<'a> {
    fn of(log: &'a [Arc<Event>], at: Seq) -> Self {
        let (mut calls, mut asking, mut last) = (HashMap::new(), HashSet::new(), HashMap::new());
        for event in log {
            if event.seq <= at {
                last.insert(event.path.as_str(), event.seq);
            }
            match &event.kind {
                EventKind::LoopToolCall(call) => {
                    calls.insert(&event.path, &**call);
                }
                kind if event.seq > at && asks_person(kind) => {
                    asking.insert(&event.path);
                }
                _ => {}
            }
        }
        Self { calls, asking, last }
    }

    /// Returns whether the fork begins an effect again that has begun at its event without an outcome. A call that must not be repeated ends as
    /// interrupted.
    fn begins_again(&self, effect: &ForkEffect) -> bool {
        let is_open = self.last.get(effect.path.as_str()) == Some(&Seq(effect.seq));
        is_open
            && match effect.kind {
                EffectKind::Step | EffectKind::Model => true,
                EffectKind::Tool => effect.may_repeat == Some(true),
                EffectKind::Brain => false,
            }
    }

    /// Returns the effect that an event begins.
    fn effect(&self, event: &Event) -> Option<ForkEffect> {
        let call = self.calls.get(&event.path);
        let (kind, name, may_repeat) = match &event.kind {
            EventKind::StepStart { .. } => (EffectKind::Step, None, None),
            EventKind::LoopModelCall { model, .. } => (EffectKind::Model, Some(model.clone()), None),
            EventKind::LoopToolStart { .. } => {
                (EffectKind::Tool, call.map(|call| call.tool.clone()), call.map(|call| call.flags.may_repeat()))
            }
            EventKind::LoopBrainStart { title, .. } => {
                let is_destructive = call.is_some_and(|call| call.flags.destructive);
                (EffectKind::Brain, Some(title.clone()), is_destructive.then_some(false))
            }
            _ => return None,
        };
        let asks_again = self.asking.contains(&event.path);
        Some(ForkEffect { path: event.path.to_string(), kind, name, seq: event.seq.0, may_repeat, asks_again })
    }
}

/// Returns whether a call asks a person with an event.
fn asks_person(kind: &EventKind) -> bool {
    match kind {
        EventKind::LoopApprovalRequested { .. } => true,
        EventKind::LoopWait { waits, .. } | EventKind::StageWait { waits, .. } => waits.iter().any(|wait| wait.person),
        _ => false,
    }
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
async fn before(app: &App, run: &RunId, from: &str) -> Result<Seq, Problem> {
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
