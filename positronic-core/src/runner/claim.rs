//! Taking a run over: who may, and what has to be found again first.

use std::pin::pin;
use std::sync::Arc;

use super::Runner;
use super::commit::{Extras, append_of, follow, stamp};
use super::registry::RunGuard;
use super::restore::migration;
use super::shared::{Shared, Stop};
use super::worker::Worker;
use crate::definition::BrainDefinition;
use crate::machine::RunState;
use crate::record::{Claim, Epoch, EventKind, NewEvent, Path};
use crate::store::{EventStore, StoreError};

/// Why a run is not taken over.
pub(super) enum NoClaim {
    /// There is nothing to do in it.
    Idle,
    /// Another worker has it.
    Claimed { by: String },
    /// The brain's code is not known here.
    NoCode,
    /// It cannot be taken over.
    Stopped(Stop),
}

impl<E: Into<Stop>> From<E> for NoClaim {
    fn from(error: E) -> Self {
        Self::Stopped(error.into())
    }
}

/// Takes a run over in which there is work that nobody does, and makes its worker. A run that waits for a
/// webhook is taken over from a worker that has died: it may have done so before it looked for mail that came early.
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
            let_go(shared, &state).await?;
            return Err(NoClaim::Idle);
        }
        let grip = runner.in_hand.grip(&shared.run);
        if runner.in_hand.is_leaving() {
            return Err(NoClaim::Stopped(Stop::Leaves));
        }
        let held = |by| if idle { NoClaim::Idle } else { NoClaim::Claimed { by } };
        let Some(grip) = grip else {
            return Err(held(runner.owner().await?.name().to_owned()));
        };
        if let Some(by) = other_worker(runner, &state).await? {
            return Err(held(by));
        }
        let (epoch, owner) = (epoch_after(&state), runner.owner().await?.name().to_owned());
        let mut new_events = vec![NewEvent::new(Path::root(), EventKind::RunClaimed { owner, trace: None })];
        let migrated =
            state.root.as_ref().map(|root| migration(root, definition)).transpose().map_err(Stop::Changed)?;
        new_events.extend(migrated.flatten().map(|kind| NewEvent::new(Path::root(), kind)));
        let events = stamp(new_events, state.next, shared.now().max(state.at), Some(epoch));
        let after = follow(&state, &events)?;
        let Some(worker) = restored(shared, &after, definition, epoch, grip).await? else { continue };
        let row = shared.summary().clone();
        let append = append_of(
            &shared.run,
            &state,
            &after,
            Some(&row),
            &events,
            Extras { epoch: Some(epoch), ..Extras::default() },
        );
        let summary = append.index.summary.clone();
        match runner.store.append(&shared.run, append).await {
            Ok(()) => {
                shared.take_over(after, summary, &events);
                return Ok(worker);
            }
            Err(StoreError::Conflict { .. }) => {
                // Somebody else was first: what is to be done has to be decided again.
                shared.catch_up().await?;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Makes the worker of a run, for which plugins may wait for others as long as they like. It is given up where the runner
/// lets go of its runs, and answers `None` where somebody has appended to the run: what is to be done has to be decided again.
async fn restored(
    shared: &Arc<Shared>,
    after: &RunState,
    definition: &Arc<BrainDefinition>,
    epoch: Epoch,
    grip: RunGuard,
) -> Result<Option<Box<Worker>>, Stop> {
    let mut worker = pin!(Worker::restored(shared, after, definition, epoch, grip));
    loop {
        tokio::select! {
            biased;
            worker = &mut worker => return worker.map(Some),
            () = shared.runner.in_hand.left() => return Err(Stop::Leaves),
            () = shared.bell.notified() => {
                if !shared.catch_up().await?.is_empty() {
                    return Ok(None);
                }
            }
        }
    }
}

/// Releases a run in which there is nothing to do from a worker of this runner that could not do so itself.
async fn let_go(shared: &Shared, state: &RunState) -> Result<(), Stop> {
    let runner = &shared.runner;
    let Some(Claim { epoch, owner, released: false }) = &state.claim else { return Ok(()) };
    if state.has_ended() || runner.owner().await?.name() != &**owner {
        return Ok(());
    }
    let Some(_grip) = runner.in_hand.grip(&shared.run) else { return Ok(()) };
    let released = EventKind::RunReleased { reason: "nothing to do".to_owned() };
    append_alone(shared, *epoch, released).await
}

/// Appends an event of an attachment that has no worker; whoever was first with another one gets the next try.
pub(super) async fn append_alone(shared: &Shared, epoch: Epoch, kind: EventKind) -> Result<(), Stop> {
    let before = shared.state().clone();
    let at = shared.now().max(before.at);
    let events = stamp(vec![NewEvent::new(Path::root(), kind)], before.next, at, Some(epoch));
    let after = follow(&before, &events)?;
    let row = shared.summary().clone();
    let extras = Extras { epoch: Some(epoch), ..Extras::default() };
    let append = append_of(&shared.run, &before, &after, Some(&row), &events, extras);
    let summary = append.index.summary.clone();
    match shared.runner.store.append(&shared.run, append).await {
        Ok(()) => shared.take_over(after, summary, &events),
        Err(StoreError::Conflict { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

pub(super) fn epoch_after(state: &RunState) -> Epoch {
    // After the last epoch the same comes again, and the claim is refused.
    Epoch(state.claim.as_ref().map_or(0, |claim| claim.epoch.0).saturating_add(1))
}

/// Returns the name of the worker of another runner that has the run in hand. One of this runner has not: then its
/// grip would be there.
async fn other_worker(runner: &Runner, state: &RunState) -> Result<Option<String>, StoreError> {
    let own = runner.owner().await?.name();
    let worker = worker_of(&*runner.store, state.claim.as_ref()).await?;
    Ok(worker.filter(|worker| *worker != own).map(str::to_owned))
}

/// Returns the worker that has a run in hand by its last claim, if it is alive.
pub(super) async fn worker_of<'a>(
    store: &dyn EventStore,
    claim: Option<&'a Claim>,
) -> Result<Option<&'a str>, StoreError> {
    let Some(Claim { owner, released: false, .. }) = claim else { return Ok(None) };
    Ok(store.is_lease_live(owner).await?.then_some(&**owner))
}
