//! Tool calls that run apart from the run's worker.

use super::frames::{CallPhase, Intent, OpenFrame};
use super::state::RunState;
use crate::record::Path;

/// Returns the detached calls that are in flight, with their tries: a new worker attaches to them.
#[must_use]
pub(crate) fn detached(state: &RunState) -> Vec<(Path, u32)> {
    let mut calls = Vec::new();
    state.for_each_open(|open| match open {
        OpenFrame::Call(call) if call.detached.is_some() && call.phase == CallPhase::Open(Intent::Running) => {
            calls.push((call.path.clone(), call.attempt));
        }
        _ => {}
    });
    calls
}
