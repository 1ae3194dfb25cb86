//! Effects that the worker performs at once: nested brains begin and end, loops close, waits resume.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::edited_arguments::check as check_edited;
use crate::definition::{AnyServices, BrainDefinition, StateValue, ToolBody, WaitDefinition};
use crate::error::{Error, Result};
use crate::machine::{BrainEnd, CallPhase, Changes, Effect, Outcome, next, settle};
use crate::record::{BrainStart, LoopOutcome, NewEvent, Path};
use crate::runner::catch::{at_home, caught_now};
use crate::runner::worker::Worker;
use crate::runner::worker::frames::Frames;
use crate::runner::worker::stop::Stop;

impl Worker {
    /// Performs an effect and appends its outcome. Returns `false` if another writer was first or the effect is obsolete.
    pub(in crate::runner) async fn perform(&mut self, effect: Effect) -> Result<bool, Stop> {
        let (path, outcome) = match &effect {
            Effect::Prepare { path, iteration } => return self.prepare(path.clone(), *iteration).await,
            Effect::StartBrain { path } => return self.start_brain(path.clone()).await,
            Effect::FinishBrain { path } => (path, self.finish_brain(path)),
            Effect::CompleteBrain { path } => (path, self.complete_brain(path)),
            Effect::CloseLoop { path, outcome } => (path, self.close_loop(path, outcome.clone())),
            Effect::Resume { path } => (path, self.resume_call(path)),
            Effect::Append(_) | Effect::Step { .. } | Effect::Ask { .. } | Effect::Execute { .. } => return Ok(true),
        };
        let new_events = outcome.map_or_else(Vec::new, |outcome| self.settled(path, outcome));
        if new_events.is_empty() && !self.is_due(&effect) {
            // Superseded by an earlier effect.
            return Ok(false);
        }
        self.append(new_events).await
    }

    /// Returns the events of an outcome whose duration the state knows.
    pub(in crate::runner) fn settled(&self, path: &Path, outcome: Outcome) -> Vec<NewEvent> {
        settle(&self.shared.state(), path, outcome, Duration::ZERO, &self.inputs())
    }

    /// Returns whether the machine still asks for an effect.
    pub(in crate::runner) fn is_due(&self, effect: &Effect) -> bool {
        let state = self.shared.state();
        next(&state, self.shared.now().max(state.at)).effects.contains(effect)
    }

    /// Returns the state of the brain around a stage.
    fn document(&mut self, path: &Path) -> Option<StateValue> {
        let shared = Arc::clone(&self.shared);
        let state = shared.state();
        Some(self.frames.document(state.owner(path)?))
    }

    async fn start_brain(&mut self, path: Path) -> Result<bool, Stop> {
        let (start, code) = match self.nested_brain(&path).await {
            Ok((start, definition, services)) => (Ok(start), Some((definition, services))),
            Err(error) => (Err(error), None),
        };
        let new_events = self.settled(&path, Outcome::BrainBegun(start));
        let appended = self.append(new_events).await?;
        let shared = Arc::clone(&self.shared);
        if let (true, Some((definition, services)), Some(frame)) = (appended, code, shared.state().brain(&path)) {
            self.frames.begin(frame, definition, services);
        }
        Ok(appended)
    }

    /// Returns the first event of the brain that a stage or a call runs, with its code and its services.
    async fn nested_brain(&mut self, path: &Path) -> Result<(Box<BrainStart>, Arc<BrainDefinition>, AnyServices)> {
        let (nested, arguments, owner) = {
            let state = self.shared.state();
            let arguments = state.call(path).map(|call| Arc::clone(&call.arguments)).unwrap_or_default();
            let owner = state.owner(path).map(|brain| brain.path.clone()).unwrap_or_default();
            (self.frames.nested(&state, path), arguments, owner)
        };
        let missing = || Error::new("the brain's code has no such brain");
        let (nested, states) = (nested.ok_or_else(missing)?, self.states(path).ok_or_else(missing)?);
        self.edited(path).await?;
        let states = states?;
        let options = caught_now(|| (nested.input)(&states.document, &arguments))?;
        let services = Frames::provided(&nested.definition, self.frames.services(&owner))?;
        Ok((Box::new(nested.definition.begin(options)), nested.definition, services))
    }

