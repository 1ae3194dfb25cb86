//! Active time: what counts for limits of time.
//!
//! The time between two events of one worker counts for the frames that were active all that time, measured by the clock of
//! that worker. Signals come from machines with other clocks, and come between these events:
//!
//! - A frame that was not active before the first signal counts nothing: it is unknown when the signal came.
//! - A frame that was not active all the time counts by the times of the signals, and never more than the worker's clock says.
//!
//! The time after a worker's last event does not count if another worker continues the run.

use crate::record::micros::micros;
use crate::record::{Event, LimitKind, Path, StageKind};

use super::active_frame::ActiveFrame;
use super::frames::{BrainFrame, Call, CallPhase, Intent, LoopFrame, LoopPhase, Stage};
use super::limits::Bound;
use super::state::RunState;

impl RunState {
    /// Returns the frames with a time limit that are active until an event.
    pub(super) fn active_before(&self, event: &Event) -> Vec<Path> {
        let mut active = Vec::new();
        let counts = event.epoch.is_none() || event.clock() > self.worker_at;
        if let Some(root) = self.root.as_deref().filter(|_| counts && self.paused.is_none()) {
            active_frames(root, false, &mut active);
        }
        active
    }

    /// Counts the time before an event. `active` are the frames that were active until then; `None` without a worker.
    pub(super) fn count_active(&mut self, event: &Event, active: Option<&[Path]>) {
        let known = self.since_worker.take();
        let logged = micros(event.at.since(self.at));
        let before = match (known, active) {
            (Some(known), Some(active)) => known.into_iter().map(|frame| frame.until(active, logged)).collect(),
            (None, Some(active)) => active.iter().map(|path| ActiveFrame::new(path.clone(), logged)).collect(),
            (_, None) => Vec::new(),
        };
        if event.epoch.is_none() {
            self.since_worker = active.is_some().then_some(before);
            return;
        }
        let passed = micros(event.clock().since(self.worker_at));
        for ActiveFrame { path, logged, throughout } in before {
            self.add_active(&path, if throughout { passed } else { logged.min(passed) });
        }
        self.worker_at = event.clock();
    }
}

/// Collects the active loops and brains with a time limit, and returns whether the brain is active. Frames that wait
/// for more are not active.
fn active_frames(brain: &BrainFrame, waits: bool, active: &mut Vec<Path>) -> bool {
    let waits = waits || brain.waits_for_more();
    let busy = match &brain.stage {
        _ if brain.end.is_some() => true,
        Stage::Step(step) => !step.held || !waits,
        Stage::Ready => !waits || brain.current().is_none_or(|stage| stage.kind != StageKind::Loop),
        Stage::Failed(_) => true,
        Stage::Brain(inner) => active_frames(inner, waits, active),
        Stage::Loop(frame) => active_loop(frame, waits, active),
    };
    if busy && Bound::all_of(brain).any(|bound| bound.limit(LimitKind::Time).is_some()) {
        active.push(brain.path.clone());
    }
    busy
}

fn active_loop(frame: &LoopFrame, waits: bool, active: &mut Vec<Path>) -> bool {
    let waits = waits || frame.grants.asked.is_some();
    let mut busy = match &frame.phase {
        LoopPhase::Batch => false,
        LoopPhase::Prepare | LoopPhase::Answered => !waits,
        LoopPhase::Ask { intent, .. } => !waits || *intent == Intent::Running,
        LoopPhase::Ending(_) => true,
    };
    for call in &frame.batch {
        busy |= works(call, waits, active);
    }
    if busy && frame.limits.budget.max_time.is_some() {
        active.push(frame.path.clone());
    }
    busy
}

/// Returns whether a call is active, which includes a delayed retry.
fn works(call: &Call, waits: bool, active: &mut Vec<Path>) -> bool {
    match &call.phase {
        CallPhase::Brain(inner) => active_frames(inner, waits, active),
        CallPhase::Open(intent) => matches!(intent, Intent::Running | Intent::Backoff(_)),
        CallPhase::Resumed { .. } => true,
        CallPhase::Gated | CallPhase::Pending { .. } | CallPhase::Waiting { .. } | CallPhase::Done(_) => false,
    }
}
