//! Claiming of runs: which worker may, and what it restores first.

use std::pin::pin;
use std::sync::Arc;

use super::Runner;
use super::append::{Extras, Stamp, append, append_of, follow, stamp, worker_of};
use super::lease::HeldLease;
use super::quarantine::crashes_of;
use super::registry::RunGuard;
use super::restore::migration;
use super::shared::Shared;
use super::stop::Stop;
use super::worker::Worker;
use crate::definition::BrainDefinition;
use crate::machine::RunState;
use crate::record::{Claim, Epoch, EventKind, NewEvent, Path};
use crate::store::StoreError;

/// The reason why a run is not claimed.
pub(super) enum NoClaim {
    /// It has no work.
    Idle,
    /// Another worker has claimed it.
    Claimed { by: String },
    /// The process ended so often during its work that other runs come first.
    Quarantined { crashes: u32 },
    /// The runner does not know the brain's code.
    NoCode,
    /// The claim failed.
    Stopped(Stop),
}

impl<E: Into<Stop>> From<E> for NoClaim {
    fn from(error: E) -> Self {
        Self::Stopped(error.into())
    }
}

/// Claims a run with work and creates its worker. A run that waits for a webhook is claimed from a dead worker, too,
/// which may have died before it read the mailbox.
pub(super) async fn claim(shared: &Arc<Shared>) -> Result<Box<Worker>, NoClaim> {
    let Some(definition) = &shared.definition else { return Err(NoClaim::NoCode) };
    let runner = &shared.runner;
    loop {
        let state = shared.state().clone();
        let (idle, mail) = {
            let row = shared.summary();
            (!row.has_work(shared.now()), row.mail)
        };
        if idle && !mail {
            release_idle(shared, &state).await?;
            return Err(NoClaim::Idle);
        }
        let guard = runner.registry.guard(&shared.run);
        if runner.registry.is_leaving() {
            return Err(NoClaim::Stopped(Stop::Leaves));
        }
        let held = |by| if idle { NoClaim::Idle } else { NoClaim::Claimed { by } };
        let Some(guard) = guard else {
            return Err(held(runner.lease().await?.owner().to_owned()));
        };
        let lease = runner.lease().await?;
        if let Some(by) = other_worker(runner, &lease, &state).await? {
            return Err(held(by));
        }
        let (epoch, owner) = (epoch_after(&state), lease.owner().to_owned());
        let mut new_events = vec![NewEvent::new(Path::root(), EventKind::RunClaimed { owner, trace: None })];
        let migrated =
            state.root.as_ref().map(|root| migration(root, definition)).transpose().map_err(Stop::Changed)?;
        new_events.extend(migrated.flatten().map(|kind| NewEvent::new(Path::root(), kind)));
        let events = stamp(new_events, state.next, Stamp::of_worker(shared.now(), state.at), Some(epoch));
        let after = follow(&state, &events)?;
        let crashes = crashes_of(&after);
        let Ok(permit) = runner.quarantine.enter(&shared.run, crashes) else {
            return Err(NoClaim::Quarantined { crashes });
        };
        let Some(mut worker) = restored(shared, &after, definition, (epoch, lease), guard).await? else { continue };
        worker.quarantined = permit;
        let row = shared.summary().clone();
        let extras = Extras { epoch: Some(epoch), sinks: runner.durable_sinks(), ..Extras::default() };
        let claimed = append_of(&shared.run, &state, &after, Some(&row), &events, extras);
        let summary = claimed.index.summary.clone();
        match append(&*runner.store, &shared.run, claimed).await {
            Ok(()) => {
                shared.take_over(after, summary, &events);
                return Ok(worker);
            }
            Err(StoreError::Conflict { .. }) => {
                // Another writer was first: decide again.
                shared.catch_up().await?;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Restores the worker of a run. Plugins may take any time for that, so it is abandoned when the runner releases its
/// runs, and returns `None` when another writer appends, because the claim must be decided again.
async fn restored(
    shared: &Arc<Shared>,
    after: &RunState,
    definition: &Arc<BrainDefinition>,
    claim: (Epoch, Arc<HeldLease>),
    guard: RunGuard,
) -> Result<Option<Box<Worker>>, Stop> {
    let mut worker = pin!(Worker::restored(shared, after, definition, claim, guard));
    loop {
        tokio::select! {
            biased;
            worker = &mut worker => return worker.map(Some),
            () = shared.runner.registry.left() => return Err(Stop::Leaves),
            () = shared.bell.notified() => {
                if !shared.catch_up().await?.is_empty() {
                    return Ok(None);
                }
            }
        }
    }
}

/// Releases an idle run that is still claimed by this runner, whose worker could not release it.
async fn release_idle(shared: &Shared, state: &RunState) -> Result<(), Stop> {
    let runner = &shared.runner;
    let Some(Claim { epoch, owner, released: false }) = &state.claim else { return Ok(()) };
    if state.has_ended() || runner.lease().await?.owner() != &**owner {
        return Ok(());
    }
    let Some(_guard) = runner.registry.guard(&shared.run) else { return Ok(()) };
    let released = EventKind::RunReleased { reason: "nothing to do".to_owned() };
    append_alone(shared, *epoch, released).await
}

/// Appends an event without a worker. On a conflict, the next attempt decides again.
pub(super) async fn append_alone(shared: &Shared, epoch: Epoch, kind: EventKind) -> Result<(), Stop> {
    let before = shared.state().clone();
    let at = Stamp::of_worker(shared.now(), before.at);
    let events = stamp(vec![NewEvent::new(Path::root(), kind)], before.next, at, Some(epoch));
    let after = follow(&before, &events)?;
    let row = shared.summary().clone();
    let extras = Extras { epoch: Some(epoch), ..Extras::default() };
    let alone = append_of(&shared.run, &before, &after, Some(&row), &events, extras);
    let summary = alone.index.summary.clone();
    match append(&*shared.runner.store, &shared.run, alone).await {
        Ok(()) => shared.take_over(after, summary, &events),
        Err(StoreError::Conflict { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

pub(super) fn epoch_after(state: &RunState) -> Epoch {
    // After the last epoch the number repeats, and the claim is refused.
    Epoch(state.claim.as_ref().map_or(0, |claim| claim.epoch.0).saturating_add(1))
}

/// Returns the name of another runner's worker that has claimed the run. This runner's own workers are in the
/// registry.
async fn other_worker(runner: &Runner, own: &HeldLease, state: &RunState) -> Result<Option<String>, StoreError> {
    let worker = worker_of(&*runner.store, state.claim.as_ref()).await?;
    Ok(worker.filter(|worker| *worker != own.owner()).map(str::to_owned))
}
