//! Effects that are done at once: nested brains begin and end, loops close, calls go on.

use std::sync::Arc;

use serde_json::{Value, json};

use super::async_effects::{at_home, caught_now, took};
use super::edited::check as check_edited;
use super::frames::Frames;
use super::shared::Stop;
use super::worker::Worker;
use crate::definition::{NestedDefinition, StateValue, ToolBody, WaitDefinition};
use crate::error::{Error, Result};
use crate::machine::{BrainEnd, BrainFrame, CallPhase, Changes, Effect, RunState, Stage, fail_loop, next};
use crate::record::{Change, EndReason, EventKind, Failure, LoopOutcome, NewEvent, Path, Segment, ToolResult};

impl Worker {
    /// Performs an effect that is done at once. Answers `false` when somebody else was first.
    pub(super) async fn perform(&mut self, effect: Effect) -> Result<bool, Stop> {
        let new_events = match &effect {
            Effect::Prepare { path, iteration } => return self.prepare(path.clone(), *iteration).await,
            Effect::StartBrain { path } => return self.start_brain(path.clone()).await,
            Effect::FinishBrain { path } => self.finish_brain(path),
            Effect::CompleteBrain { path } => self.complete_brain(path.clone()),
            Effect::CloseLoop { path, outcome } => self.close_loop(path.clone(), outcome.clone()),
            Effect::Resume { path } => self.resume_call(path),
            Effect::Append(_) | Effect::Step { .. } | Effect::Ask { .. } | Effect::Execute { .. } => return Ok(true),
        };
        if new_events.is_empty() && !self.is_due(&effect) {
            // What was done just before has made it needless.
            return Ok(false);
        }
        self.append(new_events).await
    }

    /// Says whether an effect is still asked for.
    pub(super) fn is_due(&self, effect: &Effect) -> bool {
        let state = self.shared.state();
        next(&state, self.shared.now().max(state.at)).effects.contains(effect)
    }

    /// Returns the brain around a stage or a call, with its state as a document.
    fn around<T>(&mut self, path: &Path, f: impl FnOnce(&RunState, &BrainFrame, StateValue) -> T) -> Option<T> {
        let shared = Arc::clone(&self.shared);
        let state = shared.state();
        let brain = state.owner(path)?;
        let document = self.frames.document(brain);
        Some(f(&state, brain, document))
    }

    async fn start_brain(&mut self, path: Path) -> Result<bool, Stop> {
        let nested = self.frames.nested(&self.shared.state(), &path);
        let arguments = self.shared.state().call(&path).map(|call| Arc::clone(&call.arguments)).unwrap_or_default();
        let states = self.states(&path);
        let (Some(nested), Some(states)) = (nested, states) else {
            let new_events = failed_brain(&path, &Error::new("the brain's code has no such brain"));
            return self.append(new_events).await;
        };
        let states = match self.edited(&path).await {
            Ok(()) => states,
            Err(refused) => Err(refused),
        };
        let options = match states.and_then(|states| caught_now(|| (nested.input)(&states.document, &arguments))) {
            Ok(options) => options,
            Err(error) => {
                let new_events = failed_brain(&path, &error);
                return self.append(new_events).await;
            }
        };
        let around = self.frames.services(&path_of_owner(&path));
        let services = match Frames::provided(&nested.definition, around) {
            Ok(services) => services,
            Err(error) => {
                let new_events = failed_brain(&path, &error);
                return self.append(new_events).await;
            }
        };
        let new_events = begin_drafts(&path, &nested, options);
        if !self.append(new_events).await? {
            return Ok(false);
        }
        let shared = Arc::clone(&self.shared);
        if let Some(frame) = shared.state().brain(&path) {
            self.frames.begin(frame, nested.definition, services);
        }
        Ok(true)
    }

    /// Checks the arguments of a call that runs a brain, where a person has edited them.
    async fn edited(&mut self, path: &Path) -> Result<()> {
        let call = self.shared.state().call(path).filter(|call| call.edited).cloned();
        let Some(call) = call else { return Ok(()) };
        let tool = self.frames.tool(path, &call.tool).cloned();
        let (Some(tool), Some(scope)) = (tool, self.scope(path.clone())) else { return Ok(()) };
        let checked = check_edited(&tool, &call.arguments, call.flags.exit, scope);
        let late = |_| Err(Error::new("the approval's condition took too long to look at the edited arguments"));
        tokio::time::timeout(tool.timeout, checked).await.unwrap_or_else(late)
    }

