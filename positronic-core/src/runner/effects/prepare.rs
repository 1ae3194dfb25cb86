//! Preparation of an iteration: the loop's configuration, its plugins, and the checks before it begins.

use std::sync::Arc;

use super::plugin_hooks::{PreparedIteration, prepared};
use super::report;
use crate::definition::{CompactionChange, LoopDefinition, StageBody};
use crate::machine::{Configured, LoopPhase, Outcome, begin_iteration, begin_loop, limits_money, offers};
use crate::record::{NewEvent, Overrides, Path, PluginStates, ResponseMetadata, Segment, ToolSet};
use crate::runner::catch::caught_now;
use crate::runner::worker::Worker;
use crate::runner::worker::stop::Stop;

impl Worker {
    /// Runs a loop's configuration, then begins its iteration or lets its plugins prepare it first.
    pub(super) async fn prepare(&mut self, path: Path, iteration: u32) -> Result<bool, Stop> {
        let definition = match self.yielded(&path) {
            Ok(definition) => definition,
            Err(error) => return self.not_prepared(&path, error).await,
        };
        if definition.plugins.is_empty() {
            let mut definition = definition;
            if let Err(error) = definition.mark_exits() {
                return self.not_prepared(&path, error).await;
            }
            return self
                .begin_iteration(path, iteration, PreparedIteration { definition, plugins: PluginStates::default() })
                .await;
        }
        // A plugin may ask a model, which requires a loop that has begun.
        if self.shared.state().loop_at(&path).is_none_or(|frame| frame.path != path)
            && !self.append(self.begun_loop(&path, &definition)).await?
        {
            return Ok(false);
        }
        let Some(scope) = self.scope(path.iteration(iteration)) else { return Ok(true) };
        let read = self.output_count(&path);
        self.used_answers.remove(&path.iteration(iteration));
        self.launch(path, true, async move {
            report::Outcome::Prepared { result: prepared(definition, scope).await.map(Box::new), iteration, read }
        });
        Ok(true)
    }

    /// Begins an iteration that plugins have prepared, unless the loop has new messages that they have not read.
    pub(super) async fn record_prepared(
        &mut self,
        path: &Path,
        result: crate::Result<Box<PreparedIteration>>,
        iteration: u32,
        read: usize,
    ) -> Result<(), Stop> {
        if self.preparing(path) != Some(iteration) || read != self.output_count(path) {
            return Ok(());
        }
        match result {
            Ok(prepared) => self.begin_iteration(path.clone(), iteration, *prepared).await?,
            Err(error) => self.not_prepared(path, error).await?,
        };
        Ok(())
    }

    /// Returns the iteration that a loop prepares.
    pub(in crate::runner) fn preparing(&self, path: &Path) -> Option<u32> {
        let state = self.shared.state();
        let frame = state.loop_at(path).filter(|frame| frame.path == *path)?;
        matches!(frame.phase, LoopPhase::Prepare).then_some(frame.iteration)
    }

    /// Returns the number of a loop's outputs so far.
    fn output_count(&self, path: &Path) -> usize {
        self.shared.prompts().get(path).map_or(0, |prompt| prompt.output.len())
    }

    async fn not_prepared(&mut self, path: &Path, error: crate::Error) -> Result<bool, Stop> {
        let new_events = self.settled(path, Outcome::NotConfigured(error));
        self.append(new_events).await
    }

    async fn begin_iteration(&mut self, path: Path, number: u32, prepared: PreparedIteration) -> Result<bool, Stop> {
        let PreparedIteration { mut definition, plugins } = prepared;
        let model = self.shared.runner.model_of(definition.settings.tier);
        if let Some(decisions) = &mut definition.settings.structured_actions {
            decisions.form.get_or_insert_with(|| model.action_format());
        }
        if let Err(error) = can_exit(&definition) {
            return self.not_prepared(&path, error).await;
        }
        {
            let state = self.shared.state();
            definition.tools.retain(|_, tool| offers(&state, &path, tool.decl.flags));
        }
        if let Err(error) = checked(&definition).and_then(|()| self.priced(&path, &definition)) {
            return self.not_prepared(&path, error).await;
        }
        let new_events = {
            let configured = self.configured(&path, &definition, &plugins);
            begin_iteration(&self.shared.state(), &path, number, &configured)
        };
        let appended = self.append(new_events).await?;
        if appended {
            // No question is asked in this iteration from now on.
            let asks = path.iteration(number);
            self.used_answers.remove(&asks);
            self.link.forget(&asks);
            self.frames.set_loop(path, Arc::new(definition));
        }
        Ok(appended)
    }

    /// Refuses a limit of money that cannot be enforced, as far as known before the model answers.
    fn priced(&self, path: &Path, definition: &LoopDefinition) -> crate::Result<()> {
        let runner = &self.shared.runner;
        let is_limited = limits_money(&self.shared.state(), path) || definition.limits.budget.max_money.is_some();
        // An answer of code costs nothing.
        if !is_limited || definition.answer.is_some() {
            return Ok(());
        }
        let Some(prices) = &runner.prices else {
            return Err(crate::Error::new(
                "there is a limit of money and no price table; set one with `.prices(…)`, or with `--prices` on the \
                 command line",
            ));
        };
        let name = runner.model_of(definition.settings.tier).name();
        let (provider, model) = name.split_once('/').unwrap_or(("", &name));
        let model = definition.settings.model.as_deref().unwrap_or(model).to_owned();
        // A cassette was recorded elsewhere, and each of its answers names the model.
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
        let stage = self.frames.stage(&path.parent().unwrap_or_default(), name);
        let configure = stage.and_then(StageBody::as_loop).ok_or_else(missing)?;
        caught_now(|| configure(scope)).map(|definition| self.overridden(definition))
    }

    fn begun_loop(&self, path: &Path, definition: &LoopDefinition) -> Vec<NewEvent> {
        let none = PluginStates::default();
        let configured = self.configured(path, definition, &none);
        begin_loop(&self.shared.state(), path, &configured)
    }

    fn configured<'a>(&self, path: &Path, definition: &'a LoopDefinition, plugins: &'a PluginStates) -> Configured<'a> {
        let tools: Vec<_> = definition.tools.values().map(|tool| &tool.decl).collect();
        let compaction = definition.compaction.as_ref();
        Configured {
            input: definition.input.as_ref(),
            hidden: definition.hidden,
            in_code: definition.answer.is_some(),
            system: &definition.system,
            context: &definition.context,
            exits: definition.require_exit || tools.iter().any(|tool| tool.flags.exit),
            tools,
            settings: &definition.settings,
            limits: &definition.limits,
            compaction: compaction.map(|CompactionChange { keep, summary }| (*keep, summary.as_deref())),
            plugins,
            is_first: is_of_root(path) && !self.shared.prompts().iter().any(|prompt| is_of_root(&prompt.path)),
        }
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

/// Returns whether a loop belongs to the run's own brain, which gets the messages of persons.
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
            "it asks for structured actions, and none of its actions ends the loop; mark one with `.exit()` or name \
             one in `exit_on`",
        ));
    }
    Ok(())
}

/// Refuses an iteration that only an exit tool can end and that has no tools.
fn can_exit(definition: &LoopDefinition) -> crate::Result<()> {
    if definition.require_exit && definition.tools.is_empty() {
        return Err(crate::Error::new(
            "`require_exit` lets only an exit tool end it, and this iteration offers no tool; add one for this state, or drop \
             `require_exit`",
        ));
    }
    Ok(())
}
