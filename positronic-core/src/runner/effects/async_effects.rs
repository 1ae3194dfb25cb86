//! Effects that take time: steps, model calls and tools, each in a task of its own.

use std::sync::Arc;
use std::time::Duration;

use super::edited_arguments::check as check_edited;
use super::plugin_hooks::{around, inspected};
use super::report::Outcome;
use super::structured::{Given, given};
use super::validate_calls::validate_calls;
use crate::definition::{Invocation, LoopDefinition, Scope, StageBody, ToolBody};
use crate::error::{Error, Result};
use crate::machine::{Answered, Effect, RunState, Validated, given_up};
use crate::model::Model as _;
use crate::projection::iteration_request;
use crate::record::{AnswerFault, CODE, EventKind, ModelError, ModelResponse, NewEvent, Path, Segment, Timestamp};
use crate::runner::catch::{at_home, caught};
use crate::runner::clock::limited_by;
use crate::runner::detached::performed;
use crate::runner::worker::Worker;
use crate::runner::worker::shared::Shared;

impl Worker {
    /// Returns the intent of an effect, which must be in the log before the effect starts.
    pub(in crate::runner) fn intent(&self, state: &RunState, effect: &Effect) -> Option<NewEvent> {
        let (path, kind) = match effect {
            Effect::Step { path, attempt } => (path, EventKind::StepStart { attempt: *attempt }),
            Effect::Execute { path, attempt } => {
                let detached = self.is_taken(state, path, *attempt);
                (path, EventKind::LoopToolStart { attempt: *attempt, detached })
            }
            Effect::Ask { path, attempt } => {
                let settings = &state.loop_at(path)?.prepared.settings;
                let model = match settings.in_code {
                    true => CODE.to_owned(),
                    false => self.shared.runner.model_of(settings.tier).name(),
                };
                (path, EventKind::LoopModelCall { attempt: *attempt, model, question: None })
            }
            _ => return None,
        };
        Some(NewEvent::new(path.clone(), kind))
    }

    /// Returns the result of a call that is not started again, because the process ended during it more often
    /// than its tool's retries allow.
    pub(in crate::runner) fn given_up(&self, state: &RunState, effect: &Effect) -> Option<NewEvent> {
        let Effect::Execute { path, .. } = effect else { return None };
        let call = state.call(path)?;
        // A missing tool has a result of its own.
        let retries = self.frames.tool(path, &call.tool)?.retries;
        given_up(call, retries)
    }

    /// Starts an effect whose intent is in the log.
    pub(in crate::runner) fn start_effect(&mut self, effect: &Effect) {
        match effect {
            Effect::Step { path, .. } => self.spawn_step(path),
            Effect::Ask { path, attempt } => self.spawn_ask(path, *attempt),
            Effect::Execute { path, attempt } => self.spawn_tool(path, *attempt),
            _ => {}
        }
    }

    fn spawn_step(&mut self, path: &Path) {
        self.used_answers.remove(path);
        let Some(Segment::Stage(name)) = path.last() else { return };
        let owner = path.parent().unwrap_or_default();
        let step = self.frames.stage(&owner, name).and_then(StageBody::as_step).cloned();
        let Some(scope) = self.scope(path.clone()) else { return };
        let shared = Arc::clone(&self.shared);
        self.launch(path.clone(), true, async move {
            let started = shared.now();
            let result = match step {
                Some(step) => caught(step(scope)).await,
                None => Err(Error::new("the brain's code has no such step")),
            };
            Outcome::Step { result, took: took(&shared, started) }
        });
    }

    fn spawn_ask(&mut self, path: &Path, attempt: u32) {
        let loop_at = path.parent().unwrap_or_default();
        let (request, prepared, after) = {
            let state = self.shared.state();
            let Some(frame) = state.loop_at(path) else { return };
            let model = self.shared.runner.model_of(frame.prepared.settings.tier);
            let messages = self.shared.prompts().transcript_by(&loop_at, |outputs| model.project(outputs));
            let request = iteration_request(frame, path.clone(), attempt, messages);
            (request, frame.prepared.clone(), state.next)
        };
        let Some(scope) = self.scope(path.clone()) else { return };
        let definition = self.frames.loop_at(&loop_at).cloned();
        let model = Arc::clone(self.shared.runner.model_of(request.settings.tier));
        let shared = Arc::clone(&self.shared);
        self.launch(path.clone(), true, async move {
            let started = shared.now();
            let tools = &*prepared.tools;
            let decisions = prepared.settings.structured_actions.as_ref().map(|decisions| (decisions, tools));
            let asked = match request.settings.in_code {
                true => decided(definition.as_deref()).map(Given::Answer),
                false => given(&shared, &*model, &request, after, decisions, definition.as_deref()).await,
            };
            let duration = took(&shared, started);
            let result = match asked {
                Ok(Given::Refused(response, message)) => {
                    return Outcome::Refused { response, message, attempt, took: duration };
                }
                Ok(Given::Answer(mut response)) => {
                    let (plugins, failed) = match definition.as_deref() {
                        Some(definition) => inspected(definition, scope.clone(), &mut response).await,
                        None => (scope.plugins.clone(), Vec::new()),
                    };
                    let mut calls =
                        validate_calls(&response.calls, &request.path, tools, definition.as_deref(), &scope).await;
                    cut_off(&mut calls, &response, request.settings.max_output_tokens);
                    let ModelResponse { parts, metadata, .. } = response;
                    Ok(Answered { parts, metadata, calls, plugins, failed })
                }
                Err(error) => Err(error),
            };
            Outcome::Answer { result, attempt, took: duration }
        });
    }

