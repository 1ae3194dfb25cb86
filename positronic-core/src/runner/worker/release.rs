//! Release of a run by its worker: when it is idle, when the runner releases its runs, and after a failure.

use std::time::Duration;

use super::claimed_runs::Departure;
use super::stop_reason::{ResumeError, Stop, passes};
use super::worker::Worker;
use crate::machine::end_brain;
use crate::record::{EndReason, EventKind, Failure, NewEvent, Path};
use crate::store::StoreError;

/// Fails the run because its next event can never be recorded. Returns `false` if that could not be written.
pub(super) async fn fail(worker: &mut Worker, refused: &StoreError) -> bool {
    loop {
        let failure = Failure {
            code: EndReason::State,
            message: format!("the run cannot continue: {refused}"),
            retryable: false,
        };
        let new_events = worker.state.root.as_ref().map(|root| end_brain(root, &failure)).unwrap_or_default();
        match worker.append_last(new_events).await {
            Ok(false) if !worker.state.has_ended() => {}
            ended => return ended.is_ok(),
        }
    }
}

/// Releases the run after a failure, so that another worker need not wait until this process ends. If the store has
/// failed, this is tried once: appends were retried for long already.
pub(super) async fn give_up(worker: &mut Worker, stop: &Stop) {
    let error = ResumeError::from(stop.clone());
    let refused = error.refusal().map(|reason| {
        let owner = worker.lease.owner().to_owned();
        EventKind::RunNotClaimed { owner, reason, message: error.to_string() }
    });
    let released = EventKind::RunReleased { reason: stop.to_string() };
    let kinds: Vec<_> = [released].into_iter().chain(refused).collect();
    worker.guard.departs(Departure::Kept);
    let mut is_done = worker.mail_unread;
    while !is_done && !worker.state.has_ended() {
        let new_events = kinds.iter().map(|kind| NewEvent::new(Path::root(), kind.clone())).collect();
        let released =
            if passes(stop) { worker.append_once(new_events).await } else { worker.append_last(new_events).await };
        if matches!(released, Ok(true)) {
            worker.guard.departs(Departure::Released);
        }
        is_done = released.unwrap_or(true);
    }
    if worker.state.has_ended() {
        worker.guard.departs(Departure::Unclaimed);
    }
}

/// Returns whether an append is tried again after a pause: with nothing in flight, a runner that releases its runs waits
/// for a store that fails less than a second.
pub(super) fn retries(worker: &Worker, pause: Duration) -> bool {
    !worker.leaves() || !worker.flights.is_empty() || pause < Duration::from_millis(500)
}

pub(super) async fn release(worker: &mut Worker, reason: String) -> Result<bool, Stop> {
    worker.append_last(vec![NewEvent::new(Path::root(), EventKind::RunReleased { reason })]).await
}
