//! Which calls run again after a crash. The log does not say whether the tool of a call that was running had its effect.
//! The call runs again if its tool may be repeated, at most as often as the tool may be tried; otherwise its result is
//! `interrupted`.

use std::sync::Arc;

use crate::machine::frames::{Call, CallPhase, Intent};
use crate::machine::stages::frame::Frame as _;
use crate::record::{NewEvent, Seq, ToolResult};

impl Call {
    /// Returns whether a worker's end interrupts it, or something below it.
    pub(super) fn is_in_doubt(&self, shared: Option<Seq>) -> bool {
        let runs = matches!(self.phase, CallPhase::Open(Intent::Running));
        runs && !self.outlives_worker(shared) || matches!(self.phase, CallPhase::Brain(_))
    }

    /// Marks it as doubtful, and counts a crash.
    pub(super) fn doubt(&mut self, crashed: bool, shared: Option<Seq>) {
        match &mut self.phase {
            CallPhase::Open(intent) => {
                let interrupted = intent.doubt() && crashed;
                self.crashes = self.crashes.saturating_add(u32::from(interrupted));
            }
            CallPhase::Brain(inner) => Arc::make_mut(inner).doubt(crashed, shared),
            CallPhase::Gated
            | CallPhase::Pending { .. }
            | CallPhase::Waiting { .. }
            | CallPhase::Resumed { .. }
            | CallPhase::Done(_) => {}
        }
    }

    /// Returns whether it outlives the worker if it is in flight: a detached call that this run itself started. The next worker
    /// gets its outcome.
    pub(in crate::machine) fn outlives_worker(&self, shared: Option<Seq>) -> bool {
        self.detached.is_some_and(|since| shared.is_none_or(|shared| since > shared))
    }

    /// Returns whether it runs again although it may have had its effect: its tool may be repeated, or it is a brain, which
    /// resumes where it was.
    pub(super) const fn may_rerun(&self) -> bool {
        self.flags.may_repeat() || self.flags.brain
    }

    /// Ends a call in doubt that does not run again.
    pub(super) fn interrupted(&self) -> NewEvent {
        let reason = "the worker went away while the tool ran; whether it had its effect is unknown".to_owned();
        self.ended(ToolResult::Interrupted { reason })
    }
}

/// Returns the result of a call that is not started again, since the process has ended during it more often than its tool
/// may be tried again.
pub(crate) fn given_up(call: &Call, retries: u32) -> Option<NewEvent> {
    (call.crashes > retries).then(|| {
        let times = if call.crashes == 1 { "once".to_owned() } else { format!("{} times", call.crashes) };
        let reason = format!(
            "the process ended {times} while the tool ran, so it is not started again; whether it had its effect is unknown"
        );
        call.ended(ToolResult::Interrupted { reason })
    })
}
