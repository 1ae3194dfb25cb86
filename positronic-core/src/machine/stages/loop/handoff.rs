//! Handoffs: with which brain a conversation stays, and how a brain hands the dialogue back.
//!
//! ```text
//! BRAIN_START of a call that stays ─▶ the conversation stays ─┬▶ the next run: its loop makes the call again, before it asks a model
//!                                                             └▶ LOOP_BRAIN_COMPLETE with `handed_back`, or an error: it no longer does
//! ```

use std::sync::Arc;

use serde_json::Value;

use crate::machine::frames::{Call, CallPhase, LoopFrame};
use crate::machine::stages::frame::OwnerState;
use crate::record::{EventKind, HandedOver, Path, Segment, ToolResult};

/// Notes that the conversation stays with the brain that a call begins.
pub(super) fn follow_begin(
    frame: &mut LoopFrame,
    iteration: u32,
    index: u32,
    kind: &EventKind,
    owner: &mut OwnerState<'_>,
) {
    let (EventKind::BrainStart(_), Some(Segment::Stage(stage))) = (kind, frame.path.last()) else { return };
    let stage = stage.to_owned();
    let Some(call) = frame.call_mut(iteration, index).filter(|call| call.flags.handoff && call.flags.stay) else {
        return;
    };
    let is_same = |known: &HandedOver| known.is_of(&stage, &call.tool);
    let inner = owner.handed_over.take().filter(|known| is_same(known)).and_then(|known| known.inner);
    let (tool, arguments) = (call.tool.clone(), Arc::clone(&call.arguments));
    let CallPhase::Brain(brain) = &mut call.phase else { return };
    let brain = Arc::make_mut(brain);
    brain.handed_over.clone_from(&inner);
    let (version, state) = (brain.version, Arc::clone(&brain.state));
    *owner.handed_over = Some(Box::new(HandedOver { stage, tool, arguments, version, state, inner }));
}

/// Notes where the conversation stays when the brain of a call has ended. A brain that has handed the dialogue back does not end the loop.
pub(super) fn follow_end(
    frame: &mut LoopFrame,
    iteration: u32,
    index: u32,
    kind: &EventKind,
    owner: &mut OwnerState<'_>,
) {
    if !frame.call(iteration, index).is_some_and(Call::hands_over) {
        return;
    }
    let Some(Segment::Stage(stage)) = frame.path.last() else { return };
    let stage = stage.to_owned();
    let Some(call) = frame.call_mut(iteration, index) else { return };
    call.handed_back = matches!(kind, EventKind::LoopBrainComplete { handed_back: true, .. });
    let handed_back = call.handed_back;
    // The conversation may stay with the brain of another call.
    let Some(over) = owner.handed_over.as_mut().filter(|over| over.is_of(&stage, &call.tool)) else { return };
    match kind {
        EventKind::LoopToolResult { result: ToolResult::Error { .. }, .. } => *owner.handed_over = None,
        _ if handed_back => *owner.handed_over = None,
        EventKind::LoopToolResult { .. } => {
            if let CallPhase::Brain(brain) = &call.phase {
                over.inner.clone_from(&brain.handed_over);
                (over.version, over.state) = (brain.version, Arc::clone(&brain.state));
            }
        }
        _ => {}
    }
}

/// Returns the output of the exit call if it hands the dialogue back.
pub(super) fn handing_back(frame: &LoopFrame, exit: &Path) -> Option<Value> {
    let call = frame.batch.iter().find(|call| call.path == *exit && call.flags.hand_back)?;
    match call.result()? {
        ToolResult::Success { output, .. } => Some(output.clone()),
        _ => None,
    }
}
