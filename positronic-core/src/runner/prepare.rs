//! What an iteration yields, and how little of it has to be said again.

use std::sync::Arc;

use super::async_effects::{Outcome, caught_now};
use super::plugged::{PreparedIteration, prepared};
use super::shared::Stop;
use super::worker::Worker;
use crate::definition::{Compaction, LoopDefinition, StageBody};
use crate::machine::{LoopFrame, LoopPhase, Prepared, fail_loop, limits_money, offers};
use crate::projection::{OPENING, RULES};
use crate::record::{
    Content, ContentHash, EndReason, EventKind, Failure, Iteration, NewEvent, Opening, Overrides, Path, PluginStates,
    ResponseMetadata, Segment, Speaker, ToolDecl, ToolEntry, ToolSet, hash_json, hash_text,
};

/// What stands for older messages where a plugin has nothing to say of them: no provider takes an empty message.
const FORGOTTEN: &str = "(Earlier messages were left out.)";

impl Worker {
    /// Runs a loop's configuration, and begins its iteration or lets its plugins prepare it first.
    pub(super) async fn prepare(&mut self, path: Path, iteration: u32) -> Result<bool, Stop> {
        let definition = match self.yielded(&path) {
            Ok(definition) => definition,
            Err(error) => return self.not_prepared(&path, &error).await,
        };
        if definition.plugins.is_empty() {
            let mut definition = definition;
            if let Err(error) = definition.mark_exits() {
                return self.not_prepared(&path, &error).await;
            }
            return self
                .begin_iteration(path, iteration, PreparedIteration { definition, plugins: PluginStates::default() })
                .await;
        }
        // A plugin may ask a model, which is recorded in the loop.
        if self.shared.state().loop_at(&path).is_none_or(|frame| frame.path != path)
            && !self.append(self.begun_loop(&path, &definition)).await?
        {
            return Ok(false);
        }
        let Some(scope) = self.scope(path.iteration(iteration)) else { return Ok(true) };
        let read = self.said(&path);
        self.answered.remove(&path.iteration(iteration));
        self.launch(path, true, async move {
            Outcome::Prepared { result: prepared(definition, scope).await.map(Box::new), iteration, read }
        });
        Ok(true)
    }

    /// Begins an iteration that plugins have prepared, unless something was said meanwhile that they have not read.
    pub(super) async fn record_prepared(
        &mut self,
        path: &Path,
        result: crate::Result<Box<PreparedIteration>>,
        iteration: u32,
        read: usize,
    ) -> Result<(), Stop> {
        if self.preparing(path) != Some(iteration) || read != self.said(path) {
            return Ok(());
        }
        match result {
            Ok(prepared) => self.begin_iteration(path.clone(), iteration, *prepared).await?,
            Err(error) => self.not_prepared(path, &error).await?,
        };
        Ok(())
    }

    /// Returns the iteration that a loop prepares, if it does.
    pub(super) fn preparing(&self, path: &Path) -> Option<u32> {
        let state = self.shared.state();
        let frame = state.loop_at(path).filter(|frame| frame.path == *path)?;
        matches!(frame.phase, LoopPhase::Prepare).then_some(frame.iteration)
    }

    /// Counts what has been said in a loop so far.
    fn said(&self, path: &Path) -> usize {
        self.shared.prompts().get(path).map_or(0, |prompt| prompt.output.len())
    }

    async fn not_prepared(&mut self, path: &Path, error: &crate::Error) -> Result<bool, Stop> {
        let message = not_configured(path, error);
        let failure = Failure { code: EndReason::Config, message, retryable: false };
        let new_events = fail_loop(&self.shared.state(), path, failure);
        self.append(new_events).await
    }