    fn finish_brain(&mut self, path: &Path) -> Vec<NewEvent> {
        let nested = self.frames.nested(&self.shared.state(), path);
        let now = Arc::clone(&self.shared);
        let gone = || Error::new("the code of the brain is gone");
        let ended = |inner: &BrainFrame| (inner.end.clone(), took(&now, inner.began));
        let states = self.states(path);
        let found =
            self.around(path, |state, brain, _| match (&brain.stage, state.call(path).map(|call| &call.phase)) {
                (Stage::Brain(inner), _) => ended(inner),
                (_, Some(CallPhase::Brain(inner))) => ended(inner),
                _ => (None, 0),
            });
        let (Some((Some(end), duration)), Some(states)) = (found, states) else { return Vec::new() };
        let is_call = matches!(path.last(), Some(Segment::Call(..)));
        let mapped = match &end {
            BrainEnd::Completed(result) => states.and_then(|states| {
                let nested = nested.ok_or_else(gone)?;
                let next = map_output(&nested, &states.document, result)?;
                states.step(path, next, Vec::new())
            }),
            BrainEnd::Failed(failure) => Err(Error::new(failure.message.clone())),
            BrainEnd::Cancelled => Err(Error::new("it was cancelled")),
        };
        if is_call {
            return finished_call(path, &end, mapped, duration);
        }
        let kind = match mapped {
            Ok(Changes { change, .. }) => EventKind::StepComplete { change, duration },
            Err(error) => {
                let message = format!("the result of the brain `{path}` could not be taken over: {error}");
                let failure = Failure { code: EndReason::State, message, retryable: false };
                return vec![NewEvent::new(path_of_owner(path), EventKind::BrainError(failure))];
            }
        };
        vec![NewEvent::new(path.clone(), kind)]
    }

    fn complete_brain(&mut self, path: Path) -> Vec<NewEvent> {
        let made = {
            let shared = Arc::clone(&self.shared);
            let state = shared.state();
            let document = state.brain(&path).map(|brain| self.frames.document(brain));
            let definition = self.frames.definition(&path).cloned();
            document.zip(definition)
        };
        let Some((document, definition)) = made else {
            let message = format!("the result of `{path}` cannot be made: the code of the brain is gone");
            return vec![NewEvent::new(
                path,
                EventKind::BrainError(Failure { code: EndReason::Config, message, retryable: false }),
            )];
        };
        let result = match &definition.result {
            Some(result) => caught_now(|| result(&document)),
            None => Ok(Value::clone(document.json())),
        };
        let kind = match result {
            Ok(result) => EventKind::BrainComplete { result },
            Err(error) => {
                let message = format!("the result of `{}` could not be made: {error}", definition.title);
                EventKind::BrainError(Failure { code: EndReason::State, message, retryable: false })
            }
        };
        vec![NewEvent::new(path, kind)]
    }

    fn close_loop(&mut self, path: Path, outcome: LoopOutcome) -> Vec<NewEvent> {
        let on_exit = match self.frames.loop_at(&path) {
            Some(definition) => definition.on_exit.clone(),
            // A limit around has ended it before its first iteration.
            None => match self.yielded(&path) {
                Ok(definition) => definition.on_exit,
                Err(error) => {
                    let message = format!("the loop `{path}` cannot be closed: {error}");
                    return fail_loop(
                        &self.shared.state(),
                        &path,
                        Failure { code: EndReason::Config, message, retryable: false },
                    );
                }
            },
        };
        let found = self.around(&path, |state, _, document| {
            (document, state.loop_at(&path).map(|frame| frame.usage).unwrap_or_default())
        });
        let Some((document, usage)) = found else { return Vec::new() };
        let next = on_exit.map(|on_exit| caught_now(|| on_exit(&document, &outcome))).transpose();
        match next {
            Ok(next) => {
                let change = next.and_then(|next| Change::between(document.json(), &next));
                vec![NewEvent::new(path, EventKind::LoopComplete { outcome, usage, change })]
            }
            Err(error) => {
                let message = format!("`on_exit` of the loop `{path}` failed: {error}");
                fail_loop(&self.shared.state(), &path, Failure { code: EndReason::State, message, retryable: false })
            }
        }
    }

