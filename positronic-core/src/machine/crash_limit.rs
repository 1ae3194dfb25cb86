//! Crash counting: during which work the process ended, how often in a row, and when the run is parked because of it.
//!
//! A claim over an unreleased one is a crash. All runs of the process share it, and which of them caused it is unknown. So it
//! counts for each piece of work that was in flight: a step, a loop, or a tool of a loop. Only an outcome of that same work ends
//! its count. What the crash itself caused, such as the `interrupted` result of a call and the model's answer to it, does not.
//! A run with `SUSPECT` crashes is a suspect: the runner limits how many suspects work at once, and a suspect's calls run one at
//! a time, so that the others make progress.
//!
//! Work that reaches [`MAX_CRASHES`] is not begun again. The run is parked instead: paused with its failure, until a person
//! retries it. Each call also counts the crashes that interrupted it, and its tool's retries limit them.

use super::crashed_work::{CrashedWork, Work};
use super::effect::{Effect, Next};
use super::frames::{Call, CallPhase, Intent, LoopPhase, OpenFrame};
use super::next::effects;
use super::state::RunState;
use crate::record::{
    Actor, EndReason, Event, EventKind, Failure, NewEvent, Path, Segment, Seq, SignalId, Timestamp, ToolResult,
};

/// The number of consecutive crashes during the same work from which on a run is a suspect.
pub(crate) const SUSPECT: u32 = 2;
/// The maximum number of consecutive crashes during the same work.
pub const MAX_CRASHES: u32 = 10;

/// Counts a crash for all work that was in flight. A detached call that outlives the worker is not in flight in its
/// process; `shared` is the last event that a fork shares.
pub(super) fn count_crash(state: &mut RunState, at: Timestamp, shared: Option<Seq>) {
    for work in work_in_flight(state, at, shared) {
        add_crashes(state, work, 1, at);
    }
}

fn work_in_flight(state: &RunState, at: Timestamp, shared: Option<Seq>) -> Vec<Work> {
    let mut paths = Vec::new();
    if state.root.is_none() || state.has_ended() {
        return Vec::new();
    }
    let mut add = |path: &Path| paths.push(path.clone());
    state.for_each_open(|open| match open {
        OpenFrame::Step(brain, step) if step.intent.is_running() => add(&brain.current_path().unwrap_or_default()),
        OpenFrame::Loop(frame) => {
            if matches!(&frame.phase, LoopPhase::Ask { intent: Intent::Running, .. }) {
                add(&frame.path);
            }
        }
        OpenFrame::Call(call) => {
            if call.phase == CallPhase::Open(Intent::Running) && !call.outlives_worker(shared) {
                add(&call.path);
            }
        }
        OpenFrame::Brain(_) | OpenFrame::Step(..) | OpenFrame::Wait(..) | OpenFrame::Group(_) => {}
    });
    // These have no intent in the log.
    let due = effects(state, at).effects;
    for effect in &due {
        match effect {
            Effect::Prepare { path, .. }
            | Effect::Resume { path }
            | Effect::Choose { path }
            | Effect::TakeArm { path }
            | Effect::BeginGroup { path }
            | Effect::FinishGroup { path }
            | Effect::Check { path }
            | Effect::BeginWait { path }
            | Effect::FinishWait { path }
            | Effect::StartBrain { path }
            | Effect::FinishBrain { path }
            | Effect::CompleteBrain { path }
            | Effect::CloseLoop { path, .. } => add(path),
            Effect::Append(_) | Effect::Step { .. } | Effect::Ask { .. } | Effect::Execute { .. } => {}
        }
    }
    if paths.is_empty() && state.restoring {
        paths.extend(work_to_restore(state, &due));
    }
    let mut found = Vec::new();
    for work in paths.iter().map(|path| work_at(state, path)) {
        if !found.contains(&work) {
            found.push(work);
        }
    }
    found
}

