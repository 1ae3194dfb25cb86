//! The task of a run: works on it while there is work, and follows its log otherwise.
//!
//! ```text
//!            work, and no worker has claimed the run: RUN_CLAIMED
//!   follow ──────────────────────────────────────────────────▶ work
//!     ▲                                                          │
//!     └── idle: RUN_RELEASED ────────────────────────────────────┘
//!         another worker claimed it, or the store failed
//! ```
//!
//! While it follows, the task has only a weak reference to the run, so a waiting run leaves memory when its handle is
//! dropped. `runs_without_handle` then keeps its id and loads it again when there is work.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;

use super::backoffs::POLL;
use super::runs_without_handle::WithoutHandle;
use crate::error::panicked;
use crate::machine::next;
use crate::record::{Status, Timestamp};
use crate::runner::client::child_ends::{after_end, deliver_ends};
use crate::runner::clock::{NAP, sleep};
use crate::runner::worker::claim::{NoClaim, claim};
use crate::runner::worker::shared::{Shared, WorkerPhase};
use crate::runner::worker::stop_reason::ResumeError;
use crate::runner::worker::{LeaveReason, Worker, work};
use crate::store::Deferral;

/// What the store keeps of the failures of a run that has made progress.
const NO_FAILURES: Deferral = Deferral::Paused { failures: 0, pause: Duration::ZERO };

/// Attends to a run until it has ended or its handle is dropped.
///
/// This future lives as long as the run. So whatever is not done at each append is boxed, here and in the worker: thousands of
/// runs may wait for their models at once.
pub(in crate::runner) async fn attend(shared: Arc<Shared>, mut begun: Option<Box<Worker>>) {
    let (bell, weak) = (Arc::clone(&shared.bell), Arc::downgrade(&shared));
    let definition = shared.definition.clone().filter(|_| !shared.served);
    let left = definition.map(|definition| WithoutHandle::of(&shared.runner, &shared.run, definition));
    let mut held = Some(shared);
    loop {
        let Some(shared) = held.take().or_else(|| weak.upgrade()) else {
            // Its handle was dropped before the run ended.
            return left.into_iter().for_each(WithoutHandle::keep);
        };
        let backoffs = &shared.runner.state.backoffs;
        let mut poll = None;
        if let Some(worker) = begun.take() {
            match work(worker).await {
                LeaveReason::Ended => {
                    backoffs.clear(&shared.run);
                    return Box::pin(ended(&shared)).await;
                }
                LeaveReason::Released if backoffs.clear(&shared.run) => Box::pin(shared.defer(&NO_FAILURES)).await,
                LeaveReason::Released => {}
                LeaveReason::Lost => _ = backoffs.clear(&shared.run),
                LeaveReason::Failed(stop) => {
                    shared.publish(WorkerPhase::Stopped(stop));
                    // Not at once, so that those who wait for the run see the reason.
                    poll = Some(backoffs.remaining(&shared.run).map_or(POLL, |pause| pause.left));
                }
            }
        }
        if poll.is_none() {
            poll = match caught(Box::pin(follow(&shared))).await {
                Ok(FollowOutcome::Ended) => return Box::pin(ended(&shared)).await,
                Ok(FollowOutcome::Begun(worker)) => {
                    begun = Some(worker);
                    held = Some(shared);
                    continue;
                }
                Ok(FollowOutcome::Wait { again }) => again,
                Err(ResumeError::Leaves) => {
                    shared.publish(WorkerPhase::Stopped(ResumeError::Leaves));
                    None
                }
                Err(reason) => {
                    let next = shared.state().next;
                    let recording = backoffs.record(&*shared.runner.store, &shared.run, next, Some(reason.clone()));
                    let rest = Box::pin(recording).await;
                    shared.publish(WorkerPhase::Stopped(reason));
                    rest
                }
            };
        }
        drop(shared);
        tokio::select! {
            () = bell.notified() => {}
            () = sleep(poll.unwrap_or(Duration::MAX)) => {}
        }
    }
}

/// Publishes the end of a run. Its parent and its children know of it before.
async fn ended(shared: &Shared) {
    let state = shared.state().clone();
    if state.start.parent.is_some() || !state.children.is_empty() {
        after_end(&shared.runner.client(), &shared.run, &state).await;
    }
    shared.publish(WorkerPhase::Ended);
}

/// Turns a panic into a reason to stop, so that the handle's waiters get an answer.
async fn caught<T>(work: impl Future<Output = Result<T, ResumeError>>) -> Result<T, ResumeError> {
    let done = AssertUnwindSafe(work).catch_unwind().await;
    done.unwrap_or_else(|panic| Err(ResumeError::Panicked { reason: panicked(&*panic).to_string() }))
}

enum FollowOutcome {
    Ended,
    Begun(Box<Worker>),
    Wait { again: Option<Duration> },
}

/// Reads new events, and claims the run if it has unclaimed work.
async fn follow(shared: &Arc<Shared>) -> Result<FollowOutcome, ResumeError> {
    let events = shared.catch_up().await?;
    if shared.state().has_ended() {
        return Ok(FollowOutcome::Ended);
    }
    let backoffs = &shared.runner.state.backoffs;
    if !backoffs.records_signal(&shared.run, &events)
        && let Some(rest) = backoffs.remaining(&shared.run)
    {
        if let Some(reason) = rest.reason {
            shared.publish(WorkerPhase::Stopped(reason));
        }
        return Ok(FollowOutcome::Wait { again: Some(rest.left) });
    }
    let state = shared.state().clone();
    if !state.children.is_empty() && deliver_ends(&shared.runner.client(), &shared.run, &state).await? {
        shared.catch_up().await?;
    }
    match claim(shared).await {
        Ok(worker) => Ok(FollowOutcome::Begun(worker)),
        // Another writer ended the run during the restore.
        Err(NoClaim::Idle) if shared.state().has_ended() => Ok(FollowOutcome::Ended),
        Err(NoClaim::Idle) => {
            shared.publish(WorkerPhase::Suspended);
            Ok(FollowOutcome::Wait { again: due(shared) })
        }
        Err(NoClaim::Claimed { .. } | NoClaim::Quarantined { .. }) => {
            shared.publish(WorkerPhase::Working);
            Ok(FollowOutcome::Wait { again: Some(POLL) })
        }
        Err(NoClaim::NoCode) => {
            // Timers of a waiting run are left to the runners that have its code.
            let idle = shared.summary().status != Status::Running;
            shared.publish(if idle { WorkerPhase::Suspended } else { WorkerPhase::Working });
            Ok(FollowOutcome::Wait { again: None })
        }
        Err(NoClaim::Stopped(stop)) => Err(stop),
    }
}

/// Returns the time until something is due in a waiting run, at most [`NAP`].
fn due(shared: &Shared) -> Option<Duration> {
    let now: Timestamp = shared.now();
    let wake = next(&shared.state(), now).wake?;
    Some(wake.since(now).clamp(Duration::from_micros(1), NAP))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size_of_task<F>(_: fn(Arc<Shared>, Option<Box<Worker>>) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn task_of_a_run_is_small() {
        let bytes = size_of_task(attend);
        assert!(bytes <= 8 * 1024, "{bytes} bytes: box what is not done at each append");
    }
}
