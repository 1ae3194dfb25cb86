//! Outcomes of effects: described as data by the runner, and converted into events by the machine.

use std::sync::Arc;

use serde_json::Value;

use super::report::Outcome;
use crate::definition::{StateValue, UntypedReply, recordable};
use crate::error::Result;
use crate::machine::{self, Inputs, Returned, settle};
use crate::record::{EventKind, ModelError, Path, ResponseMetadata, RoutingStep};
use crate::runner::catch::caught_now;
use crate::runner::detached::call::InDoubt;
use crate::runner::worker::Worker;
use crate::runner::worker::stop::Stop;

impl Worker {
    pub(in crate::runner) async fn record_outcome(&mut self, path: &Path, outcome: Outcome) -> Result<(), Stop> {
        let (outcome, took) = match outcome {
            Outcome::Step { result, took } => {
                let result = result.and_then(|next| recordable("the next state", &next).map(|()| next));
                (Some(machine::Outcome::Step(result)), took)
            }
            Outcome::Answer { result: Ok(mut answered), took, .. } => {
                answered.metadata = self.charged(answered.metadata);
                (Some(machine::Outcome::Answer(answered)), took)
            }
            Outcome::Answer { result: Err(error), attempt, took } => {
                let error = self.charged_error(error);
                (Some(machine::Outcome::ModelFailed { error, attempt }), took)
            }
            Outcome::Refused { response, message, attempt, took } => {
                let (parts, metadata) = (response.parts, self.charged(response.metadata));
                (Some(machine::Outcome::Misfit { parts, metadata, message, attempt }), took)
            }
            Outcome::Tool { result, attempt, took } => (self.returned(path, result, attempt), took),
            Outcome::Prepared { result, iteration, read } => {
                return self.record_prepared(path, result, iteration, read).await;
            }
            Outcome::Question { result, took, asker } => return self.record_question(path, result, *asker, took).await,
        };
        let Some(outcome) = outcome else { return Ok(()) };
        let new_events = settle(&self.shared.state(), path, outcome, took, &self.inputs());
        let waits = new_events.iter().any(|event| matches!(event.kind, EventKind::LoopWait { .. }));
        self.mail_unread |= waits;
        if !new_events.is_empty() && self.append_outcome(path, new_events).await? && waits {
            self.unrecorded = None;
            self.spawn_announced();
            // The webhook may have arrived before. After a crash right here, the next worker reads the
            // mailbox.
            self.take_mail().await?;
        }
        Ok(())
    }

    pub(super) fn inputs(&self) -> Inputs {
        let runner = &self.shared.runner;
        Inputs { now: self.shared.now(), jitter: runner.ids.jitter(), retry: runner.retry }
    }

    /// Computes the state changes of a tool that has returned; `None` if the call no longer exists.
    fn returned(&mut self, path: &Path, result: Result<UntypedReply>, attempt: u32) -> Option<machine::Outcome> {
        let tool = self.shared.state().call(path).map(|call| call.tool.clone())?;
        let states = self.states(path)?;
        let checked = |reply: UntypedReply| {
            recordable("the tool did its work, but what it returned", &reply.output).map(|()| reply)
        };
        let reply = match result.and_then(checked) {
            Ok(reply) => reply,
            Err(error) => {
                let retries = self.frames.tool(path, &tool).map_or(0, |tool| tool.retries);
                if let Some(InDoubt(reason)) = error.source().downcast_ref::<InDoubt>() {
                    return Some(machine::Outcome::ToolInDoubt { reason: reason.clone(), attempt, retries });
                }
                return Some(machine::Outcome::ToolFailed { error, attempt, retries });
            }
        };
        let UntypedReply { output, brief, updates, plugin_updates, waits, triggers } = reply;
        let changes = states.and_then(|states| {
            let next = updated(&states.document, updates)?;
            states.step(path, next, plugin_updates)
        });
        let waits = waits.into_iter().map(|wait| (wait.spec, wait.valid_for)).collect();
        Some(machine::Outcome::Tool(Returned { output, brief, waits, triggers, changes }))
    }

    /// Adds the cost of an answer and of those that broke before it, unless their provider has reported it.
    pub(super) fn charged(&self, mut metadata: ResponseMetadata) -> ResponseMetadata {
        self.charge(&mut metadata);
        self.charge_steps(&mut metadata.via);
        metadata
    }

    /// Adds the costs of answers that broke.
    pub(super) fn charged_error(&self, mut error: ModelError) -> ModelError {
        self.charge_steps(&mut error.via);
        error
    }

    fn charge_steps(&self, steps: &mut [RoutingStep]) {
        for step in steps {
            if let RoutingStep::Broken { metadata } = step {
                self.charge(metadata);
            }
        }
    }

    fn charge(&self, metadata: &mut ResponseMetadata) {
        if metadata.cost.is_none() {
            metadata.cost = self.shared.runner.prices.as_ref().and_then(|prices| prices.charge(metadata)).map(Box::new);
        }
    }
}

/// Applies a tool's updates in order, all or none.
pub(in crate::runner) fn updated(
    document: &StateValue,
    updates: Vec<crate::definition::Update>,
) -> Result<Option<Value>> {
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
