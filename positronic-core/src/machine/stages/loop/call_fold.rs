//! The fold of a call's events: what is proposed, decided, started, awaited and answered. The first answer to its waits resumes it.

use std::sync::Arc;

use super::approvals::denial;
use super::useless_answers::progressed;
use crate::machine::frames::{BrainFrame, Call, CallPhase, Intent, LoopFrame, LoopPhase, Values};
use crate::machine::stages::frame::Reason;
use crate::machine::stages::step::record_value;
use crate::record::{ChildLink, Decision, Event, EventKind, Path, ResumeCause, ToolCall, ToolResult};

/// Folds an event of a call of the current batch.
pub(super) fn call_event(frame: &mut LoopFrame, iteration: u32, index: u32, event: &Event) -> Result<(), Reason> {
    if let EventKind::LoopToolCall(call) = &event.kind {
        return propose(frame, iteration, index, &event.path, call);
    }
    let call = frame.call_mut(iteration, index).ok_or("there is no such call in the current iteration")?;
    if let EventKind::ChildStart(child) = &event.kind {
        if !matches!(call.phase, CallPhase::Open(Intent::Running)) {
            return Err("the call is not running".to_owned());
        }
        if child.link == ChildLink::Background {
            frame.background.push((event.seq, child.clone()));
        }
        return Ok(());
    }
    match (&event.kind, &mut call.phase) {
        (_, CallPhase::Done(_)) => return Err("the call has its result".to_owned()),
        (
            EventKind::LoopPluginChanged { .. } | EventKind::LoopTrigger { .. } | EventKind::LoopGuardReplaced { .. },
            _,
        ) => {}
        (EventKind::LoopOutput { .. }, _) => call.outputs += 1,
        (EventKind::LoopToolStart { attempt, detached }, CallPhase::Open(intent)) => {
            if !intent.can_start(call.attempt, *attempt) {
                return Err(format!("the call is at try {}", call.attempt));
            }
            *intent = Intent::Running;
            (call.attempt, call.detached) = (*attempt, detached.then_some(event.seq));
            call.started = Some(event.at);
        }
        (EventKind::LoopToolRetry { attempt, due, .. }, CallPhase::Open(intent)) => {
            if *attempt != call.attempt {
                return Err(format!("the call is at try {}", call.attempt));
            }
            *intent = Intent::Backoff(*due);
            call.attempt += 1;
            call.outputs_before = call.outputs;
        }
        (EventKind::LoopBrainStart { .. }, CallPhase::Open(intent)) if call.flags.brain => {
            *intent = Intent::Running;
            call.started = Some(event.at);
        }
        (EventKind::BrainStart(start), CallPhase::Open(Intent::Running)) if call.flags.brain => {
            call.phase = CallPhase::Brain(Arc::new(BrainFrame::begun(event, start)));
        }
        (EventKind::ValueRecorded { name, value }, CallPhase::Open(Intent::Running)) => {
            record_value(&mut call.values, name, value)?;
        }
        (EventKind::LoopBrainComplete { .. }, CallPhase::Brain(brain)) => {
            if brain.end.is_none() {
                return Err("the brain has not ended".to_owned());
            }
        }
        (EventKind::LoopApprovalRequested { expires, .. }, CallPhase::Gated) => {
            call.phase = CallPhase::Pending { since: event.seq, expires: *expires };
        }
        (EventKind::LoopApprovalDecided { decision, arguments, .. }, CallPhase::Pending { .. }) => match decision {
            Decision::Approved => {
                if let Some(arguments) = arguments {
                    call.arguments = Arc::new(arguments.clone());
                    call.edited = true;
                }
                call.phase = CallPhase::Open(Intent::Ready);
            }
            Decision::Rejected => {
                let denied = denial(&call.tool, &call.arguments);
                Arc::make_mut(&mut frame.denials).insert(denied);
            }
        },
        (EventKind::LoopApprovalWithdrawn { .. } | EventKind::LoopApprovalExpired {}, CallPhase::Pending { .. }) => {}
        (EventKind::LoopWait { waits, output, .. }, CallPhase::Open(intent))
            if matches!(intent, Intent::Running | Intent::Doubtful) || call.flags.caller =>
        {
            // The caller runs its tool itself.
            call.started.get_or_insert(event.at);
            call.phase =
                CallPhase::Waiting { since: event.seq, at: event.at, waits: waits.clone(), output: output.clone() };
        }
        (EventKind::LoopResume { cause, wait, payload, .. }, CallPhase::Waiting { waits, output, .. }) => {
            let Some(spec) = usize::try_from(*wait).ok().and_then(|wait| waits.get(wait)) else {
                return Err(format!("the call has no wait {wait}"));
            };
            call.phase = CallPhase::Resumed {
                wait: *wait,
                webhook: spec.webhook.clone(),
                identifier: spec.identifier.clone(),
                several: waits.len() > 1,
                payload: payload.clone(),
                answered: *cause == ResumeCause::Answered,
                output: output.clone(),
            };
        }
        (EventKind::LoopToolResult { result, .. }, phase) => {
            if matches!(phase, CallPhase::Brain(brain) if brain.end.is_none()) {
                return Err("the brain that the call runs has not ended".to_owned());
            }
            *phase = CallPhase::Done(result.clone());
            match result {
                ToolResult::Error { .. } => frame.failures += 1,
                ToolResult::Success { .. } => {
                    frame.failures = 0;
                    progressed(frame);
                }
                ToolResult::Denied { .. } | ToolResult::Skipped { .. } | ToolResult::Interrupted { .. } => {}
            }
        }
        _ => return Err("the call is not there".to_owned()),
    }
    Ok(())
}

fn propose(frame: &mut LoopFrame, iteration: u32, index: u32, path: &Path, call: &ToolCall) -> Result<(), Reason> {
    if !matches!(frame.phase, LoopPhase::Batch) || iteration != frame.iteration || index >= frame.expected {
        return Err("the model did not ask for this call".to_owned());
    }
    if usize::try_from(index).ok() != Some(frame.batch.len()) {
        return Err(format!("the next call is {}", frame.batch.len()));
    }
    frame.batch.push(Arc::new(Call {
        path: path.clone(),
        tool: call.tool.clone(),
        arguments: Arc::clone(&call.arguments),
        edited: false,
        handed_back: false,
        flags: call.flags,
        gate: call.gate.clone(),
        attempt: 0,
        detached: None,
        crashes: 0,
        started: None,
        outputs: 0,
        outputs_before: 0,
        values: Values::new(),
        phase: if call.gate.is_some() { CallPhase::Gated } else { CallPhase::Open(Intent::Ready) },
    }));
    Ok(())
}