/// Returns the paths of the work for which a run is restored: the due effects, or its stage if only events are due.
fn work_to_restore(state: &RunState, due: &[Effect]) -> impl Iterator<Item = Path> {
    let paths: Vec<_> = due.iter().filter_map(Effect::path).cloned().collect();
    let only_events = paths.is_empty() && !due.is_empty();
    let stage = state.root.as_ref().filter(|_| only_events).and_then(|root| root.current_path());
    paths.into_iter().chain(stage)
}

/// Counts the ends of the process of a detached call that is given up: the log has them as its tries.
pub(super) fn count_lost_call(state: &mut RunState, event: &Event) {
    let EventKind::LoopToolResult { result: ToolResult::Interrupted { .. }, .. } = &event.kind else { return };
    let in_flight = |call: &&Call| call.detached.is_some() && call.phase == CallPhase::Open(Intent::Running);
    if let Some(tries) = state.call(&event.path).filter(in_flight).map(|call| call.attempt.saturating_add(1)) {
        add_crashes(state, work_at(state, &event.path), tries, event.at);
    }
}

fn add_crashes(state: &mut RunState, work: Work, crashes: u32, at: Timestamp) {
    match state.crashed.iter_mut().find(|crashed| crashed.work == work) {
        Some(crashed) => {
            crashed.crashes = crashed.crashes.saturating_add(crashes);
            crashed.last = at;
        }
        None => state.crashed.push(CrashedWork { work, crashes, first: at, last: at }),
    }
}

/// Returns the work at a path: a call's tool, or else the stage.
pub(super) fn work_at(state: &RunState, path: &Path) -> Work {
    let tool = match path.last() {
        Some(Segment::Call(..)) => state.call(path).map(|call| call.tool.clone()),
        _ => None,
    };
    let stage = path.segments().fold(Path::root(), |stage, segment| match segment {
        Segment::Stage(name) => stage.stage(name),
        Segment::Iteration(_) | Segment::Call(..) | Segment::Question(..) => stage,
    });
    Work { stage, tool }
}

/// Ends the count of the work of which the event is an outcome.
pub(super) fn count_progress(state: &mut RunState, event: &Event, work: &Work) {
    // An answer to a guard is no outcome: a model that is asked again may give another answer, about which the guard asks again.
    if is_outcome(&event.kind) && !event.path.is_question() {
        state.crashed.retain(|crashed| crashed.work != *work);
    }
    // A stage outside of calls never runs again.
    let again = event.path.segments().any(|segment| matches!(segment, Segment::Call(..)));
    if matches!(event.kind, EventKind::LoopComplete { .. } | EventKind::StepComplete { .. }) && !again {
        state.crashed.retain(|crashed| !crashed.work.stage.is_within(&event.path));
    }
}

