//! Effects that the worker performs at once: nested brains and waits begin and end, loops close, calls resume.

use std::sync::Arc;

use serde_json::Value;

use super::continued::stays_with;
use super::edited_arguments::check as check_edited;
use super::group;
use super::guards::check_call;
use super::prepare::{prepare, yielded};
use super::state_owner::states;
use crate::definition::{
    AnyServices, ArmBody, ArmDefinition, BrainDefinition, BranchStage, StageBody, ToolBody, WaitDefinition, WaitStage,
    recordable,
};
use crate::error::{Error, Result};
use crate::machine::{BrainEnd, CallPhase, Effect, LoopFrame, Outcome, StateChanges, WaitOutcome};
use crate::record::{BrainStart, Change, LoopOutcome, Path, Segment};
use crate::runner::catch::{caught_now, owner_scope};
use crate::runner::worker::Worker;
use crate::runner::worker::early_webhooks::take_mail;
use crate::runner::worker::frames::Frames;
use crate::runner::worker::stop::Stop;

/// Performs an effect and appends its outcome. Returns `false` if another writer was first or the effect is obsolete.
pub(in crate::runner) async fn perform(worker: &mut Worker, effect: Effect) -> Result<bool, Stop> {
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
        Effect::CloseLoop { path, outcome } => (path, close_loop(worker, path, outcome.clone())),
        Effect::Resume { path } => (path, resume_call(worker, path)),
        Effect::Append(_) | Effect::Step { .. } | Effect::Ask { .. } | Effect::Execute { .. } => return Ok(true),
    };
    let new_events = outcome.map_or_else(Vec::new, |outcome| worker.settled(path, outcome));
    if new_events.is_empty() && !worker.is_due(&effect) {
        // Superseded by an earlier effect.
        return Ok(false);
    }
    worker.append(new_events).await
}

fn choose(worker: &mut Worker, path: &Path) -> Option<Outcome> {
    let document = worker.document(path)?;
    let chosen = branch_of(worker, path).and_then(|branch| {
        let index = caught_now(|| (branch.choose)(&document))?;
        branch.arms.get(index).map(ArmDefinition::shape).ok_or_else(|| Error::new("the arm is one of another branch"))
    });
    Some(Outcome::Chosen(chosen))
}

fn take_arm(worker: &mut Worker, path: &Path) -> Option<Outcome> {
    let document = worker.document(path)?;
    let arm = worker.state.owner(path)?.arm.clone()?.name;
    let change = branch_of(worker, path).and_then(|branch| match branch.arm(&arm).map(|arm| &arm.body) {
        Some(ArmBody::Pass(next)) => {
            let next = caught_now(|| next(&document))?;
            recordable("the next state", &next, document.max_bytes())?;
            Ok(Change::between(document.json(), &next))
        }
        Some(ArmBody::Brain(_)) | None => {
            Err(Error::new(format!("the brain's code has no arm `{arm}` without a brain")))
        }
    });
    Some(Outcome::ArmTaken(change))
}

fn branch_of(worker: &Worker, path: &Path) -> Result<BranchStage> {
    let branch = stage_of(worker, path).and_then(StageBody::as_branch).cloned();
    branch.ok_or_else(|| Error::new("the brain's code has no such branch"))
}

fn check(worker: &mut Worker, path: &Path) -> Option<Outcome> {
    let document = worker.document(path)?;
    let guard = stage_of(worker, path).and_then(|stage| stage.as_guard().cloned());
    let checked = match guard {
        Some(guard) => caught_now(|| guard(&document)),
        None => Err(Error::new("the brain's code has no such guard")),
    };
    Some(Outcome::Checked(checked))
}

async fn begin_wait(worker: &mut Worker, path: &Path) -> Result<bool, Stop> {
    let Some(document) = worker.document(path) else { return Ok(false) };
    let now = worker.shared.now().max(worker.state.at);
    let begun = wait_of(worker, path).and_then(|wait| caught_now(|| (wait.begin)(&document, now)));
    let new_events = worker.settled(path, Outcome::WaitBegun(begun));
    worker.mail_unread = true;
    if !worker.append(new_events).await? {
        return Ok(false);
    }
    // The webhook may have arrived before. After a crash right here, the next worker reads the mailbox.
    take_mail(worker).await?;
    Ok(true)
}

