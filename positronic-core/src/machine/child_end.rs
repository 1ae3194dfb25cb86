//! The end of a child run, as its parent learns of it.
//!
//! ```text
//! CHILD_START ─▶ the child's own log ─▶ its end ─▶ LOOP_MESSAGE   of the loop whose call has started it in the background
//!                                             └──▶ STAGE_RESUME   of the stage that waits for it
//! ```
//!
//! An end for which nothing waits yet is not stored: its log has it, and the worker looks there when a wait begins.

use serde_json::Value;

use super::admit::{Refusal, SchemaCheck, answer, nothing_waits, waiting};
use super::frames::{LoopPhase, OpenFrame};
use super::state::RunState;
use crate::record::{ChildEnd, EventKind, NewEvent, RunId, Signal, Speaker, Timestamp, WaitSpec};

/// Admits the end of a child run to the loop whose call has started it in the background, or to the stage that waits for it.
pub(super) fn child_ended(
    state: &RunState,
    signal: &Signal,
    child: &RunId,
    end: &ChildEnd,
    now: Timestamp,
    check: SchemaCheck<'_>,
) -> Result<Vec<NewEvent>, Refusal> {
    let mut listening = None;
    state.for_each_open(|open| {
        if let OpenFrame::Loop(frame) = open
            && let Some((_, started)) = frame.background.iter().find(|(_, started)| started.run == *child)
            && !matches!(frame.phase, LoopPhase::Ending(_))
        {
            listening = Some((frame.path.clone(), started.name.clone()));
        }
    });
    if let Some((path, name)) = listening {
        let kind = EventKind::LoopMessage {
            text: report(&name, child, end),
            files: Vec::new(),
            caller_tools: None,
            message_id: Some(child.as_str().to_owned()),
            from: Speaker::Child,
            signal: Some(signal.id.clone()),
            actor: signal.actor.clone(),
        };
        return Ok(vec![NewEvent::new(path, kind)]);
    }
    let Some((path, wait)) = waiting(state).find(|(_, (_, wait))| wait.child().as_ref() == Some(child)) else {
        return Err(nothing_waits(state, WaitSpec::CHILD, child.as_str()));
    };
    let payload = serde_json::to_value(end).map_err(|error| Refusal::Misfit {
        what: format!("the end of the run `{child}`"),
        reason: error.to_string(),
    })?;
    answer(signal, &path, wait, &payload, now, check)
}

/// Tells a model how a run that its call has started in the background has ended.
fn report(name: &str, child: &RunId, end: &ChildEnd) -> String {
    match end {
        ChildEnd::Completed(Value::String(text)) => format!("`{name}` ({child}) is done: {text}"),
        ChildEnd::Completed(result) => format!("`{name}` ({child}) is done: {result}"),
        ChildEnd::Failed(failure) => format!("`{name}` ({child}) has failed: {}", failure.message),
        ChildEnd::Cancelled => format!("`{name}` ({child}) was cancelled."),
    }
}