    async fn begin_iteration(&mut self, path: Path, number: u32, prepared: PreparedIteration) -> Result<bool, Stop> {
        let PreparedIteration { mut definition, plugins } = prepared;
        let model = self.shared.runner.model_of(definition.settings.tier);
        if let Some(decisions) = &mut definition.settings.structured_actions {
            decisions.form.get_or_insert_with(|| model.action_format());
        }
        if let Err(error) = can_exit(&definition) {
            return self.not_prepared(&path, &error).await;
        }
        {
            let state = self.shared.state();
            definition.tools.retain(|_, tool| offers(&state, &path, tool.decl.flags));
        }
        if let Err(error) = checked(&definition).and_then(|()| self.priced(&path, &definition)) {
            return self.not_prepared(&path, &error).await;
        }
        let mut new_events = Vec::new();
        {
            if self.shared.state().loop_at(&path).is_none_or(|frame| frame.path != path) {
                new_events.extend(self.begun_loop(&path, &definition));
            }
            let state = self.shared.state();
            let frame = state.loop_at(&path).filter(|frame| frame.path == path);
            if let Some(Compaction { keep, mut summary }) = definition.compaction.clone() {
                if let Some(summary) = summary.as_mut().filter(|summary| summary.trim().is_empty()) {
                    FORGOTTEN.clone_into(summary);
                }
                new_events.push(NewEvent::new(path.clone(), EventKind::LoopCompacted { keep, summary }));
            }
            let mut iteration = iteration(frame, &definition);
            if let Some(brain) = state.owner(&path).filter(|_| !plugins.is_empty()) {
                let steps = plugins.iter().map(|(name, kept)| (name, brain.plugins.step(name, kept)));
                iteration.plugins = steps.filter_map(|(name, step)| Some((name.to_owned(), step?))).collect();
            }
            new_events.push(NewEvent::new(path.iteration(number), EventKind::LoopIteration(Box::new(iteration))));
        }
        let appended = self.append(new_events).await?;
        if appended {
            // Nothing is asked in this iteration any more.
            let asks = path.iteration(number);
            self.answered.remove(&asks);
            self.link.forget(&asks);
            self.frames.set_loop(path, Arc::new(definition));
        }
        Ok(appended)
    }

    /// Refuses a limit of money that cannot be kept, as far as that is known before the model has answered.
    fn priced(&self, path: &Path, definition: &LoopDefinition) -> crate::Result<()> {
        let runner = &self.shared.runner;
        let is_limited = limits_money(&self.shared.state(), path) || definition.limits.budget.max_money.is_some();
        // What code decides costs nothing, whoever's prices they are.
        if !is_limited || definition.answer.is_some() {
            return Ok(());
        }
        let Some(prices) = &runner.prices else {
            return Err(crate::Error::new(
                "there is a limit of money, and nothing says what models cost; give the runner a table with `.prices(…)`, and the \
                 command one with `--prices`",
            ));
        };
        let name = runner.model_of(definition.settings.tier).name();
        let (provider, model) = name.split_once('/').unwrap_or(("", &name));
        let model = definition.settings.model.as_deref().unwrap_or(model).to_owned();
        // What a cassette says was recorded elsewhere, and each answer names its model.
        let metadata = ResponseMetadata { provider: provider.to_owned(), model, ..ResponseMetadata::default() };
        if provider == "cassette" || prices.price(&metadata).is_some() {
            return Ok(());
        }
        let (provider, model) = (&metadata.provider, &metadata.model);
        Err(crate::Error::new(format!(
            "there is a limit of money, and the runner's prices of {} have none for `{provider}/{model}`",
            prices.as_of
        )))
    }

    pub(super) fn yielded(&mut self, path: &Path) -> crate::Result<LoopDefinition> {
        let missing = || crate::Error::new("the brain's code has no such loop");
        let Some(Segment::Stage(name)) = path.last() else { return Err(missing()) };
        let scope = self.scope(path.clone()).ok_or_else(missing)?;
        match self.frames.stage(&path.parent().unwrap_or_default(), name) {
            Some(StageBody::Loop(configure)) => {
                caught_now(|| configure(scope)).map(|definition| self.overridden(definition))
            }
            _ => Err(missing()),
        }
    }

    /// Begins a loop with its own input, and the first one of the run's brain with what the run was started with: behind its
    /// own input, where it has one. Where nobody says anything, the engine does, since no provider answers nothing.
    fn begun_loop(&self, path: &Path, definition: &LoopDefinition) -> Vec<NewEvent> {
        let own = definition.input.clone().filter(|text| !text.trim().is_empty());
        let is_first = is_of_root(path) && !self.shared.prompts().iter().any(|prompt| is_of_root(&prompt.path));
        let start = self.shared.state().start.clone();
        let said = start.message.clone().filter(|said| is_first && !said.text.trim().is_empty());
        let fired = start.fired.as_ref().filter(|_| is_first).map(|fired| fired.trigger.what.clone());
        let begins = |(input, message_id, from)| EventKind::LoopStart {
            input,
            from,
            message_id,
            hidden: definition.hidden,
            projection: RULES,
            limits: definition.limits.clone(),
        };
        let (opening, behind) = match (own, said) {
            (Some(text), said) => ((Some(text), definition.message_id.clone(), Speaker::Person), said),
            (None, Some(Opening { text, id })) => ((Some(text), id, Speaker::Person), None),
            // Code answers without being asked.
            (None, None) if definition.answer.is_some() => ((None, None, Speaker::Person), None),
            (None, None) => {
                let text = fired.filter(|what| !what.trim().is_empty()).unwrap_or_else(|| OPENING.to_owned());
                ((Some(text), None, Speaker::Engine), None)
            }
        };
        let behind = behind.map(|Opening { text, id }| EventKind::LoopMessage {
            text,
            message_id: id,
            from: Speaker::Person,
            signal: None,
            actor: start.actor,
        });
        [begins(opening)].into_iter().chain(behind).map(|kind| NewEvent::new(path.clone(), kind)).collect()
    }

