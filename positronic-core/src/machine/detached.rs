//! Tool calls that run apart from the run's worker.

use super::frames::{BrainFrame, CallPhase, Intent, Stage};
use super::state::RunState;
use crate::record::Path;

/// Returns the detached calls that are in flight, with their tries: a new worker attaches to them.
#[must_use]
pub(crate) fn detached(state: &RunState) -> Vec<(Path, u32)> {
    let mut calls = Vec::new();
    if let Some(root) = state.root.as_deref() {
        collect(root, &mut calls);
    }
    calls
}

fn collect(brain: &BrainFrame, calls: &mut Vec<(Path, u32)>) {
    match &brain.stage {
        Stage::Brain(inner) => collect(inner, calls),
        Stage::Loop(frame) => {
            for call in &frame.batch {
                match &call.phase {
                    CallPhase::Open(Intent::Running) if call.detached.is_some() => {
                        calls.push((call.path.clone(), call.attempt));
                    }
                    CallPhase::Brain(inner) => collect(inner, calls),
                    CallPhase::Open(_)
                    | CallPhase::Gated
                    | CallPhase::Pending { .. }
                    | CallPhase::Waiting { .. }
                    | CallPhase::Resumed { .. }
                    | CallPhase::Done(_) => {}
                }
            }
        }
        Stage::Ready | Stage::Step(_) | Stage::Failed(_) => {}
    }
}
