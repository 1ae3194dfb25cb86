//! How a nested brain begins, of a stage or a tool, and what its end does to the outer state.

use std::sync::Arc;

use serde_json::Value;

use super::continued::stays_with;
use super::group;
use super::recheck_edited_arguments::check_edit;
use super::report::EffectOutcome;
use super::state_owner::states;
use crate::definition::{AnyServices, BrainDefinition, Invocation};
use crate::error::{Error, Result, caught_now};
use crate::machine::{BrainEnd, Outcome, StateChanges, Veto};
use crate::record::{BrainStart, Path};
use crate::runner::worker::Worker;
use crate::runner::worker::loaded_code::Frames;
use crate::runner::worker::stop_reason::ResumeError;

/// Begins a nested brain. The arguments of a call that a person has edited are checked first, in a task of their own.
pub(super) async fn start_brain(worker: &mut Worker, path: Path) -> Result<bool, ResumeError> {
    let checked = worker.checked_edits.remove(&path);
    if checked.is_none() && worker.state.call(&path).is_some_and(|call| call.edited) {
        if !worker.append_drafted().await? {
            return Ok(false);
        }
        if spawn_check(worker, &path) {
            return Ok(true);
        }
    }
    let item = group::item(worker, &path).await?;
    let begun = match checked.unwrap_or(Ok(())) {
        Ok(()) => nested_brain(worker, &path, item),
        Err(refused) => Err(refused),
    };
    let (start, code) = match begun {
        Ok((start, definition, services)) => (Ok(start), Some((definition, services))),
        Err(error) => (Err(error), None),
    };
    let outcome = match start.as_ref().err().and_then(|error| error.source().downcast_ref::<Veto>()) {
        Some(Veto(message)) => Outcome::CallStopped { message: message.clone(), replaced: Vec::new() },
        None => Outcome::BrainBegun(start),
    };
    let new_events = worker.settled(&path, outcome);
    let appended = worker.append_together(new_events).await?;
    if let (true, Some((definition, services)), Some(frame)) = (appended, code, worker.state.brain(&path)) {
        worker.frames.begin(frame, definition, services);
    }
    Ok(appended)
}

/// Returns the first event of the brain that a stage or a call runs, with its code and its services. `item` is the options of one of
/// a group.
fn nested_brain(
    worker: &mut Worker,
    path: &Path,
    item: Option<Value>,
) -> Result<(Box<BrainStart>, Arc<BrainDefinition>, AnyServices)> {
    let (nested, arguments, owner) = {
        let state = &worker.state;
        let item = item.map(Arc::new);
        let arguments = item.or_else(|| state.call(path).map(|call| Arc::clone(&call.arguments))).unwrap_or_default();
        let owner = state.owner(path).map(|brain| brain.path.clone()).unwrap_or_default();
        (worker.frames.nested(state, path), arguments, owner)
    };
    let missing = || Error::new("the brain's code has no such brain");
    let (nested, states) = (nested.ok_or_else(missing)?, states(worker, path).ok_or_else(missing)?);
    let states = states?;
    let options = caught_now(|| (nested.input)(&states.document, &arguments))?;
    let services = Frames::provided(&nested.definition, worker.frames.services(&owner))?;
    let mut start = nested.definition.begin(options);
    if let Some(over) = stays_with(&worker.state, path) {
        let max_bytes = states.document.max_bytes();
        let kept = caught_now(|| nested.definition.kept(over.version, &over.state, max_bytes))?;
        start.state = kept.unwrap_or(start.state);
    }
    Ok((Box::new(start), nested.definition, services))
}

/// Begins to check the arguments of a call that runs a brain, which a person has edited. Returns whether there is something to check.
fn spawn_check(worker: &mut Worker, path: &Path) -> bool {
    let call = worker.state.call(path).map(|call| {
        let (tool, arguments) = (call.tool.clone(), Arc::clone(&call.arguments));
        Invocation { tool, arguments, flags: call.flags, attempt: call.attempt }
    });
    let Some(call) = call else { return false };
    let tool = worker.frames.tool(path, &call.tool).cloned();
    let (Some(tool), Some(scope)) = (tool, worker.scope(path.clone())) else { return false };
    let loop_at = worker.frames.enclosing_loop(path).cloned();
    let shared = Arc::clone(&worker.shared);
    worker.used_answers.remove(path);
    worker.launch(
        path.clone(),
        true,
        Box::pin(async move {
            let clock = &*shared.runner.clock;
            EffectOutcome::Edited { result: check_edit(clock, loop_at.as_deref(), &tool, &scope, &call).await }
        }),
    );
    true
}

pub(super) fn finish_brain(worker: &mut Worker, path: &Path) -> Option<Outcome> {
    let states = states(worker, path)?;
    let (nested, end) = (worker.frames.nested(&worker.state, path), worker.state.brain(path)?.end.clone()?);
    let BrainEnd::Completed(result) = end else {
        return Some(Outcome::BrainEnded(Ok((StateChanges::default(), false))));
    };
    let is_done =
        path.parent().and_then(|stage| worker.frames.stage_at(&stage)?.as_repeat()).map(|it| Arc::clone(&it.is_done));
    Some(Outcome::BrainEnded(states.and_then(|states| {
        let nested = nested.ok_or_else(|| Error::new("the brain's code has no such brain"))?;
        let output = nested.output.as_ref();
        let next = output.map(|output| caught_now(|| output(&states.document, &result))).transpose()?;
        let after = next.clone().map(|next| states.document.with_json(Arc::new(next)));
        let again = match (&is_done, &after) {
            (Some(is_done), Some(after)) => !caught_now(|| is_done(after))?,
            _ => false,
        };
        Ok((states.step(path, next, Vec::new())?, again))
    })))
}

pub(super) fn complete_brain(worker: &mut Worker, path: &Path) -> Option<Outcome> {
    let brain = worker.state.brain(path)?;
    let (document, stopped) = (worker.frames.document(brain), brain.stopped.clone());
    let result = match worker.frames.definition(path) {
        Some(definition) => caught_now(|| definition.complete(&document, stopped.as_ref())),
        None => Err(Error::new("the brain's code is missing")),
    };
    Some(Outcome::BrainResult(result))
}