fn finish_wait(worker: &mut Worker, path: &Path) -> Option<Outcome> {
    let document = worker.document(path)?;
    let end = worker.state.owner(path)?.stage.as_wait()?.end.clone()?;
    let next = wait_of(worker, path).and_then(|wait| {
        let next = caught_now(|| match &end {
            WaitOutcome::Answered(index, payload) => (wait.finish)(&document, Some((*index, payload))),
            WaitOutcome::Expired => (wait.finish)(&document, None),
        })?;
        recordable("the next state", &next, document.max_bytes())?;
        Ok(Change::between(document.json(), &next))
    });
    Some(Outcome::WaitEnded(next))
}

fn wait_of(worker: &Worker, path: &Path) -> Result<WaitStage> {
    let wait = stage_of(worker, path).and_then(StageBody::as_wait).cloned();
    wait.ok_or_else(|| Error::new("the brain's code has no such wait"))
}

pub(super) fn stage_of<'w>(worker: &'w Worker, path: &Path) -> Option<&'w StageBody> {
    let Some(Segment::Stage(name)) = path.last() else { return None };
    worker.frames.stage(&path.parent()?, name)
}

async fn start_brain(worker: &mut Worker, path: Path) -> Result<bool, Stop> {
    let item = group::item(worker, &path).await?;
    let (start, code) = match nested_brain(worker, &path, item).await {
        Ok((start, definition, services)) => (Ok(start), Some((definition, services))),
        Err(error) => (Err(error), None),
    };
    let new_events = worker.settled(&path, Outcome::BrainBegun(start));
    let appended = worker.append(new_events).await?;
    if let (true, Some((definition, services)), Some(frame)) = (appended, code, worker.state.brain(&path)) {
        worker.frames.begin(frame, definition, services);
    }
    Ok(appended)
}

/// Returns the first event of the brain that a stage or a call runs, with its code and its services. `item` is the options of one of
/// a group.
async fn nested_brain(
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
    edited(worker, path).await?;
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

/// Checks the arguments of a call that runs a brain, if a person has edited them.
async fn edited(worker: &mut Worker, path: &Path) -> Result<()> {
    let call = worker.state.call(path).filter(|call| call.edited).cloned();
    let Some(call) = call else { return Ok(()) };
    let tool = worker.frames.tool(path, &call.tool).cloned();
    let (Some(tool), Some(scope)) = (tool, worker.scope(path.clone())) else { return Ok(()) };
    let loop_at = path.parent().and_then(|loop_at| worker.frames.loop_at(&loop_at).cloned());
    let checked = async {
        check_call(loop_at.as_deref(), &scope, &call.tool, &call.arguments).await.map_err(Error::new)?;
        check_edited(&tool, &call.arguments, call.flags.exit, scope.clone()).await
    };
    let late = |_| Err(Error::new("checking the edited arguments against the approval's condition timed out"));
    tokio::time::timeout(tool.timeout, checked).await.unwrap_or_else(late)
}

fn finish_brain(worker: &mut Worker, path: &Path) -> Option<Outcome> {
    let states = states(worker, path)?;
    let (nested, end) = (worker.frames.nested(&worker.state, path), worker.state.brain(path)?.end.clone()?);
    let BrainEnd::Completed(result) = end else {
        return Some(Outcome::BrainEnded(Ok((StateChanges::default(), false))));
    };
    let is_done =
        path.parent().and_then(|stage| stage_of(worker, &stage)?.as_repeat()).map(|it| Arc::clone(&it.is_done));
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

fn complete_brain(worker: &mut Worker, path: &Path) -> Option<Outcome> {
    let brain = worker.state.brain(path)?;
    let (document, stopped) = (worker.frames.document(brain), brain.stopped.clone());
    let result = match worker.frames.definition(path) {
        Some(definition) => caught_now(|| definition.complete(&document, stopped.as_ref())),
        None => Err(Error::new("the brain's code is missing")),
    };
    Some(Outcome::BrainResult(result))
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