    /// Checks the arguments of a call that runs a brain, if a person has edited them.
    async fn edited(&mut self, path: &Path) -> Result<()> {
        let call = self.shared.state().call(path).filter(|call| call.edited).cloned();
        let Some(call) = call else { return Ok(()) };
        let tool = self.frames.tool(path, &call.tool).cloned();
        let (Some(tool), Some(scope)) = (tool, self.scope(path.clone())) else { return Ok(()) };
        let checked = check_edited(&tool, &call.arguments, call.flags.exit, scope);
        let late = |_| Err(Error::new("checking the edited arguments against the approval's condition timed out"));
        tokio::time::timeout(tool.timeout, checked).await.unwrap_or_else(late)
    }

    fn finish_brain(&mut self, path: &Path) -> Option<Outcome> {
        let states = self.states(path)?;
        let (nested, end) = {
            let state = self.shared.state();
            (self.frames.nested(&state, path), state.brain(path)?.end.clone()?)
        };
        let BrainEnd::Completed(result) = end else { return Some(Outcome::BrainEnded(Ok(Changes::default()))) };
        Some(Outcome::BrainEnded(states.and_then(|states| {
            let nested = nested.ok_or_else(|| Error::new("the brain's code has no such brain"))?;
            let output = nested.output.as_ref();
            let next = output.map(|output| caught_now(|| output(&states.document, &result))).transpose()?;
            states.step(path, next, Vec::new())
        })))
    }

    fn complete_brain(&mut self, path: &Path) -> Option<Outcome> {
        let shared = Arc::clone(&self.shared);
        let document = self.frames.document(shared.state().brain(path)?);
        let result = match self.frames.definition(path).map(|definition| &definition.result) {
            Some(Some(result)) => caught_now(|| result(&document)),
            Some(None) => Ok(Value::clone(document.json())),
            None => Err(Error::new("the brain's code is missing")),
        };
        Some(Outcome::BrainResult(result))
    }

    fn close_loop(&mut self, path: &Path, outcome: LoopOutcome) -> Option<Outcome> {
        let on_exit = match self.frames.loop_at(path) {
            Some(definition) => definition.on_exit.clone(),
            // An outer limit has ended it before its first iteration.
            None => match self.yielded(path) {
                Ok(definition) => definition.on_exit,
                Err(error) => return Some(Outcome::NotConfigured(error)),
            },
        };
        let document = self.document(path)?;
        let exited = on_exit.map(|on_exit| caught_now(|| on_exit(&document, &outcome))).transpose();
        Some(Outcome::LoopClosed(outcome, exited))
    }

    fn resume_call(&mut self, path: &Path) -> Option<Outcome> {
        let states = self.states(path)?;
        let call = self.shared.state().call(path).cloned()?;
        let CallPhase::Resumed { wait, webhook, identifier, payload, answered, .. } = call.phase else { return None };
        let Some(tool) = self.frames.tool(path, &call.tool).cloned() else {
            let error = Error::new(format!("the tool `{}` no longer exists", call.tool));
            return Some(Outcome::Resumed(Err(error)));
        };
        let scope = self.scope(path.clone());
        let resume = || {
            let (ToolBody::Function { waits: Some(waits), .. }, Some(scope), true) = (&tool.body, scope, answered)
            else {
                return Ok(None);
            };
            let waits = waits(&call.arguments, &at_home(Some(&tool), scope)?)?;
            let found = WaitDefinition::answered(&waits, wait, &webhook, &identifier);
            Ok(found.and_then(|wait| wait.resume.clone()))
        };
        Some(Outcome::Resumed(states.and_then(|states| {
            let resume = caught_now(resume)?;
            let next = resume.map(|resume| caught_now(|| resume(&states.document, &payload))).transpose()?;
            states.step(path, next, Vec::new())
        })))
    }
}
