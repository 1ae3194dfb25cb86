//! Tries of a brain that a stage runs: how long each may take, and when a failed one is followed by another.
//!
//! ```text
//! BRAIN_START ─▶ fails ─┬▶ STEP_RETRY, BRAIN_ERROR ─▶ it is due ─▶ BRAIN_START of the next try
//!                       └▶ BRAIN_ERROR: the stage fails, or has the failure as a result
//! ```
//!
//! The author's code says whether there is another try, so the worker adds `STEP_RETRY`. A try has a path of its own, and so new
//! idempotency keys: `Research/1.0` is the second try of `Research`, `Summaries/1.7` that of item 7, `Revise/3.1` that of round 3.

use std::time::Duration;

use super::close::end_loop;
use super::effect::{Effect, Next};
use super::frames::{BrainFrame, LoopFrame, LoopPhase, Stage};
use super::stages::Reason;
use crate::record::{BrainStart, EndReason, Event, Failure, Path, Segment, Timestamp};

/// Sets which try it is, and how long it may take.
pub(super) fn tried(brain: BrainFrame, attempt: u32, timeout: Option<Duration>) -> BrainFrame {
    BrainFrame { attempt, due: timeout.map(|timeout| brain.began.after(timeout)), ..brain }
}

/// Creates the frame of its next try.
pub(super) fn begun_again(brain: &BrainFrame, event: &Event, start: &BrainStart) -> BrainFrame {
    let timeout = brain.due.map(|due| due.since(brain.began));
    tried(BrainFrame::begun(event, start), brain.attempt.saturating_add(1), timeout)
}

/// Returns the path of its next try, if it is not one of a group.
pub(super) fn next_try(brain: &BrainFrame) -> Path {
    let stage = brain.path.parent().unwrap_or_default();
    match brain.path.last() {
        Some(Segment::Call(round, attempt)) if attempt == brain.attempt => stage.call(round, attempt.saturating_add(1)),
        Some(Segment::Call(..)) => stage.call(brain.attempt.saturating_add(1), 0),
        _ => brain.path.call(1, 0),
    }
}

/// Folds that it is tried again, before its failure.
pub(super) fn note_retry(brain: &mut BrainFrame, path: &Path, attempt: u32, due: Timestamp) -> Result<(), Reason> {
    if brain.path != *path || brain.attempt != attempt || brain.end.is_some() {
        return Err(format!("the brain is at try {}", brain.attempt));
    }
    brain.again = Some(due);
    Ok(())
}

/// Returns whether its next try is not due, and then records when.
pub(super) fn waits_for_try(brain: &BrainFrame, now: Timestamp, out: &mut Next) -> bool {
    let due = brain.again.filter(|due| now < *due);
    due.inspect(|due| out.wake_at(*due)).is_some()
}

/// Returns its failure if it has taken too long. What it has to undo, it undoes then; a stage that has failed says why.
pub(super) fn overdue(brain: &BrainFrame, now: Timestamp) -> Option<Failure> {
    let due = brain.due.filter(|_| brain.end.is_none() && brain.undoing.is_none())?;
    if now < due || brain.current().is_none() || matches!(brain.stage, Stage::Failed(_)) {
        return None;
    }
    Some(too_long("brain", &brain.path, due.since(brain.began)))
}

/// Adds its failure if it has taken too long, and otherwise records when it will have.
pub(super) fn is_overdue(frame: &LoopFrame, timeout: Option<Duration>, now: Timestamp, out: &mut Next) -> bool {
    let Some(due) = frame.due.filter(|_| !matches!(frame.phase, LoopPhase::Ending(_))) else { return false };
    if now < due {
        out.wake_at(due);
        return false;
    }
    let failure = too_long("loop", &frame.path, timeout.unwrap_or_default());
    out.effects.push(Effect::Append(end_loop(frame, &failure)));
    true
}

fn too_long(what: &str, path: &Path, timeout: Duration) -> Failure {
    let message = format!("the {what} `{path}` took longer than {timeout:?}");
    Failure { code: EndReason::Timeout, message, retryable: true }
}
