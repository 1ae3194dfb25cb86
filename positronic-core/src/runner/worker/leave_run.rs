//! How a worker leaves its run, and what it records of it: at the end, idle, when the runner releases its runs, when its lease has lapsed or
//! another worker has claimed the run, and after a failure of the store or a panic.

use std::panic::AssertUnwindSafe;

use futures::FutureExt as _;

use super::claimed_runs::Departure;
use super::stop_reason::{ResumeError, passes};
use super::work_loop::drive;
use super::worker::Worker;
use crate::error::panicked;
use crate::machine::end_brain;
use crate::record::{EndReason, EventKind, Failure, NewEvent, Path};
use crate::runner::detached::attach::is_detached;
use crate::store::StoreError;

/// The reason why a worker has left its run.
pub(in crate::runner) enum LeaveReason {
    /// The run has ended.
    Ended,
    /// The run was idle for a while, or the runner releases its runs.
    Released,
    /// Another worker has claimed the run.
    Lost,
    /// It failed.
    Failed(ResumeError),
}

/// Works on the run until it ends or has been idle for a while.
pub(in crate::runner) async fn work(mut worker: Box<Worker>) -> LeaveReason {
    // A panic must not leave the handle's waiters without an answer.
    let driven = AssertUnwindSafe(drive(&mut worker)).catch_unwind().await;
    // Of a panic: what it was decided with is not appended with the release.
    worker.drop_draft();
    let unrecorded = worker.flights.keys().chain(&worker.unrecorded);
    let mut in_flight: Vec<_> = unrecorded.filter(|path| !is_detached(&worker, path)).cloned().collect();
    in_flight.sort_by_key(Path::sort_key);
    for (_, flight) in std::mem::take(&mut worker.flights) {
        flight.task.abort();
    }
    let stop = match driven.unwrap_or_else(|panic| Err(ResumeError::Panicked { reason: panicked(&*panic).to_string() }))
    {
        Ok(left) => {
            if matches!(left, LeaveReason::Released) {
                worker.guard.departs(Departure::Released);
            }
            return left;
        }
        Err(ResumeError::Claimed { .. }) if in_flight.is_empty() || worker.lease.ttl().is_none() => {
            tracing::warn!(run = %worker.shared.run, ?in_flight, "another worker has claimed the run");
            return LeaveReason::Lost;
        }
        // Another worker may claim the run from now on, so this one writes nothing more. If one has, then the lease has
        // lapsed, although this worker's clock has not shown it yet.
        Err(ResumeError::LeaseLost { .. } | ResumeError::Claimed { .. }) => {
            let stop = ResumeError::LeaseLost { owner: worker.lease.owner().to_owned(), in_flight };
            tracing::error!(run = %worker.shared.run, reason = %stop, "the run's worker stops");
            return LeaveReason::Failed(stop);
        }
        Err(stop) => stop,
    };
    if let ResumeError::Store(refused @ StoreError::Unrecordable { .. }) = &stop
        && Box::pin(fail(&mut worker, refused)).await
    {
        return LeaveReason::Ended;
    }
    tracing::error!(run = %worker.shared.run, reason = %stop, "the run's worker stops");
    let next = worker.shared.state().next;
    // Before the release wakes other tasks of this runner.
    let paused = worker.shared.runner.state.backoffs.add(&worker.shared.run, next, Some(stop.clone()));
    Box::pin(give_up(&mut worker, &stop)).await;
    Box::pin(worker.shared.defer(&paused)).await;
    LeaveReason::Failed(stop)
}

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
pub(super) async fn give_up(worker: &mut Worker, stop: &ResumeError) {
    let refused = stop.refusal().map(|reason| {
        let owner = worker.lease.owner().to_owned();
        EventKind::RunNotClaimed { owner, reason, message: stop.to_string() }
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

pub(super) async fn release(worker: &mut Worker, reason: String) -> Result<bool, ResumeError> {
    worker.append_last(vec![NewEvent::new(Path::root(), EventKind::RunReleased { reason })]).await
}