    fn overridden(&self, mut definition: LoopDefinition) -> LoopDefinition {
        let state = self.shared.state();
        let Overrides { system, model } = &state.start.overrides;
        if let Some(system) = system {
            definition.system = system.as_str().into();
        }
        if model.is_some() {
            definition.settings.model.clone_from(model);
        }
        definition
    }
}

/// Says that a loop's configuration failed, in the same words before and after a restart.
pub(super) fn not_configured(path: &Path, error: &crate::Error) -> String {
    format!("the loop `{path}` cannot be configured: {error}")
}

/// Says whether a loop is one of the run's own brain: a person speaks to those alone.
fn is_of_root(path: &Path) -> bool {
    path.parent().is_some_and(|owner| owner.is_root())
}

fn checked(definition: &LoopDefinition) -> crate::Result<()> {
    let tools = ToolSet::new(definition.tools.values().map(|tool| tool.decl.clone()).collect());
    if let Some((one, other)) = tools.collision() {
        return Err(crate::Error::new(format!(
            "the tools `{one}` and `{other}` would have the same name for a provider; rename one of them"
        )));
    }
    if definition.settings.structured_actions.is_some() && !tools.tools().iter().any(|tool| tool.flags.exit) {
        return Err(crate::Error::new(
            "it asks for decisions, which always name an action, and none of its actions ends it; mark one with `.exit()` \
             or name one in `exit_on`",
        ));
    }
    Ok(())
}

/// Refuses an iteration that only an exit tool may end and in which no tool can be called.
fn can_exit(definition: &LoopDefinition) -> crate::Result<()> {
    if definition.require_exit && definition.tools.is_empty() {
        return Err(crate::Error::new(
            "`require_exit` lets only an exit tool end it, and this iteration offers no tool; add one for this state, or drop \
             `require_exit`",
        ));
    }
    Ok(())
}

/// Says what has changed against the iteration before.
fn iteration(frame: Option<&LoopFrame>, definition: &LoopDefinition) -> Iteration {
    let first = Prepared::default();
    let before = frame.map_or(&first, |frame| &frame.prepared);
    let knows = |hash: &ContentHash| frame.is_some_and(|frame| frame.knows(hash));
    let mut iteration = Iteration::default();
    if before.system != definition.system {
        iteration.system = Some(content(hash_text(&definition.system), &definition.system, knows));
    }
    if *before.context != *definition.context {
        let items = definition.context.iter();
        iteration.context = Some(items.map(|item| content(hash_of(item), item, knows)).collect());
    }
    let tools = || definition.tools.values().map(|tool| &tool.decl);
    if !before.tools.tools().iter().eq(tools()) {
        iteration.tools = Some(tools().map(|tool| entry(tool, knows)).collect());
    }
    if *before.settings != definition.settings {
        iteration.settings = Some(content(hash_of(&definition.settings), &definition.settings, knows));
    }
    if frame.is_some_and(|frame| frame.limits != definition.limits) {
        iteration.limits = Some(definition.limits.clone());
    }
    let exits = definition.require_exit || definition.tools.values().any(|tool| tool.decl.flags.exit);
    if frame.map_or(exits, |frame| frame.exits != exits) {
        iteration.exits = Some(exits);
    }
    iteration
}

fn content<T: Clone>(hash: ContentHash, body: &T, knows: impl Fn(&ContentHash) -> bool) -> Content<T> {
    let body = (!knows(&hash)).then(|| body.clone());
    Content { hash, body }
}

fn entry(tool: &ToolDecl, knows: impl Fn(&ContentHash) -> bool) -> ToolEntry {
    let Content { hash, body } = content(hash_of(tool), tool, knows);
    ToolEntry { id: tool.id.clone(), hash, body }
}

fn hash_of<T: serde::Serialize>(value: &T) -> ContentHash {
    hash_json(&serde_json::to_value(value).unwrap_or_default())
}