    fn resume_call(&mut self, path: &Path) -> Vec<NewEvent> {
        let shared = Arc::clone(&self.shared);
        let Some(states) = self.states(path) else { return Vec::new() };
        let (tool, arguments, phase, duration) = {
            let state = shared.state();
            let Some(call) = state.call(path) else { return Vec::new() };
            let duration = call.started.map(|started| took(&shared, started));
            (call.tool.clone(), Arc::clone(&call.arguments), call.phase.clone(), duration)
        };
        let CallPhase::Resumed { wait, webhook, identifier, several, payload, answered, output } = phase else {
            return Vec::new();
        };
        let Some(tool) = self.frames.tool(path, &tool).cloned() else {
            let message = format!("the answer {payload} came, but there is no tool `{tool}` any more to take it");
            let kind = EventKind::LoopToolResult { result: ToolResult::error(message), duration, change: None };
            return vec![NewEvent::new(path.clone(), kind)];
        };
        let scope = self.scope(path.clone());
        let resume = || {
            let (ToolBody::Function { waits: Some(waits), .. }, Some(scope), true) = (&tool.body, scope, answered)
            else {
                return Ok(None);
            };
            let waits = waits(&arguments, &at_home(Some(&tool), scope)?)?;
            let found = WaitDefinition::answered(&waits, wait, &webhook, &identifier);
            Ok(found.and_then(|wait| wait.resume.clone()))
        };
        let changed = states.and_then(|states| {
            let resume = caught_now(resume)?;
            let next = resume.map(|resume| caught_now(|| resume(&states.document, &payload))).transpose()?;
            states.step(path, next, Vec::new())
        });
        let (result, changes) = match changed {
            Ok(changes) => {
                let output = match (output, several) {
                    _ if !answered => payload,
                    (Value::Null, false) => payload,
                    (Value::Null, true) => json!({ "answer": payload, "webhook": webhook }),
                    (output, false) => json!({ "answer": payload, "result": output }),
                    (output, true) => json!({ "answer": payload, "result": output, "webhook": webhook }),
                };
                (ToolResult::success(output), changes)
            }
            Err(error) => (
                ToolResult::error(format!(
                    "the answer {payload} came, but taking it into the state failed, so the state is as before: {error}"
                )),
                Changes::default(),
            ),
        };
        let Changes { change, mut new_events } = changes;
        new_events.push(NewEvent::new(path.clone(), EventKind::LoopToolResult { result, duration, change }));
        new_events
    }
}

fn path_of_owner(path: &Path) -> Path {
    match path.last() {
        Some(Segment::Call(..) | Segment::Iteration(_)) => path.parent().and_then(|path| path.parent()),
        Some(Segment::Stage(_)) | None => path.parent(),
    }
    .unwrap_or_default()
}

fn failed_brain(path: &Path, error: &Error) -> Vec<NewEvent> {
    if matches!(path.last(), Some(Segment::Call(..))) {
        let result = ToolResult::error(format!("the brain failed to start: {error}"));
        return vec![NewEvent::new(path.clone(), EventKind::LoopToolResult { result, duration: None, change: None })];
    }
    let message = format!("the brain `{path}` failed to start: {error}");
    let failure = Failure { code: EndReason::Config, message, retryable: false };
    vec![NewEvent::new(path_of_owner(path), EventKind::BrainError(failure))]
}

fn begin_drafts(path: &Path, nested: &NestedDefinition, options: Value) -> Vec<NewEvent> {
    let definition = &nested.definition;
    let mut new_events = Vec::new();
    let is_call = matches!(path.last(), Some(Segment::Call(..)));
    if is_call {
        let kind = EventKind::LoopBrainStart { title: definition.title.clone(), options: options.clone() };
        new_events.push(NewEvent::new(path.clone(), kind));
    }
    new_events.push(NewEvent::new(path.clone(), EventKind::BrainStart(Box::new(definition.begin(options)))));
    new_events
}

fn map_output(nested: &NestedDefinition, document: &StateValue, result: &Value) -> Result<Option<Value>> {
    match &nested.output {
        Some(output) => caught_now(|| output(document, result)).map(Some),
        None => Ok(None),
    }
}

fn finished_call(path: &Path, end: &BrainEnd, mapped: Result<Changes>, duration: u64) -> Vec<NewEvent> {
    let (complete, result, changes) = match (end, mapped) {
        (BrainEnd::Completed(output), Ok(changes)) => {
            let complete = EventKind::LoopBrainComplete { result: Some(output.clone()), error: None };
            (complete, ToolResult::success(output.clone()), changes)
        }
        (BrainEnd::Completed(output), Err(error)) => {
            let complete = EventKind::LoopBrainComplete { result: Some(output.clone()), error: None };
            let message = format!(
                "the brain gave {output}, but taking it into the state failed, so the state is as before: {error}"
            );
            (complete, ToolResult::error(message), Changes::default())
        }
        (BrainEnd::Failed(_) | BrainEnd::Cancelled, mapped) => {
            let why = mapped.err().map_or_else(String::new, |error| error.to_string());
            let complete = EventKind::LoopBrainComplete { result: None, error: Some(why.clone()) };
            (complete, ToolResult::error(why), Changes::default())
        }
    };
    let Changes { change, new_events } = changes;
    let mut all = vec![NewEvent::new(path.clone(), complete)];
    all.extend(new_events);
    all.push(NewEvent::new(path.clone(), EventKind::LoopToolResult { result, duration: Some(duration), change }));
    all
}