    fn spawn_tool(&mut self, path: &Path, attempt: u32) {
        let invoked = self.shared.state().call(path).map(|call| {
            let (tool, arguments) = (call.tool.clone(), Arc::clone(&call.arguments));
            (Invocation { tool, arguments, flags: call.flags, attempt }, call.edited, call.detached.is_some())
        });
        let Some((call, edited, detached)) = invoked else { return };
        let detached = detached.then(|| self.detached_call(path, &call));
        let definition = self.frames.tool(path, &call.tool).cloned();
        let loop_at = path.parent().and_then(|loop_at| self.frames.loop_at(&loop_at).cloned());
        let Some(scope) = self.scope(path.clone()) else { return };
        let shared = Arc::clone(&self.shared);
        self.launch(path.clone(), true, async move {
            let started = shared.now();
            let checked = match definition.as_deref().filter(|_| edited) {
                Some(definition) => check_edited(definition, &call.arguments, call.flags.exit, scope.clone()).await,
                None => Ok(()),
            };
            let result = match (checked, definition.as_ref().map(|definition| (&definition.body, definition.timeout))) {
                (Err(refused), _) => Err(refused),
                (Ok(()), Some((ToolBody::Function { execute, .. }, timeout))) => {
                    let (tool, execute) = (definition.as_ref().map(Arc::clone), Arc::clone(execute));
                    let (arguments, inner) = (Arc::clone(&call.arguments), scope.clone());
                    // The performer of a detached call limits its time.
                    let timeout = detached.as_ref().map_or(timeout, |_| Duration::MAX);
                    let executor = shared.runner.executor.clone();
                    let running = around(loop_at.as_deref(), &scope, &call, move || match detached {
                        Some(call) => performed(executor, call),
                        None => Box::pin(async move { execute(arguments, at_home(tool.as_deref(), inner)?).await }),
                    });
                    let limited = match shared.runner.paused_clock {
                        true => limited_by(&*shared.runner.clock, timeout, running).await,
                        false => tokio::time::timeout(timeout, running).await.ok(),
                    };
                    limited.unwrap_or_else(|| {
                        Err(Error::new(format!(
                            "the tool took longer than {timeout:?}; whether it had its effect is unknown"
                        )))
                    })
                }
                (Ok(()), Some((ToolBody::Brain(_), _)) | None) => {
                    Err(Error::new(format!("the tool `{}` no longer exists", call.tool)))
                }
            };
            Outcome::Tool { result, attempt, took: took(&shared, started) }
        });
    }

    /// Returns the scope that the author's code at `path` gets.
    pub(super) fn scope(&mut self, path: Path) -> Option<Scope> {
        let shared = Arc::clone(&self.shared);
        let state = shared.state();
        let brain = state.owner(&path)?;
        Some(self.frames.scope(brain, path, &self.link))
    }
}

pub(super) fn took(shared: &Shared, started: Timestamp) -> Duration {
    shared.now().since(started)
}

/// Returns the answer that the loop's code gives instead of a model.
fn decided(definition: Option<&LoopDefinition>) -> Result<ModelResponse, ModelError> {
    definition.and_then(|definition| definition.answer.clone()).ok_or_else(|| {
        let kind = crate::record::ModelErrorKind::BadRequest;
        ModelError::new(kind, "the loop's code no longer has the answer of this iteration")
    })
}

/// Refuses the calls of a filtered answer, and adds to the last refused call of a truncated answer that it was cut
/// off.
fn cut_off(calls: &mut [Validated], response: &ModelResponse, max_output_tokens: Option<u32>) {
    let fault = AnswerFault::of(&response.parts, &response.metadata.finish, max_output_tokens);
    match (fault, calls) {
        (Some(fault @ AnswerFault::Filtered), calls) => {
            let refused = fault.sentence("the model");
            calls.iter_mut().for_each(|call| call.refused = Some(format!("{refused}, so its calls do not run")));
        }
        (Some(fault @ AnswerFault::Length { .. }), [.., Validated { refused: Some(why), .. }]) => {
            *why = format!("{why}; {}", fault.sentence("the model"));
        }
        _ => {}
    }
}
