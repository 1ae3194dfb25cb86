//! Preparation of an iteration: the loop's configuration, its plugins, and the checks before it begins.

use std::sync::Arc;

use super::caller_tools;
use super::charge::priced;
use super::continued::{continued, stay};
use super::guards::CheckedInputs;
use super::guards::applicable::handed_over_by;
use super::guards::inputs::InputGuards;
use super::plugin_hooks::{PreparedIteration, prepared};
use super::plugin_updates::{has_updates, updated};
use super::report;
use crate::definition::{CompactionChange, LoopDefinition, StageBody};
use crate::error::caught_now;
use crate::machine::{ConfiguredIteration, LoopPhase, Outcome, begin_iteration, begin_loop, offers};
use crate::record::{ContinuedLoop, NewEvent, Overrides, Path, PluginStates, Segment};
use crate::runner::worker::Worker;
use crate::runner::worker::stop_reason::ResumeError;

/// Runs a loop's configuration, then begins its iteration or lets its plugins prepare it first.
pub(super) async fn prepare(worker: &mut Worker, path: Path, iteration: u32) -> Result<bool, ResumeError> {
    let definition = match yielded(worker, &path) {
        Ok(definition) => definition,
        Err(error) => {
            draft_failure(worker, &path, error)?;
            return worker.append_together(Vec::new()).await;
        }
    };
    if has_updates(worker, &path) {
        let new_events = updated(worker, &path, &definition);
        return worker.append(new_events).await;
    }
    if definition.plugins.is_empty() && !checks_inputs(worker, &path, &definition) {
        draft_configured(worker, &path, iteration, definition)?;
        return worker.append_together(Vec::new()).await;
    }
    if !worker.append_drafted().await? {
        return Ok(false);
    }
    // A plugin or a guard may ask a model, which requires a loop that has begun.
    if worker.state.loop_at(&path).is_none_or(|frame| frame.path != path) {
        let begins = match begun_loop(worker, &path, &definition) {
            Ok(begins) => begins,
            Err(error) => {
                draft_failure(worker, &path, error)?;
                return worker.append_draft().await;
            }
        };
        if !worker.append(begins).await? {
            return Ok(false);
        }
    }
    let Some(scope) = worker.scope(path.iteration(iteration)) else { return Ok(true) };
    let read = output_count(worker, &path);
    let inputs = InputGuards::of(worker, &path, iteration, &definition);
    worker.used_answers.remove(&path.iteration(iteration));
    worker.launch(
        path,
        true,
        Box::pin(async move {
            let inputs = inputs.check().await;
            if !inputs.replaced.is_empty() {
                return report::EffectOutcome::Inputs { inputs, iteration, read };
            }
            report::EffectOutcome::Prepared { result: prepared(definition, scope).await.map(Box::new), iteration, read }
        }),
    );
    Ok(true)
}

/// Returns whether guards check the messages of people to a loop.
fn checks_inputs(worker: &Worker, path: &Path, definition: &LoopDefinition) -> bool {
    definition.guards.iter().any(|guard| guard.check.is_input()) || handed_over_by(&worker.state, path).is_some()
}

/// Drafts the next iteration of a loop without plugins, on the state after the draft. Returns `false` if it is prepared on its own:
/// the first one; one that plugins prepare; and after a crash any, so that another crash in the author's configuration is not
/// counted as one of the tools before it.
pub(in crate::runner) fn draft_following(
    worker: &mut Worker,
    path: &Path,
    iteration: u32,
) -> Result<bool, ResumeError> {
    let follows =
        worker.state.loop_at(path).is_some_and(|frame| frame.path == *path) && worker.shared.state().crashed.is_empty();
    let is_prepared =
        |definition: &Arc<LoopDefinition>| !definition.plugins.is_empty() || checks_inputs(worker, path, definition);
    if !follows || worker.frames.loop_at(path).is_none_or(is_prepared) {
        return Ok(false);
    }
    match yielded(worker, path) {
        Ok(definition) if definition.plugins.is_empty() => draft_configured(worker, path, iteration, definition)?,
        Ok(_) => return Ok(false),
        Err(error) => draft_failure(worker, path, error)?,
    }
    Ok(true)
}

/// Drafts an iteration without plugins.
fn draft_configured(
    worker: &mut Worker,
    path: &Path,
    iteration: u32,
    mut definition: LoopDefinition,
) -> Result<(), ResumeError> {
    match definition.mark_exits() {
        Ok(()) => {
            let prepared = PreparedIteration { definition, plugins: PluginStates::default() };
            draft_iteration(worker, path, iteration, prepared)
        }
        Err(error) => draft_failure(worker, path, error),
    }
}

/// Drafts an iteration that plugins have prepared, unless the loop has new messages that they have not read, or new updates of theirs.
pub(super) fn record_prepared(
    worker: &mut Worker,
    path: &Path,
    result: crate::Result<Box<PreparedIteration>>,
    iteration: u32,
    read: usize,
) -> Result<(), ResumeError> {
    let is_new = preparing(worker, path) == Some(iteration) && read == output_count(worker, path);
    if !is_new || has_updates(worker, path) {
        return Ok(());
    }
    match result {
        Ok(prepared) => draft_iteration(worker, path, iteration, *prepared),
        Err(error) => draft_failure(worker, path, error),
    }
}

/// Drafts what guards have replaced before an iteration, which is then prepared with it, unless the loop has new messages.
pub(super) fn record_inputs(
    worker: &mut Worker,
    path: &Path,
    CheckedInputs { replaced, stopped }: CheckedInputs,
    iteration: u32,
    read: usize,
) -> Result<(), ResumeError> {
    if preparing(worker, path) != Some(iteration) || read != output_count(worker, path) {
        return Ok(());
    }
    let at = path.iteration(iteration);
    worker.draft(replaced.into_iter().map(|replaced| replaced.event(&at)).collect())?;
    stopped.map_or(Ok(()), |why| draft_failure(worker, path, why))
}

