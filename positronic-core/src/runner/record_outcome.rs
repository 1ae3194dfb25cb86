//! Outcomes of effects, turned into events.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::async_effects::{Answer, Outcome, Validated, caught_now};
use super::shared::Stop;
use super::state_owner::{Changes, plugin_steps};
use super::worker::Worker;
use crate::definition::{StateValue, ToolReply, WaitDefinition, recordable};
use crate::error::{Error, Result};
use crate::machine::{LoopFrame, REPLY, Stage, denial, denied_before};
use crate::record::{
    ActionFormat, CallFlags, Change, EndReason, EventKind, Failure, ModelError, ModelErrorKind, ModelResponse,
    NewEvent, Part, Path, ResponseMetadata, Segment, ToolCall, ToolResult, WaitSpec,
};

/// How often a step is tried again that failed transiently.
const STEP_RETRIES: u32 = 3;

impl Worker {
    pub(super) async fn record_outcome(&mut self, path: &Path, outcome: Outcome) -> Result<(), Stop> {
        let new_events = match outcome {
            Outcome::Step { result, took } => self.record_step(path, result, took),
            Outcome::Answer { result, attempt, took } => self.record_answer(path, result, attempt, took),
            Outcome::Refused { response, message, attempt, took } => {
                self.refused_drafts(path, response, message, attempt, took)
            }
            Outcome::Tool { result, attempt, took } => self.record_tool(path, result, attempt, took),
            Outcome::Prepared { result, iteration, read } => {
                return self.record_prepared(path, result, iteration, read).await;
            }
            Outcome::Question { result, took, asker } => return self.record_question(path, result, asker, took).await,
        };
        let waits = new_events.iter().any(|event| matches!(event.kind, EventKind::LoopWait { .. }));
        self.mail_unread |= waits;
        if !new_events.is_empty() && self.append_outcome(path, new_events).await? && waits {
            self.spawn_announced();
            // What it waits for may have come before. Whoever finds the run after a crash right here looks again.
            self.take_mail().await?;
        }
        Ok(())
    }

    fn backoff(&self, attempt: u32, limit: u32) -> Option<Duration> {
        let policy = crate::model::RetryPolicy { limit, ..self.shared.runner.retry };
        let again = ModelError::new(ModelErrorKind::Server, "");
        policy.delay(&again, attempt, self.shared.runner.ids.jitter())
    }

    fn record_step(&self, path: &Path, result: Result<Value>, duration: u64) -> Vec<NewEvent> {
        let state = self.shared.state();
        let Some(brain) = state.owner(path) else { return Vec::new() };
        let attempt = match &brain.stage {
            Stage::Step(step) => step.attempt,
            _ => 0,
        };
        let error = match result.and_then(|next| recordable("the next state", &next).map(|()| next)) {
            Ok(next) => {
                let change = Change::between(&brain.state, &next);
                return vec![NewEvent::new(path.clone(), EventKind::StepComplete { change, duration })];
            }
            Err(error) => error,
        };
        let again = error.is_transient().then(|| self.backoff(attempt, STEP_RETRIES)).flatten();
        if let Some(pause) = again {
            let due = self.shared.now().after(pause);
            return vec![NewEvent::new(
                path.clone(),
                EventKind::StepRetry { attempt, message: error.to_string(), due },
            )];
        }
        let failure = Failure {
            code: EndReason::Step,
            message: format!("the step `{path}` failed: {error}"),
            retryable: error.is_transient(),
        };
        vec![NewEvent::new(brain.path.clone(), EventKind::BrainError(failure))]
    }

