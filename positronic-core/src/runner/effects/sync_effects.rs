//! Dispatches the effects that the worker performs at once; it checks guards, ends loops and resumes calls itself.

use std::sync::Arc;

use super::branch::{choose, take_arm};
use super::group;
use super::nested_brain::{complete_brain, finish_brain, start_brain};
use super::plugin_updates::{has_updates, updated};
use super::prepare::{prepare, yielded};
use super::state_owner::{owner_scope, states};
use super::wait::{begin_wait, finish_wait};
use crate::definition::{ToolBody, WaitDefinition};
use crate::error::{Error, Result, caught_now};
use crate::machine::{CallPhase, Effect, LoopFrame, Outcome};
use crate::record::{LoopOutcome, Path};
use crate::runner::worker::Worker;
use crate::runner::worker::stop_reason::ResumeError;

/// Performs an effect, and drafts or appends its outcome. Returns `false` if another writer was first or the effect is obsolete.
pub(in crate::runner) async fn perform(worker: &mut Worker, effect: Effect) -> Result<bool, ResumeError> {
    let (path, outcome) = match &effect {
        Effect::Prepare { path, iteration } => return prepare(worker, path.clone(), *iteration).await,
        Effect::Choose { path } => (path, choose(worker, path)),
        Effect::TakeArm { path } => (path, take_arm(worker, path)),
        Effect::BeginGroup { path } => (path, group::begin(worker, path)),
        Effect::FinishGroup { path } => (path, group::finish(worker, path).await?),
        Effect::Check { path } => (path, check(worker, path)),
        Effect::BeginWait { path } => return begin_wait(worker, path).await,
        Effect::StartBrain { path } => return start_brain(worker, path.clone()).await,
        Effect::FinishWait { path } => (path, finish_wait(worker, path)),
        Effect::FinishBrain { path } => (path, finish_brain(worker, path)),
        Effect::CompleteBrain { path } => (path, complete_brain(worker, path)),
        Effect::CloseLoop { path, .. } if has_updates(worker, path) => return take_updates(worker, path).await,
        Effect::CloseLoop { path, outcome } => (path, close_loop(worker, path, outcome.clone())),
        Effect::Resume { path } => (path, resume_call(worker, path)),
        Effect::Append(_) | Effect::Step { .. } | Effect::Ask { .. } | Effect::Execute { .. } => return Ok(true),
    };
    let new_events = outcome.map_or_else(Vec::new, |outcome| worker.settled(path, outcome));
    if new_events.is_empty() && !worker.is_due(&effect) {
        // Superseded by an earlier effect.
        return Ok(false);
    }
    worker.append_together(new_events).await
}

fn check(worker: &mut Worker, path: &Path) -> Option<Outcome> {
    let document = worker.document(path)?;
    let guard = worker.frames.stage_at(path).and_then(|stage| stage.as_guard().cloned());
    let checked = match guard {
        Some(guard) => caught_now(|| guard(&document)),
        None => Err(Error::new("the brain's code has no such guard")),
    };
    Some(Outcome::Checked(checked))
}

/// Lets plugins take what was sent to them since the last iteration of their loop, before the loop ends.
async fn take_updates(worker: &mut Worker, path: &Path) -> Result<bool, ResumeError> {
    let definition = match worker.frames.loop_at(path) {
        Some(definition) => Ok(Arc::clone(definition)),
        None => yielded(worker, path).map(Arc::new),
    };
    let new_events = match definition {
        Ok(definition) => updated(worker, path, &definition),
        Err(error) => worker.settled(path, Outcome::NotConfigured(error)),
    };
    worker.append(new_events).await
}

fn close_loop(worker: &mut Worker, path: &Path, outcome: LoopOutcome) -> Option<Outcome> {
    let on_exit = match worker.frames.loop_at(path) {
        Some(definition) => definition.on_exit.clone(),
        // An outer limit has ended it before its first iteration.
        None => match yielded(worker, path) {
            Ok(definition) => definition.on_exit,
            Err(error) => return Some(Outcome::NotConfigured(error)),
        },
    };
    let document = worker.document(path)?;
    let output = worker.state.loop_at(path).and_then(LoopFrame::exit_output).cloned();
    let exited = on_exit.map(|on_exit| caught_now(|| on_exit(&document, &outcome, output.as_ref()))).transpose();
    Some(Outcome::LoopClosed(outcome, exited))
}

fn resume_call(worker: &mut Worker, path: &Path) -> Option<Outcome> {
    let states = states(worker, path)?;
    let call = worker.state.call(path).cloned()?;
    let CallPhase::Resumed { wait, webhook, identifier, payload, answered, .. } = call.phase else { return None };
    let Some(tool) = worker.frames.tool(path, &call.tool).cloned() else {
        let error = Error::new(format!("the tool `{}` no longer exists", call.tool));
        return Some(Outcome::Resumed(Err(error)));
    };
    let scope = worker.scope(path.clone());
    let resume = || {
        let (ToolBody::Function { waits: Some(waits), .. }, Some(scope), true) = (&tool.body, scope, answered) else {
            return Ok(None);
        };
        let waits = waits(&call.arguments, &owner_scope(Some(&tool), scope)?)?;
        let found = WaitDefinition::answered(&waits, wait, &webhook, &identifier);
        Ok(found.and_then(|wait| wait.resume.clone()))
    };
    Some(Outcome::Resumed(states.and_then(|states| {
        let resume = caught_now(resume)?;
        let next = resume.map(|resume| caught_now(|| resume(&states.document, &payload))).transpose()?;
        states.step(path, next, Vec::new())
    })))
}