/// Returns the iteration that a loop prepares.
pub(in crate::runner) fn preparing(worker: &Worker, path: &Path) -> Option<u32> {
    let frame = worker.state.loop_at(path).filter(|frame| frame.path == *path)?;
    matches!(frame.phase, LoopPhase::Prepare).then_some(frame.iteration)
}

/// Returns the number of a loop's outputs so far.
fn output_count(worker: &Worker, path: &Path) -> usize {
    worker.shared.prompts().get(path).map_or(0, |prompt| prompt.output.len())
}

fn draft_failure(worker: &mut Worker, path: &Path, error: crate::Error) -> Result<(), ResumeError> {
    let new_events = worker.settled(path, Outcome::NotConfigured(error));
    worker.draft(new_events)
}

fn draft_iteration(
    worker: &mut Worker,
    path: &Path,
    number: u32,
    prepared: PreparedIteration,
) -> Result<(), ResumeError> {
    let PreparedIteration { mut definition, plugins } = prepared;
    if let Err(error) = caller_tools::offer(worker, path, &mut definition) {
        return draft_failure(worker, path, error);
    }
    let model = worker.shared.runner.model_of(definition.settings.tier);
    if let Some(decisions) = &mut definition.settings.structured_actions {
        decisions.form.get_or_insert_with(|| model.action_format());
    }
    if let Err(error) = definition.check_exit() {
        return draft_failure(worker, path, error);
    }
    definition.tools.retain(|_, tool| offers(&worker.state, path, tool.decl.flags));
    if let Err(error) = definition.check_tools().and_then(|()| priced(worker, path, &definition)) {
        return draft_failure(worker, path, error);
    }
    let begins = worker.state.loop_at(path).is_none_or(|frame| frame.path != *path);
    let continues = match begins.then(|| continued(worker, path, &definition)).transpose() {
        Ok(continues) => continues.flatten(),
        Err(error) => return draft_failure(worker, path, error),
    };
    let configured = configured(worker, path, &definition, &plugins, continues);
    let new_events = begin_iteration(&worker.state, path, number, &configured);
    worker.draft(new_events)?;
    // No question is asked in this iteration from now on. If another writer was first, it is prepared again.
    let asks = path.iteration(number);
    worker.used_answers.remove(&asks);
    worker.link.forget(&asks);
    worker.frames.set_loop(path.clone(), Arc::new(definition));
    Ok(())
}

pub(super) fn yielded(worker: &mut Worker, path: &Path) -> crate::Result<LoopDefinition> {
    let missing = || crate::Error::new("the brain's code has no such loop");
    let Some(Segment::Stage(name)) = path.last() else { return Err(missing()) };
    let mut scope = worker.scope(path.clone()).ok_or_else(missing)?;
    if !worker.draft.events.is_empty() {
        scope.link = Arc::new(worker.link.after(&worker.draft.events));
    }
    let stage = worker.frames.stage(&path.parent().unwrap_or_default(), name);
    let stage = stage.and_then(StageBody::as_loop).ok_or_else(missing)?;
    let mut definition = caught_now(|| stage.configured(scope)).map(|definition| overridden(worker, definition))?;
    if let Some(brain) = worker.state.owner(path) {
        let frame = worker.state.loop_at(path).filter(|frame| frame.path == *path);
        stay(&mut definition, brain, name, frame);
    }
    Ok(definition)
}

fn begun_loop(worker: &Worker, path: &Path, definition: &LoopDefinition) -> crate::Result<Vec<NewEvent>> {
    let none = PluginStates::default();
    let continues = continued(worker, path, definition)?;
    let configured = configured(worker, path, definition, &none, continues);
    Ok(begin_loop(&worker.state, path, &configured))
}

fn configured<'a>(
    worker: &Worker,
    path: &Path,
    definition: &'a LoopDefinition,
    plugins: &'a PluginStates,
    continues: Option<ContinuedLoop>,
) -> ConfiguredIteration<'a> {
    let tools: Vec<_> = definition.tools.values().map(|tool| &tool.decl).collect();
    let compaction = definition.compaction.as_ref();
    let unread = continues.as_ref().filter(|continued| continued.unread > 0);
    let had_exit = || worker.state.loop_at(path).is_some_and(|frame| frame.path == *path && frame.exits);
    let unread = unread.map(|continued| worker.shared.prompts().unread(&continued.path)).unwrap_or_default();
    ConfiguredIteration {
        input: definition.input.as_ref(),
        hidden: definition.hidden,
        in_code: definition.answer.is_some() && !definition.stays,
        system: &definition.system,
        context: &definition.context,
        exits: definition.ends_by_exit_only(had_exit),
        tools,
        settings: &definition.settings,
        limits: &definition.limits,
        compaction: compaction.map(|CompactionChange { keep, summary }| (*keep, summary.as_deref())),
        plugins,
        is_first: is_of_root(path) && !worker.shared.prompts().iter().any(|prompt| is_of_root(&prompt.path)),
        continues,
        unread,
    }
}

fn overridden(worker: &Worker, mut definition: LoopDefinition) -> LoopDefinition {
    let Overrides { system, model } = &worker.state.start.overrides;
    if let Some(system) = system {
        definition.system = system.as_str().into();
    }
    if model.is_some() {
        definition.settings.model.clone_from(model);
    }
    definition
}

/// Returns whether a loop belongs to the run's own brain, which gets the messages of persons.
fn is_of_root(path: &Path) -> bool {
    path.parent_text().is_some_and(str::is_empty)
}
