//! A person's approval or rejection of a call, with edited arguments that are checked against the tool's schema.

use serde_json::Value;

use super::external_json::{SchemaCheck, sorted};
use super::refusal::{Refusal, no_such_call, not_asked};
use crate::machine::frames::{Call, CallPhase, LoopFrame};
use crate::machine::limits::asked_at;
use crate::machine::state::RunState;
use crate::record::{Decision, DenialCause, EventKind, NewEvent, Path, Signal, Timestamp, ToolDecl, ToolResult};

pub(super) fn approve(
    state: &RunState,
    signal: &Signal,
    path: &Path,
    arguments: Option<&Value>,
    now: Timestamp,
    check: SchemaCheck<'_>,
) -> Result<Vec<NewEvent>, Refusal> {
    let (frame, call) = pending_call(state, path, now)?;
    if let Some(arguments) = arguments {
        if !call.gate.as_ref().is_some_and(|gate| gate.editable) {
            return Err(Refusal::NotEditable { call: path.clone() });
        }
        let fits = match declared(frame, call) {
            Some(tool) => check(&tool.parameters, arguments),
            None => Err(format!("the tool `{}` is not declared, so they cannot be checked", call.tool)),
        };
        fits.map_err(|reason| Refusal::Misfit {
            what: format!("the edited arguments of `{path}` are invalid"),
            reason,
        })?;
    }
    let kind = EventKind::LoopApprovalDecided {
        decision: Decision::Approved,
        arguments: arguments.filter(|arguments| **arguments != *call.arguments).map(sorted),
        reason: None,
        signal: signal.id.clone(),
        actor: signal.actor.clone(),
    };
    Ok(vec![NewEvent::new(path.clone(), kind)])
}

pub(super) fn reject(
    state: &RunState,
    signal: &Signal,
    path: &Path,
    reason: Option<&String>,
    now: Timestamp,
) -> Result<Vec<NewEvent>, Refusal> {
    pending_call(state, path, now)?;
    let decided = EventKind::LoopApprovalDecided {
        decision: Decision::Rejected,
        arguments: None,
        reason: reason.cloned(),
        signal: signal.id.clone(),
        actor: signal.actor.clone(),
    };
    let cause = Some(DenialCause::Rejected);
    let result = ToolResult::Denied { cause, reason: reason.cloned(), by: signal.actor.by.clone() };
    Ok(vec![
        NewEvent::new(path.clone(), decided),
        NewEvent::new(path.clone(), EventKind::LoopToolResult { result, duration: None, change: None }),
    ])
}

fn pending_call<'a>(state: &'a RunState, path: &Path, now: Timestamp) -> Result<(&'a LoopFrame, &'a Call), Refusal> {
    if asked_at(state, path).is_some() {
        let how = "asks for more, so say how much, or reject it".to_owned();
        return Err(Refusal::Unasked { call: path.clone(), how });
    }
    let found = state.loop_at(path).zip(state.call(path));
    let Some((frame, call)) = found else { return Err(no_such_call(state, path)) };
    match &call.phase {
        CallPhase::Pending { expires: Some(expires), .. } if *expires <= now => {
            Err(Refusal::Expired { call: path.clone() })
        }
        CallPhase::Pending { .. } => Ok((frame, call)),
        CallPhase::Done(result) => {
            let how = match result {
                ToolResult::Success { .. } => "it ran and succeeded",
                ToolResult::Error { .. } => "it ran and failed",
                ToolResult::Denied { .. } => "it was denied",
                ToolResult::Skipped { .. } => "it was skipped",
                ToolResult::Interrupted { .. } => "it was interrupted",
            };
            Err(Refusal::Decided { call: path.clone(), how: how.to_owned() })
        }
        CallPhase::Open(_) | CallPhase::Brain(_) | CallPhase::Waiting { .. } | CallPhase::Resumed { .. }
            if call.gate.is_some() =>
        {
            Err(Refusal::Decided { call: path.clone(), how: "it was approved and runs".to_owned() })
        }
        CallPhase::Open(_) | CallPhase::Brain(_) | CallPhase::Waiting { .. } | CallPhase::Resumed { .. } => {
            Err(not_asked(state, path, "a decision"))
        }
        CallPhase::Gated => Err(no_such_call(state, path)),
    }
}

fn declared<'a>(frame: &'a LoopFrame, call: &Call) -> Option<&'a ToolDecl> {
    frame.prepared.tools.tools().iter().find(|tool| tool.id.as_str() == call.tool)
}