    fn record_answer(
        &self,
        path: &Path,
        result: Result<Answer, ModelError>,
        attempt: u32,
        duration: u64,
    ) -> Vec<NewEvent> {
        match result {
            Ok(answer) => self.answered_drafts(path, answer, duration),
            Err(error) => {
                let runner = &self.shared.runner;
                // Answers that were refused are tries of the same request, and no failures of the model.
                let refused = self.shared.state().loop_at(path).map_or(0, |frame| frame.refused.len());
                let failed = attempt.saturating_sub(u32::try_from(refused).unwrap_or(u32::MAX));
                if let Some(pause) = runner.retry.delay(&error, failed, runner.ids.jitter()) {
                    let due = self.shared.now().after(pause);
                    return vec![NewEvent::new(path.clone(), EventKind::LoopModelRetry { attempt, error, due })];
                }
                let loop_at = path.parent().unwrap_or_default();
                let tries = failed + 1;
                let times = if tries == 1 { String::new() } else { format!(" {tries} times") };
                let hint = self.hint(path, &error);
                let message = format!("the model of the loop `{loop_at}` failed{times}: {error}{hint}");
                let retryable = error.is_retryable();
                self.failed_loop(&loop_at, Failure { code: EndReason::Model, message, retryable })
            }
        }
    }

    /// Says what to do about a model's failure, where that is known.
    fn hint(&self, path: &Path, error: &ModelError) -> String {
        let state = self.shared.state();
        let form = state.loop_at(path).and_then(|frame| frame.prepared.settings.structured_actions.as_ref()?.form);
        match (error.kind, error.wait(), form) {
            (_, Some(wait), _) if error.is_retryable() => {
                format!("; it asks to wait {} s before it is asked again", wait.as_secs_f64().ceil())
            }
            (ModelErrorKind::BadRequest, _, Some(form)) if form != ActionFormat::Plain => {
                "; where an endpoint knows no schema for its answers, ask for decisions in words: `ActionFormat::Plain`, on the \
                 command line `--action-format plain`"
                    .to_owned()
            }
            _ => String::new(),
        }
    }

    fn answered_drafts(&self, path: &Path, answer: Answer, duration: u64) -> Vec<NewEvent> {
        let Answer { response: ModelResponse { mut parts, calls: _, metadata }, calls, plugins, failed } = answer;
        let metadata = self.charged(metadata);
        let loop_at = path.parent().unwrap_or_default();
        let iteration = match path.last() {
            Some(Segment::Iteration(iteration)) => iteration,
            _ => 0,
        };
        name_every_call(&mut parts, calls.len());
        let mut new_events = Vec::with_capacity(1 + 2 * calls.len());
        let mut results = Vec::new();
        let state = self.shared.state();
        if let Some(brain) = state.owner(path) {
            new_events.extend(plugin_steps(path, &brain.plugins, &plugins));
        }
        new_events.extend(failed.into_iter().map(|(plugin, message)| {
            NewEvent::new(path.clone(), EventKind::LoopPluginFailed { plugin: plugin.to_owned(), message })
        }));
        new_events
            .push(NewEvent::new(path.clone(), EventKind::LoopModelResult { parts: parts.into(), metadata, duration }));
        for (index, Validated { call, refused }) in (0..).zip(calls) {
            let path = loop_at.call(iteration, index);
            let denied = state.loop_at(&path).is_some_and(|frame| is_denied(frame, &call));
            let result = match refused {
                Some(message) => Some(ToolResult::Error { message }),
                None if denied => Some(denied_before()),
                None => None,
            };
            new_events.push(NewEvent::new(path.clone(), EventKind::LoopToolCall(Box::new(call))));
            if let Some(result) = result {
                results.push(NewEvent::new(path, EventKind::LoopToolResult { result, duration: None, change: None }));
            }
        }
        new_events.extend(results);
        new_events
    }

