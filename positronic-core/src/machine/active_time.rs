//! Active time: what counts for limits of time, and what lists say of a run.
//!
//! The time between two events of one worker counts for the frames that were active all that time, measured by the clock of
//! that worker. Signals come from machines with other clocks, and come between these events:
//!
//! - A frame that was not active before the first signal counts nothing: it is unknown when the signal came.
//! - A frame that was not active all the time counts by the times of the signals, and never more than the worker's clock says.
//!
//! The time after a worker's last event does not count if another worker continues the run.

use std::time::Duration;

use super::active_frame::ActiveFrame;
use super::apply_usage::add_active;
use super::conversation_budget::{budget_of, shared_of};
use super::stages::Frame as _;
use super::state::RunState;
use crate::record::encoding::micros::micros;
use crate::record::{Budget, Event, EventKind, LimitKind, Path, RunSummary, Status};

/// Returns the frames with a time limit that are active until an event.
pub(super) fn active_before(state: &RunState, event: &Event) -> Vec<Path> {
    let mut active = Vec::new();
    let counts = !state.untimed && (event.epoch.is_none() || event.clock() > state.worker_at);
    if let Some(root) = state.root.as_deref().filter(|_| counts && state.paused.is_none()) {
        root.collect_active(false, &mut active);
    }
    active
}

/// Notes whether an event brings a limit of time. Without one nothing that is open is visited for each event, and that can be thousands of
/// brains.
pub(super) fn note_time_limit(state: &mut RunState, event: &Event) {
    let is_timed = |budget: &Budget| budget.limit(LimitKind::Time).is_some();
    match &event.kind {
        EventKind::BrainStart(start) => {
            let shared = shared_of(start).is_some_and(|shared| shared.budget.limit(LimitKind::Time).is_some());
            let is_timed = shared || budget_of(start).is_some_and(|own| is_timed(&own));
            state.untimed = (event.path.is_root() || state.untimed) && !is_timed;
        }
        EventKind::LoopStart { limits, .. } => state.untimed &= !is_timed(&limits.budget),
        EventKind::LoopIteration(iteration) => {
            state.untimed &= !iteration.limits.as_ref().is_some_and(|limits| is_timed(&limits.budget));
        }
        _ => {}
    }
}

/// Counts the time before an event. `active` are the frames that were active until then; `None` without a worker.
pub(super) fn count_active(state: &mut RunState, event: &Event, active: Option<&[Path]>) {
    let known = state.since_worker.take();
    let logged = micros(event.at.since(state.at));
    let before = match (known, active) {
        (Some(known), Some(active)) => known.into_iter().map(|frame| frame.until(active, logged)).collect(),
        (None, Some(active)) => active.iter().map(|path| ActiveFrame::new(path.clone(), logged)).collect(),
        (_, None) => Vec::new(),
    };
    if event.epoch.is_none() {
        state.since_worker = active.is_some().then_some(before);
        return;
    }
    let passed = micros(event.clock().since(state.worker_at));
    for ActiveFrame { path, logged, throughout } in before {
        add_active(state, &path, if throughout { passed } else { logged.min(passed) });
    }
    state.worker_at = event.clock();
}

/// Returns the active time up to the last event: the time since the event before it counts if the run was running and has the
/// claim of the same worker at both.
pub(super) fn active_of_run(state: &RunState, before: Option<&RunSummary>) -> Option<Duration> {
    let Some(before) = before else { return Some(Duration::ZERO) };
    let claim = before.claim.as_ref().filter(|claim| !claim.released && before.status == Status::Running);
    let was_active = claim.is_some_and(|claim| state.claim.as_ref().is_some_and(|now| now.epoch == claim.epoch));
    let passed = if was_active { state.at.since(before.at) } else { Duration::ZERO };
    before.active.map(|active| active.saturating_add(passed))
}
