//! `GET /runs/{run}/fork`: what a fork will run again.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use axum::response::Response;
use positronic_core::record::{Event, EventKind, Path, Seq, ToolCall};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fork::before;
use super::next_model::NextModel;
use crate::api::run_item::head;
use crate::problem::{Problem, ProblemType};
use crate::routes::{RequestContext, Route, json};

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/runs/{run}/fork", "List what a fork will run again", preview)
            .large_answers()
            .query::<ForkPreviewQuery>()
            .returns::<Preview>(200)
            .problems(&[ProblemType::BeyondHead]),
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
