//! What a fork decides in the place of people: it gives results of calls, or continues work that they have allowed.

use std::collections::HashMap;
use std::sync::Arc;

use positronic_core::machine::{BrainFrame, RunState, Stage};
use positronic_core::record::{Decision, Event, EventKind, Path, Pending, PendingKind, RunSummary, Segment, Seq};
use positronic_core::runner::Fork;
use serde_json::Value;

use crate::app::App;
use crate::auth::{Caller, Question, Scope};
use crate::problem::Problem;
use crate::routes::RequestContext;

/// Refuses a fork after `at` by a caller that may not make the decisions in it:
///
/// - A given result counts as a decision about every question of its call, and of the calls below it, that the run has asked
///   before or after `at`. A call that has not asked yet may ask a person.
/// - An approval, an answer or a grant by a person before `at` counts as a decision if the call, the loop or the brain is still
///   open at `at`, because the fork acts on it again.
pub(crate) async fn may_decide(cx: &RequestContext, row: &RunSummary, at: Seq, fork: &Fork) -> Result<(), Problem> {
    let (app, caller) = (&cx.app, cx.caller()?);
    let at = app.client.fork_event(&row.run, at).await?;
    let state = app.states.at(&row.run, at).await?;
    let log = app.client.events(&row.run, Seq(0)).await?;
    let Questions { asked, decided } = Questions::of(&log, at);
    let reused = decided.into_iter().filter(|question| is_open(&state, &question.call));
    let given = fork.results.keys().flat_map(|call| {
        let mut within: Vec<_> = asked.iter().filter(|question| question.call.is_within(call)).cloned().collect();
        if within.is_empty() {
            within.extend(without_question(&state, call));
        }
        within
    });
    given.chain(reused).try_for_each(|question| may_decide_one(app, caller, row, &state, &question))
}

fn may_decide_one(
    app: &App,
    caller: &Caller,
    row: &RunSummary,
    state: &RunState,
    question: &Pending,
) -> Result<(), Problem> {
    let waits = question.kind.waits();
    let is_for_programs = !waits.is_empty() && waits.iter().all(|wait| !wait.person);
    if !is_for_programs && !caller.may(Scope::Decide) {
        return Err(Problem::scope_missing(&[Scope::Decide]));
    }
    app.may_decide(caller, &Question::of(&row.run, state, question))
}

/// The questions of a run.
#[derive(Default)]
struct Questions {
    /// All of them. The question for an approval begins with its call.
    asked: Vec<Pending>,
    /// Those that people have decided in favour of the work, up to an event.
    decided: Vec<Pending>,
}

impl Questions {
    fn of(log: &[Arc<Event>], at: Seq) -> Self {
        let mut calls: HashMap<&Path, (&str, Arc<Value>)> = HashMap::new();
        let mut questions = Self::default();
        for event in log {
            let kind = match &event.kind {
                EventKind::LoopToolCall(call) => {
                    calls.insert(&event.path, (&call.tool, Arc::clone(&call.arguments)));
                    call.gate.clone().map(|gate| PendingKind::Approval { gate, expires: None })
                }
                EventKind::LoopWait { waits, .. } => Some(PendingKind::Answer { waits: waits.clone() }),
                EventKind::StageWait { waits, .. } if !waits.is_empty() => {
                    Some(PendingKind::Answer { waits: waits.clone() })
                }
                EventKind::BudgetRequested(request) => Some(PendingKind::Budget(*request)),
                _ => None,
            };
            if let Some(kind) = kind {
                let is_budget = matches!(kind, PendingKind::Budget(_));
                let (tool, arguments) = calls.get(&event.path).filter(|_| !is_budget).cloned().unwrap_or_default();
                let (call, tool) = (event.path.clone(), tool.to_owned());
                questions.asked.push(Pending { call, tool, arguments, since: event.seq, kind });
            }
            let last = || questions.asked.iter().rfind(|question| question.call == event.path);
            if event.seq <= at
                && let Some(question) = last().filter(|question| is_in_favour(&event.kind, question))
            {
                questions.decided.push(question.clone());
            }
            if let EventKind::LoopApprovalDecided { arguments: Some(edited), .. } = &event.kind
                && let Some((_, arguments)) = calls.get_mut(&event.path)
            {
                *arguments = Arc::new(edited.clone());
            }
        }
        questions
    }
}

/// Returns whether an event is a person's decision that lets the work of a question continue.
fn is_in_favour(kind: &EventKind, question: &Pending) -> bool {
    match kind {
        EventKind::LoopApprovalDecided { decision, .. } | EventKind::BudgetDecided { decision, .. } => {
            *decision == Decision::Approved
        }
        EventKind::LoopResume { wait, signal: Some(_), .. } | EventKind::StageResume { wait, signal: Some(_), .. } => {
            let answered = usize::try_from(*wait).ok().and_then(|wait| question.kind.waits().get(wait));
            answered.is_some_and(|wait| wait.person)
        }
        _ => false,
    }
}

/// Returns whether the call, the loop or the brain at this path has not ended.
fn is_open(state: &RunState, path: &Path) -> bool {
    if let Some(Segment::Call(..)) = path.last() {
        return state.call(path).is_some_and(|call| call.result().is_none());
    }
    let waits = |brain: &BrainFrame| {
        brain.current_path().as_ref() == Some(path) && matches!(&brain.stage, Stage::Wait(wait) if wait.end.is_none())
    };
    state.owner(path).is_some_and(waits)
        || state.loop_at(path).is_some_and(|frame| frame.path == *path)
        || state.brain(path).is_some_and(|brain| brain.end.is_none())
}

/// Returns an open call as a question without possible answers.
fn without_question(state: &RunState, path: &Path) -> Option<Pending> {
    let call = state.call(path)?;
    let (tool, arguments) = (call.tool.clone(), Arc::clone(&call.arguments));
    Some(Pending {
        call: path.clone(),
        tool,
        arguments,
        since: state.next,
        kind: PendingKind::Answer { waits: Vec::new() },
    })
}
