//! A call of a batch: its nested brain, its work in flight, and its end.

use std::sync::Arc;

use crate::machine::frames::{BrainFrame, Call, CallPhase, Intent};
use crate::machine::stages::frame::Frame as _;
use crate::record::{EventKind, NewEvent, Path, ToolResult};

impl Call {
    /// Returns its nested brain.
    pub(in crate::machine) fn inner(&self) -> Option<&BrainFrame> {
        match &self.phase {
            CallPhase::Brain(inner) => Some(inner),
            _ => None,
        }
    }

    pub(super) fn inner_mut(&mut self) -> Option<&mut BrainFrame> {
        match &mut self.phase {
            CallPhase::Brain(inner) => Some(Arc::make_mut(inner)),
            _ => None,
        }
    }

    /// Returns whether it has work in flight, as `Frame::in_flight`.
    pub(super) fn in_flight(&self, requests: fn(Intent) -> bool) -> bool {
        match &self.phase {
            CallPhase::Open(intent) => intent.is_busy(),
            CallPhase::Brain(inner) => inner.in_flight(requests),
            CallPhase::Gated
            | CallPhase::Pending { .. }
            | CallPhase::Waiting { .. }
            | CallPhase::Resumed { .. }
            | CallPhase::Done(_) => false,
        }
    }

    /// Returns whether it is active, as `Frame::collect_active`. A delayed retry counts.
    pub(super) fn collect_active(&self, waits: bool, active: &mut Vec<Path>) -> bool {
        match &self.phase {
            CallPhase::Brain(inner) => inner.collect_active(waits, active),
            CallPhase::Open(intent) => intent.is_busy(),
            CallPhase::Resumed { .. } => true,
            CallPhase::Gated | CallPhase::Pending { .. } | CallPhase::Waiting { .. } | CallPhase::Done(_) => false,
        }
    }

    /// Ends an open call with a result.
    pub(super) fn close(&self, why: &str, new_events: &mut Vec<NewEvent>) {
        let result = match &self.phase {
            CallPhase::Done(_) => return,
            CallPhase::Pending { .. } => {
                new_events
                    .push(NewEvent::new(self.path.clone(), EventKind::LoopApprovalWithdrawn { cause: why.to_owned() }));
                ToolResult::Skipped { reason: why.to_owned() }
            }
            CallPhase::Gated | CallPhase::Open(Intent::Ready | Intent::Backoff(_)) => {
                ToolResult::Skipped { reason: why.to_owned() }
            }
            CallPhase::Open(Intent::Running | Intent::Doubtful) => {
                ToolResult::Interrupted { reason: format!("{why}; whether the tool had its effect is unknown") }
            }
            CallPhase::Waiting { .. } | CallPhase::Resumed { .. } => {
                ToolResult::Interrupted { reason: format!("{why} while the call waited for an answer") }
            }
            CallPhase::Brain(inner) => {
                inner.close(why, new_events);
                let complete =
                    EventKind::LoopBrainComplete { result: None, error: Some(why.to_owned()), handed_back: false };
                new_events.push(NewEvent::new(self.path.clone(), complete));
                ToolResult::Interrupted { reason: why.to_owned() }
            }
        };
        new_events.push(self.ended(result));
    }

    /// Returns the event that gives it a result its tool has not returned.
    pub(super) fn ended(&self, result: ToolResult) -> NewEvent {
        NewEvent::new(self.path.clone(), EventKind::LoopToolResult { result, duration: None, change: None })
    }
}
