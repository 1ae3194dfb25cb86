//! Retries of failed requests to models and of failed tools: whether, and what a failure for good leads to. When is in
//! `record/request/retry_policy.rs`.

use std::time::Duration;

use super::context::SettleContext;
use crate::error::Error;
use crate::machine::RunState;
use crate::machine::close::fail_loop;
use crate::record::{
    ActionFormat, CallFlags, EndReason, EventKind, Failure, ModelError, ModelErrorKind, NewEvent, Path, ToolResult,
};

/// Retries a failed request to a model, or fails its loop.
pub(super) fn model_failed(
    state: &RunState,
    path: &Path,
    error: ModelError,
    attempt: u32,
    context: &SettleContext,
) -> Vec<NewEvent> {
    // Answers that were refused are tries of the same request, and no failures of the model.
    let refused = state.loop_at(path).map_or(0, |frame| frame.refused.len());
    let failed = attempt.saturating_sub(u32::try_from(refused).unwrap_or(u32::MAX));
    if let Some(pause) = context.retry.delay(&error, failed, context.jitter) {
        let due = context.now.after(pause);
        return vec![NewEvent::new(path.clone(), EventKind::LoopModelRetry { attempt, error, due })];
    }
    let loop_at = path.parent().unwrap_or_default();
    let tries = failed + 1;
    let times = if tries == 1 { String::new() } else { format!(" {tries} times") };
    let hint = hint(state, path, &error);
    let message = format!("the model of the loop `{loop_at}` failed{times}: {error}{hint}");
    fail_loop(state, &loop_at, Failure { code: EndReason::Model, message, retryable: error.is_retryable() })
}

/// Says what to do about a model's failure, where that is known.
fn hint(state: &RunState, path: &Path, error: &ModelError) -> String {
    let form = state.loop_at(path).and_then(|frame| frame.prepared.settings.structured_actions.as_ref()?.form);
    match (error.kind, error.retry_after, form) {
        (_, Some(wait), _) if error.is_retryable() => {
            format!("; it asks to wait {} s before it is asked again", wait.as_secs_f64().ceil())
        }
        (ModelErrorKind::BadRequest, _, Some(form)) if form != ActionFormat::Plain => {
            "; if the endpoint does not support schemas for answers, describe the actions in the prompt: `ActionFormat::Plain`, on the \
             command line `--action-format plain`"
                .to_owned()
        }
        _ => String::new(),
    }
}

/// Retries a failed tool, or returns its result.
pub(super) fn tool_failed(
    flags: CallFlags,
    attempt: u32,
    retries: u32,
    error: &Error,
    duration: Duration,
    context: &SettleContext,
) -> EventKind {
    let may_try = error.is_transient() && flags.may_repeat();
    let message = error.to_string();
    match may_try.then(|| context.again(attempt, retries)).flatten() {
        Some(due) => EventKind::LoopToolRetry { attempt, message, due },
        None => {
            EventKind::LoopToolResult { result: ToolResult::error(message), duration: Some(duration), change: None }
        }
    }
}
