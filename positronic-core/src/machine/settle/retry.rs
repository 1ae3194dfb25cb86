//! Retries of failed requests to models and of failed tools: whether, when, and what a failure for good leads to.

use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBuilder};

use super::context::SettleContext;
use crate::error::Error;
use crate::machine::RunState;
use crate::machine::close::fail_loop;
use crate::record::{
    ActionFormat, CallFlags, EndReason, EventKind, Failure, ModelError, ModelErrorKind, NewEvent, Path, RetryPolicy,
    ToolResult,
};

impl RetryPolicy {
    /// Returns the wait before the next retry, or `None` if the request fails. `attempt` is the number of the failed try,
    /// from 0; `jitter`, from 0 to 1, spreads simultaneous retries: it subtracts up to half from our own wait, and adds up to
    /// a tenth to a wait that the provider requested.
    #[must_use]
    pub fn delay(&self, error: &ModelError, attempt: u32, jitter: f64) -> Option<Duration> {
        if !error.is_retryable() || attempt >= self.limit {
            return None;
        }
        let jitter = if jitter.is_finite() { jitter.clamp(0.0, 1.0) } else { 0.0 };
        if let Some(asked) = error.retry_after {
            return (asked <= self.max_retry_after).then(|| asked.mul_f64(1.0 + jitter / 10.0));
        }
        let mut waits = ExponentialBuilder::default()
            .with_factor(2.0)
            .with_min_delay(self.first)
            .with_max_delay(self.longest)
            .without_max_times()
            .build();
        waits.nth(usize::try_from(attempt).ok()?).map(|wait| wait.mul_f64(1.0 - jitter / 2.0))
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    fn error(kind: ModelErrorKind, retry_after: Option<Duration>) -> ModelError {
        ModelError { retry_after, ..ModelError::new(kind, "no") }
    }

    #[test]
    fn wait_doubles_up_to_the_limits() {
        let policy = RetryPolicy::builder().limit(9).longest(Duration::from_secs(3)).build();
        let failed = error(ModelErrorKind::Server, None);
        let waits: Vec<_> = (0..5).filter_map(|attempt| policy.delay(&failed, attempt, 0.0)).collect();

        assert_eq!(waits, [500, 1000, 2000, 3000, 3000].map(Duration::from_millis));
        assert_eq!(policy.delay(&failed, 0, 1.0), Some(Duration::from_millis(250)));
        assert_eq!(policy.delay(&failed, 0, f64::NAN), Some(Duration::from_millis(500)));
        assert_eq!(policy.delay(&failed, 9, 0.0), None);
    }

    #[test]
    fn requested_wait_is_used_up_to_its_limit() {
        let policy = RetryPolicy::default();
        let asked = |wait| policy.delay(&error(ModelErrorKind::RateLimited, Some(wait)), 0, 0.0);

        assert_eq!(asked(Duration::from_secs(7)), Some(Duration::from_secs(7)));
        assert_eq!(asked(Duration::ZERO), Some(Duration::ZERO));
        assert_eq!(asked(Duration::from_hours(1)), None);
    }

    #[test]
    fn permanent_failure_is_not_retried() {
        for kind in [ModelErrorKind::QuotaExhausted, ModelErrorKind::Auth, ModelErrorKind::ContextTooLong] {
            assert_eq!(RetryPolicy::default().delay(&error(kind, Some(Duration::ZERO)), 0, 0.0), None);
        }
    }
}
