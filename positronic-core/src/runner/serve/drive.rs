//! Runs that another engine schedules: the runner works on a run until it waits, and the engine calls it again.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::backoffs::POLL;
use crate::definition::BrainDefinition;
use crate::record::{RunId, Seq, Start, Timestamp};
use crate::runner::clock::sleep;
use crate::runner::worker::shared::{Shared, WorkerPhase};
use crate::runner::{ResumeError, RunHandle, Runner, Settled, StartError};

/// A run that has ended, or waits without a worker.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Driven {
    /// How it settled; [`Settled::Waiting`] without items if it only waits for a time.
    pub settled: Settled,
    /// The number of the next event. A waiting run has work again once its log has an event with this number.
    pub next: Seq,
    /// When a waiting run has work without a new event.
    pub wake: Option<Timestamp>,
}

/// Works on a run until it ends or waits, then releases it.
pub(in crate::runner) async fn drive(runner: &Runner, run: &RunId) -> Result<Driven, ResumeError> {
    let driver = driver(runner);
    loop {
        let handle = match driver.resume(run).await {
            Ok(handle) => handle,
            Err(ResumeError::Over { .. }) => driver.open(run).await?,
            Err(ResumeError::Claimed { .. } | ResumeError::Quarantined { .. }) => {
                sleep(POLL).await;
                continue;
            }
            Err(error) => return Err(error),
        };
        return driven(&handle).await;
    }
}

/// Starts a run and works on it as [`drive`] does.
pub(in crate::runner) async fn start(
    runner: &Runner,
    definition: Arc<BrainDefinition>,
    options: Value,
    start: Start,
) -> Result<Driven, StartError> {
    let handle = driver(runner).start_definition(definition, options, start).await?;
    let next = handle.state().next;
    Ok(driven(&handle).await.unwrap_or_else(|error| Driven { settled: Settled::Stopped(error), next, wake: None }))
}

fn driver(runner: &Runner) -> Runner {
    let mut driver = runner.driven();
    driver.settings.linger = Duration::ZERO;
    driver
}

/// Waits until a run has ended, or waits and is released.
async fn driven(handle: &RunHandle<Value>) -> Result<Driven, ResumeError> {
    let shared = handle.shared();
    let mut phases = shared.settled.subscribe();
    loop {
        let (phase, at) = phases.borrow_and_update().clone();
        let is_settled = match phase {
            WorkerPhase::Working => false,
            WorkerPhase::Suspended => is_released(shared),
            WorkerPhase::Ended => true,
            WorkerPhase::Stopped(reason) => return Err(reason),
        };
        if is_settled {
            let next = shared.state().next;
            let wake = shared.summary().wake;
            let sleeps = at == next && !Settled::is_settled(&shared.state(), next);
            let settled = if sleeps { Settled::Waiting(Vec::new()) } else { handle.settled().await };
            return Ok(Driven { settled, next, wake });
        }
        // The handle shares the sender, so the channel stays open.
        _ = phases.changed().await;
    }
}

fn is_released(shared: &Shared) -> bool {
    shared.state().claim.as_ref().is_none_or(|claim| claim.released)
}