/// Returns whether an event is an outcome of the work at its path, which the process has survived.
const fn is_outcome(kind: &EventKind) -> bool {
    match kind {
        EventKind::BrainStart(_)
        | EventKind::BrainComplete { .. }
        | EventKind::BrainError(_)
        | EventKind::BrainCancelled { .. }
        | EventKind::StepComplete { .. }
        | EventKind::StepBlocked {}
        | EventKind::ValueRecorded { .. }
        | EventKind::ChildStart(_)
        | EventKind::LoopIteration(_)
        | EventKind::LoopModelResult { .. }
        | EventKind::LoopAnswerRefused { .. }
        | EventKind::LoopToolResult { result: ToolResult::Success { .. } | ToolResult::Error { .. }, .. }
        | EventKind::LoopBrainComplete { .. }
        | EventKind::LoopWait { .. }
        | EventKind::BranchChosen(_)
        | EventKind::GroupStart { .. }
        | EventKind::RepeatRound { .. }
        | EventKind::GuardChecked { .. }
        | EventKind::UndoFailed { .. }
        | EventKind::StageWait { .. }
        | EventKind::LoopComplete { .. } => true,
        // Claims, intents, side effects of unfinished work, signals, and what a crash causes.
        EventKind::RunClaimed { .. }
        | EventKind::RunReleased { .. }
        | EventKind::RunNotClaimed { .. }
        | EventKind::BrainMigrated { .. }
        | EventKind::UndoStart { .. }
        | EventKind::BrainPaused { .. }
        | EventKind::BrainResumed { .. }
        | EventKind::StepStart { .. }
        | EventKind::LoopStart { .. }
        | EventKind::LoopModelCall { .. }
        // A retry does not prove progress: a detached call whose process ended is retried, too, and a step's rerun repeats its question
        // from the first attempt. An attempt that succeeds or is the last one has an outcome.
        | EventKind::StepRetry { .. }
        | EventKind::LoopToolRetry { .. }
        | EventKind::LoopModelRetry { .. }
        | EventKind::LoopAnswerBroken { .. }
        | EventKind::LoopToolCall(_)
        | EventKind::LoopToolStart { .. }
        | EventKind::LoopToolResult {
            result: ToolResult::Denied { .. } | ToolResult::Skipped { .. } | ToolResult::Interrupted { .. },
            ..
        }
        | EventKind::LoopBrainStart { .. }
        | EventKind::LoopOutput { .. }
        | EventKind::LoopTrigger { .. }
        | EventKind::LoopApprovalRequested { .. }
        | EventKind::LoopApprovalDecided { .. }
        | EventKind::LoopApprovalWithdrawn { .. }
        | EventKind::LoopApprovalExpired {}
        | EventKind::LoopResume { .. }
        | EventKind::StageResume { .. }
        | EventKind::LoopMessage { .. }
        | EventKind::LoopExit { .. }
        | EventKind::LoopMaxIterations { .. }
        | EventKind::LoopLimit(_)
        | EventKind::LoopStopped { .. }
        | EventKind::BudgetRequested(_)
        | EventKind::BudgetDecided { .. }
        | EventKind::BudgetExpired {}
        | EventKind::LoopGuardReplaced { .. }
        | EventKind::LoopPluginUpdate { .. }
        | EventKind::LoopPluginChanged { .. }
        | EventKind::LoopPluginFailed { .. }
        | EventKind::LoopCompacted { .. } => false,
    }
}

/// Limits a suspect to one running call. A call that survives ends the count of its tool, even if the process is killed before the
/// rest of the batch is done, and a call that ends the process does so alone.
pub(super) fn isolate(state: &RunState, next: &mut Next) {
    if state.crashed.iter().all(|crashed| crashed.crashes < SUSPECT) {
        return;
    }
    let mut busy = state.any_open(|open| match open {
        OpenFrame::Call(call) => call.phase == CallPhase::Open(Intent::Running) && call.detached.is_none(),
        OpenFrame::Brain(_) | OpenFrame::Step(..) | OpenFrame::Loop(_) | OpenFrame::Wait(..) | OpenFrame::Group(_) => {
            false
        }
    });
    next.effects.retain(|effect| !matches!(effect, Effect::Execute { .. }) || !std::mem::replace(&mut busy, true));
}

/// Parks a run that has just been claimed if its next work, or restoring it, has crashed too often.
#[must_use]
pub(crate) fn parked(state: &RunState, now: Timestamp) -> Option<NewEvent> {
    park(state, &effects(state, now))
}

/// Parks a run whose next work has crashed too often.
pub(super) fn park(state: &RunState, next: &Next) -> Option<NewEvent> {
    if state.crashed.is_empty() {
        return None;
    }
    let at_limit = |path: &Path| {
        let work = work_at(state, path);
        state.crashed.iter().find(|crashed| crashed.work == work && crashed.crashes >= MAX_CRASHES)
    };
    let begun = state.restoring.then(|| work_to_restore(state, &next.effects)).into_iter().flatten();
    let mut paths = next.effects.iter().filter_map(Effect::path).cloned().chain(begun);
    let CrashedWork { work, crashes, .. } = paths.find_map(|path| at_limit(&path))?;
    let message = format!("the process ended {crashes} times in a row during {}", work.describe());
    let failure = Failure { code: EndReason::Crash, message, retryable: true };
    let signal = SignalId::new(format!("parked-{}", state.next));
    let paused = EventKind::BrainPaused { signal, actor: Actor::default(), failure: Some(failure) };
    Some(NewEvent::new(Path::root(), paused))
}