    fn record_tool(&mut self, path: &Path, result: Result<ToolReply>, attempt: u32, duration: u64) -> Vec<NewEvent> {
        let called = self.shared.state().call(path).map(|call| (call.tool.clone(), call.flags));
        let Some(((tool, flags), states)) = called.zip(self.states(path)) else { return Vec::new() };
        let checked =
            |reply: ToolReply| recordable("the tool did its work, but what it returned", &reply.output).map(|()| reply);
        let reply = match result.and_then(checked) {
            Ok(reply) => reply,
            Err(error) => return vec![self.failed_tool(path, &tool, flags, attempt, &error, duration)],
        };
        let (output, brief) = (reply.output, reply.brief);
        let updates = (reply.updates, reply.plugin_updates);
        let changed = states.and_then(|states| {
            let next = updated(&states.document, updates.0)?;
            states.step(path, next, updates.1)
        });
        let (changes, failed) = match changed {
            Ok(changes) => (changes, None),
            Err(error) => (Changes::default(), Some(error)),
        };
        let (change, done) = (changes.change, failed.is_none());
        let kind = match failed {
            Some(error) => EventKind::LoopToolResult {
                result: ToolResult::error(format!(
                    "the tool did its work and gave {output}, but its change of the state failed, so the state is as \
                     before: {error}"
                )),
                duration: Some(duration),
                change: None,
            },
            None if reply.waits.is_empty() => EventKind::LoopToolResult {
                result: ToolResult::Success { output, brief },
                duration: Some(duration),
                change,
            },
            None => {
                let waits = reply.waits.into_iter().map(|wait| self.absolute(path, wait)).collect();
                EventKind::LoopWait { waits, output, change }
            }
        };
        let mut new_events = changes.new_events;
        if done {
            let set = |change| NewEvent::new(path.clone(), EventKind::LoopTrigger { change });
            new_events.extend(reply.triggers.into_iter().map(set));
        }
        new_events.push(NewEvent::new(path.clone(), kind));
        new_events
    }

    fn failed_tool(
        &self,
        path: &Path,
        tool: &str,
        flags: CallFlags,
        attempt: u32,
        error: &Error,
        duration: u64,
    ) -> NewEvent {
        let retries = self.frames.tool(path, tool).map_or(0, |tool| tool.retries);
        let may_try = error.is_transient() && flags.may_repeat();
        let kind = match may_try.then(|| self.backoff(attempt, retries)).flatten() {
            Some(pause) => {
                let due = self.shared.now().after(pause);
                EventKind::LoopToolRetry { attempt, message: error.to_string(), due }
            }
            None => EventKind::LoopToolResult {
                result: ToolResult::error(error.to_string()),
                duration: Some(duration),
                change: None,
            },
        };
        NewEvent::new(path.clone(), kind)
    }

    fn absolute(&self, call: &Path, wait: WaitDefinition) -> WaitSpec {
        let WaitDefinition { mut spec, valid_for, .. } = wait;
        spec.expires = valid_for.map(|valid| self.shared.now().after(valid));
        if spec.webhook == REPLY {
            spec.identifier = call.as_str().to_owned();
        }
        spec
    }

    /// Adds what an answer cost, unless its provider has said that.
    pub(super) fn charged(&self, mut metadata: ResponseMetadata) -> ResponseMetadata {
        if metadata.cost.is_none() {
            metadata.cost =
                self.shared.runner.prices.as_ref().and_then(|prices| prices.charge(&metadata)).map(Box::new);
        }
        metadata
    }
}

/// Says whether a person has refused an identical call of this loop.
fn is_denied(frame: &LoopFrame, call: &ToolCall) -> bool {
    !frame.denials.is_empty() && frame.denials.contains(&denial(&call.tool, &call.arguments))
}

/// Applies a tool's updates one after the other, all or none.
fn updated(document: &StateValue, updates: Vec<crate::definition::Update>) -> Result<Option<Value>> {
    if updates.is_empty() {
        return Ok(None);
    }
    let mut current = document.clone();
    for update in updates {
        let next = caught_now(|| update(&current))?;
        current = StateValue::new(Arc::new(next));
    }
    Ok(Some(Value::clone(current.json())))
}

/// Gives every call exactly one part: an adapter may have left one out, or named one twice.
fn name_every_call(parts: &mut Vec<Part>, calls: usize) {
    let calls = u32::try_from(calls).unwrap_or(u32::MAX);
    let mut named = HashSet::new();
    parts.retain(|part| match part {
        Part::Call { index } => *index < calls && named.insert(*index),
        _ => true,
    });
    parts.extend((0..calls).filter(|index| !named.contains(index)).map(|index| Part::Call { index }));
}
