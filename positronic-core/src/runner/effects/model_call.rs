//! A request to a model in a task of its own: the answer, what plugins make of it, and the check of its calls.

use std::sync::Arc;

use super::charge::{charged, charged_error};
use super::guards::Refused;
use super::guards::answers::AnswerGuards;
use super::plugin_hooks::{Passed, inspected};
use super::report::EffectOutcome;
use super::send_request::ask;
use super::structured_actions::{Received, ask_for_actions};
use super::validate_calls::{IterationAnswer, validate_calls};
use crate::definition::{LoopDefinition, Scope};
use crate::error::Result;
use crate::machine::{Answered, Outcome, Replaced, Validated};
use crate::model::{DeltaSink, Model as _, NoDeltas};
use crate::projection::iteration_request;
use crate::record::{AnswerFault, ModelError, ModelErrorKind, ModelResponse, Path};
use crate::runner::worker::Worker;

pub(super) fn spawn(worker: &mut Worker, path: &Path, attempt: u32) {
    let loop_at = path.parent().unwrap_or_default();
    let (request, prepared, after) = {
        let state = &worker.state;
        let Some(frame) = state.loop_at(path) else { return };
        let model = worker.shared.runner.model_of(frame.prepared.settings.tier);
        let messages = worker.shared.prompts().transcript_by(&loop_at, |outputs| model.project(outputs));
        let request = iteration_request(frame, path.clone(), attempt, messages);
        (request, frame.prepared.clone(), state.next)
    };
    let Some(scope) = worker.scope(path.clone()) else { return };
    worker.used_answers.remove(&path.about_answer());
    let definition = worker.frames.loop_at(&loop_at).cloned();
    let guards = AnswerGuards::of(worker, path);
    let model = Arc::clone(worker.shared.runner.model_of(request.settings.tier));
    let shared = Arc::clone(&worker.shared);
    worker.launch(
        path.clone(),
        true,
        Box::pin(async move {
            let started = shared.now();
            let (tools, definition) = (&*prepared.tools, definition.as_deref());
            let received = match &prepared.settings.structured_actions {
                _ if request.settings.in_code => answer_in_code(definition).map(Received::Plain),
                Some(actions) => {
                    let actions = (actions, tools);
                    ask_for_actions(&shared, &*model, &request, after, actions, definition, guards.hold_back()).await
                }
                None => {
                    let shown = |show| if guards.hold_back() { Box::new(NoDeltas) as Box<dyn DeltaSink> } else { show };
                    ask(&shared, &*model, &request, Some(after), shown).await.map(Received::Plain)
                }
            };
            let took = shared.since(started);
            let settled = |outcome| EffectOutcome::Settled(outcome, took);
            let (mut response, raw) = match received {
                Ok(Received::Plain(response)) => (response, None),
                Ok(Received::Actions(response, raw)) => (response, guards.hold_back().then_some(raw)),
                Ok(Received::Misfit(mut response, message)) => {
                    response.metadata = charged(&shared.runner, response.metadata);
                    let (guard, replaced) = (None, Vec::new());
                    return settled(Outcome::Misfit { response, message, guard, replaced, attempt });
                }
                Err(error) => {
                    let error = charged_error(&shared.runner, error);
                    return settled(Outcome::ModelFailed { error, attempt });
                }
            };
            response.metadata = charged(&shared.runner, response.metadata);
            let refused = |mut response: ModelResponse, replaced, Refused { guard, message }| {
                // Structured actions are shown to the model as it has written them.
                if let Some(raw) = raw {
                    (response.parts, response.calls) = (raw, Vec::new());
                }
                settled(Outcome::Misfit { response, message, guard: Some(guard), replaced, attempt })
            };
            let mut replaced = Vec::new();
            let Passed { plugins, failed } =
                match passed(definition, &guards, &scope, &mut response, &mut replaced).await {
                    Ok(passed) => passed,
                    Err(why) => return refused(response, replaced, why),
                };
            let proposed = std::mem::take(&mut response.calls);
            // A guard that stops the loop at a call refuses the answer with its calls.
            let stoppable = has_call_guards(definition).then(|| proposed.clone());
            let clock = &*shared.runner.clock;
            let answer = IterationAnswer { clock, path: &request.path, tools, definition, scope: &scope };
            let mut calls = match validate_calls(proposed, &answer).await {
                Ok(calls) => calls,
                Err(why) => {
                    response.calls = stoppable.unwrap_or_default();
                    return refused(response, replaced, why);
                }
            };
            cut_off(&mut calls, &response, request.settings.max_output_tokens);
            let ModelResponse { parts, metadata, .. } = response;
            settled(Outcome::Answer(Answered { parts, metadata, calls, plugins, failed, replaced }))
        }),
    );
}

/// Lets the guards and the plugins of a loop check an answer.
async fn passed(
    definition: Option<&LoopDefinition>,
    guards: &AnswerGuards,
    scope: &Scope,
    response: &mut ModelResponse,
    replaced: &mut Vec<Replaced>,
) -> Result<Passed, Refused> {
    // A loop that stays with the brain that took over has no answer of its own to check.
    let Some(definition) = definition.filter(|definition| !definition.stays) else {
        return Ok(Passed { plugins: scope.plugins.clone(), failed: Vec::new() });
    };
    guards.check(response, replaced).await?;
    inspected(definition, scope.clone(), response, replaced).await
}

fn has_call_guards(definition: Option<&LoopDefinition>) -> bool {
    definition.is_some_and(|definition| definition.guards.iter().any(|guard| guard.check.is_call()))
}

/// Returns the answer that the loop's code gives instead of a model.
fn answer_in_code(definition: Option<&LoopDefinition>) -> Result<ModelResponse, ModelError> {
    definition.and_then(|definition| definition.answer.clone()).ok_or_else(|| {
        let kind = ModelErrorKind::BadRequest;
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
