//! Deadlines in a fork: what was left of a time when the fork's past ends, is left when the fork begins.
//!
//! The pauses before further tries stay as they are: what is due is tried at once.

use std::sync::Arc;
use std::time::Duration;

use super::frame::Frame as _;
use crate::machine::grants::Grants;
use crate::machine::state::RunState;
use crate::record::{Event, Timestamp, WaitSpec};

/// Moves the deadlines that are open, if an event is the first one of a fork itself.
pub(in crate::machine) fn postpone_in_fork(state: &mut RunState, event: &Event) {
    let by = event.at.since(state.at);
    if let Some(root) = state.root.as_mut().filter(|_| state.start.begins_fork(event.seq)) {
        Arc::make_mut(root).postpone(by);
    }
}

impl Grants {
    /// Moves the time until which the open request for more can be answered.
    pub(super) fn postpone(&mut self, by: Duration) {
        if let Some(asked) = &mut self.asked {
            postpone(&mut asked.request.expires, by);
        }
    }
}

/// Moves a deadline.
pub(super) fn postpone(due: &mut Option<Timestamp>, by: Duration) {
    *due = due.map(|due| due.after(by));
}

/// Moves the ends of waits.
pub(super) fn postpone_waits(waits: &mut [WaitSpec], by: Duration) {
    for wait in waits {
        postpone(&mut wait.expires, by);
    }
}
