//! Further tries of a nested brain that fails: the author's code says whether, and the log says when.

use super::worker::Worker;
use crate::error::{Error, caught_now};
use crate::record::{EventKind, Failure, NewEvent};

/// Adds `STEP_RETRY` before the failure of each brain that its stage tries again.
pub(super) fn with_tries(worker: &Worker, new_events: Vec<NewEvent>) -> Vec<NewEvent> {
    let fails = |event: &NewEvent| matches!(event.kind, EventKind::BrainError(_)) && !event.path.is_root();
    if !new_events.iter().any(fails) {
        return new_events;
    }
    let mut all: Vec<NewEvent> = Vec::with_capacity(new_events.len() + 1);
    for event in new_events {
        // The events of a draft that was not appended have it already.
        let has_retry = all
            .last()
            .is_some_and(|before| before.path == event.path && matches!(before.kind, EventKind::StepRetry { .. }));
        if let EventKind::BrainError(failure) = &event.kind
            && !has_retry
            && let Some(kind) = next_try(worker, &event, failure)
        {
            all.push(NewEvent { path: event.path.clone(), kind, with_next: true });
        }
        all.push(event);
    }
    all
}

fn next_try(worker: &Worker, event: &NewEvent, failure: &Failure) -> Option<EventKind> {
    let (brain, owner) = (worker.state.brain(&event.path)?, worker.state.owner(&event.path)?);
    // A model decides what follows the failure of a brain that it has called.
    let stage = owner.current().filter(|stage| !stage.kind.has_iterations())?;
    let tries = worker.frames.tries(&owner.path, &stage.name).filter(|tries| tries.retries > brain.attempt)?;
    let error = match failure.retryable {
        true => Error::transient(failure.clone()),
        false => Error::permanent(failure.clone()),
    };
    let is_retried = caught_now(|| Ok((tries.retried)(&error))).unwrap_or(false);
    let due = worker.settle_context().again(brain.attempt, tries.retries).filter(|_| is_retried)?;
    Some(EventKind::StepRetry { attempt: brain.attempt, message: failure.message.clone(), due })
}
