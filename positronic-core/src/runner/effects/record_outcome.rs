//! Outcomes of effects: described as data by the runner, and converted into events by the machine.

use super::prepare::{record_inputs, record_prepared};
use super::questions_and_values::record_question;
use super::report::EffectOutcome;
use super::state_owner::states;
use crate::definition::{UntypedReply, recordable};
use crate::error::Result;
use crate::machine::{Outcome, Replaced, Returned, StateChanges, Veto, settle};
use crate::record::{EventKind, Path};
use crate::runner::detached::call::InDoubt;
use crate::runner::worker::Worker;
use crate::runner::worker::stop_reason::ResumeError;

/// Adds the outcome of an effect to the draft; that of a question is appended, and then its asker gets the reply.
pub(in crate::runner) async fn record_outcome(
    worker: &mut Worker,
    path: &Path,
    outcome: EffectOutcome,
) -> Result<(), ResumeError> {
    let (outcome, took) = match outcome {
        EffectOutcome::Settled(outcome, took) => (outcome, took),
        EffectOutcome::Tool { result, replaced, attempt, took } => {
            let Some(outcome) = returned(worker, path, result, replaced, attempt) else { return Ok(()) };
            (outcome, took)
        }
        EffectOutcome::Prepared { result, iteration, read } => {
            return record_prepared(worker, path, result, iteration, read);
        }
        EffectOutcome::Inputs { inputs, iteration, read } => {
            return record_inputs(worker, path, inputs, iteration, read);
        }
        EffectOutcome::Edited { result } => {
            // The brain begins next, or the call ends, since its effect is still due.
            worker.checked_edits.insert(path.clone(), result);
            return Ok(());
        }
        EffectOutcome::Question { result, took, asker } => {
            return Box::pin(record_question(worker, path, result, *asker, took)).await;
        }
    };
    let new_events = settle(&worker.state, path, outcome, took, &worker.settle_context());
    let waits = new_events.iter().any(|event| matches!(event.kind, EventKind::LoopWait { .. }));
    worker.mail_unread |= waits;
    if !new_events.is_empty() {
        worker.draft_outcome(path, new_events)?;
    }
    Ok(())
}

/// Computes the state changes of a tool that has returned; `None` if the call no longer exists.
fn returned(
    worker: &mut Worker,
    path: &Path,
    result: Result<UntypedReply>,
    replaced: Vec<Replaced>,
    attempt: u32,
) -> Option<Outcome> {
    worker.state.call(path)?;
    let max_bytes = worker.shared.runner.settings.max_document_bytes;
    let checked = |reply: UntypedReply| {
        recordable("the tool did its work, but what it returned", &reply.output, max_bytes).map(|()| reply)
    };
    let reply = match result.and_then(checked) {
        Ok(reply) => reply,
        Err(error) => {
            let tool = worker.state.call(path).and_then(|call| worker.frames.tool(path, &call.tool));
            let retries = tool.map_or(0, |tool| tool.retries);
            if let Some(InDoubt(reason)) = error.source().downcast_ref::<InDoubt>() {
                return Some(Outcome::ToolInDoubt { reason: reason.clone(), attempt, retries });
            }
            if let Some(Veto(message)) = error.source().downcast_ref::<Veto>() {
                return Some(Outcome::CallStopped { message: message.clone(), replaced });
            }
            return Some(Outcome::ToolFailed { error, attempt, retries });
        }
    };
    let UntypedReply { output, brief, updates, plugin_updates, waits, triggers } = reply;
    // Most tools change no state.
    let changes = match updates.is_empty() && plugin_updates.is_empty() {
        true => Ok(StateChanges::default()),
        false => states(worker, path)?.and_then(|states| states.updated(path, updates, plugin_updates)),
    };
    let waits = waits.into_iter().map(|wait| (wait.spec, wait.valid_for)).collect();
    Some(Outcome::Tool(Returned { output, brief, waits, triggers, replaced, changes }))
}
