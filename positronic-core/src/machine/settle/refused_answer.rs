//! An answer of another form, or one that a guard refused: the model is asked again, up to a limit.

use std::time::Duration;

use crate::machine::RunState;
use crate::record::{EndReason, EventKind, LoopOutcome, ModelResponse, NewEvent, Path};

/// A guard that does not let an answer pass.
pub(crate) struct RefusingGuard {
    pub(crate) name: String,
    /// Whether it stops the loop. Otherwise the model is asked again.
    pub(crate) stops: bool,
}

/// Records an answer of another form, or one that a guard refused; the loop fails when it was the last that the model had.
pub(super) fn refused_answer(
    state: &RunState,
    path: &Path,
    ModelResponse { parts, calls, metadata }: ModelResponse,
    (message, guard): (String, Option<RefusingGuard>),
    attempt: u32,
    duration: Duration,
) -> Vec<NewEvent> {
    let loop_at = path.parent().unwrap_or_default();
    let Some(frame) = state.loop_at(path) else { return Vec::new() };
    let retries = match &guard {
        Some(RefusingGuard { stops: true, .. }) => 0,
        Some(_) => frame.limits.answer_retries,
        None => frame.prepared.settings.structured_actions.as_ref().map_or(0, |actions| actions.retries),
    };
    let refused = frame.refused.len() + 1;
    let mut usage = frame.usage;
    usage += metadata.usage;
    let last = usize::try_from(retries).is_ok_and(|retries| refused > retries).then(|| {
        let times = if refused == 1 { "once".to_owned() } else { format!("{refused} times") };
        match &guard {
            Some(RefusingGuard { name, stops: true }) => format!("the guard `{name}` stopped the loop `{loop_at}`: {message}"),
            Some(RefusingGuard { name, .. }) => {
                format!("the model of the loop `{loop_at}` was asked {times}, and the guard `{name}` refused its answer: {message}")
            }
            None => format!("the model of the loop `{loop_at}` was asked {times} and gave no valid action: {message}"),
        }
    });
    let (code, retryable) = if guard.is_some() { (EndReason::Guard, false) } else { (EndReason::Action, true) };
    let guard = guard.map(|guard| guard.name);
    let (parts, metadata) = (parts.into(), Box::new(metadata));
    let kind = EventKind::LoopAnswerRefused { attempt, guard, message, parts, calls, metadata, duration };
    let mut new_events = vec![NewEvent::new(path.clone(), kind)];
    if let Some(message) = last {
        let outcome = LoopOutcome::Failed { code, message, retryable };
        new_events.push(NewEvent::new(loop_at, EventKind::LoopComplete { outcome, usage, change: None }));
    }
    new_events
}
