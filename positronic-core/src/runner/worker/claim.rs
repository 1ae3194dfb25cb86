//! Claims of runs: which worker may claim one, what it records, and when it restores the run.

use std::sync::Arc;

use super::append::{Extras, Stamp, follow, stamp, worker_of};
use super::code_difference::migration;
use super::early_webhooks::take_early_webhooks;
use super::lease::HeldLease;
use super::leave_run::{give_up, release};
use super::restore::restore;
use super::shared::Shared;
use super::stop_reason::ResumeError;
use super::worker::Worker;
use crate::definition::BrainDefinition;
use crate::machine::{RunState, parked};
use crate::record::{Claim, ClaimRefusal, Epoch, EventKind, NewEvent, Path};
use crate::runner::Runner;
use crate::runner::serve::quarantine::crashes_of;
use crate::store::StoreError;

/// The reason why a run is not claimed.
pub(in crate::runner) enum NoClaim {
    /// It has no work.
    Idle,
    /// Another worker has claimed it.
    Claimed { by: String },
    /// The process ended so often during its work that other runs come first.
    Quarantined { crashes: u32 },
    /// The runner does not know the brain's code.
    NoCode,
    /// The claim failed.
    Stopped(ResumeError),
}

impl<E: Into<ResumeError>> From<E> for NoClaim {
    fn from(error: E) -> Self {
        Self::Stopped(error.into())
    }
}

/// Claims a run with work and restores its worker. The claim is recorded first, except after a refusal, since the restore calls the
/// author's code. A run that waits for a webhook is claimed from a dead worker, too,
/// which may have died before it read the mailbox.
pub(in crate::runner) async fn claim(shared: &Arc<Shared>) -> Result<Box<Worker>, NoClaim> {
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
        let guard = runner.state.registry.guard(&shared.run);
        if runner.state.registry.is_leaving() {
            return Err(NoClaim::Stopped(ResumeError::Leaves));
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
        let migrated = state
            .root
            .as_ref()
            .map(|root| migration(root, definition, runner.settings.max_document_bytes))
            .transpose()
            .map_err(|difference| ResumeError::Changed { difference })?;
        new_events.extend(migrated.flatten().map(|kind| NewEvent::new(Path::root(), kind)));
        let at = Stamp::of_worker(shared.now(), state.at);
        let mut events = stamp(new_events, state.next, at, Some(epoch));
        let mut after = follow(&state, &events)?;
        let parked = parked(&after, shared.now().max(after.at));
        let is_parked = parked.is_some();
        let mut worker = Worker::new(shared, (epoch, lease), guard);
        if let Some(parked) = parked {
            let released = EventKind::RunReleased { reason: "the run is parked".to_owned() };
            let last = stamp(vec![parked, NewEvent::new(Path::root(), released)], after.next, at, Some(epoch));
            after = follow(&after, &last)?;
            events.extend(last);
        } else {
            let crashes = crashes_of(&after);
            let Ok(permit) = runner.state.quarantine.enter(&shared.run, crashes) else {
                return Err(NoClaim::Quarantined { crashes });
            };
            worker.quarantined = permit;
        }
        // Of several workers whose code does not fit, only the first one lets the log grow.
        let was_refused = state.refused.as_ref().is_some_and(|refused| refused.reason == ClaimRefusal::Changed);
        if was_refused && !is_parked && !restore(&mut worker, &after, definition).await? {
            continue;
        }
        let extras = Extras { epoch: Some(epoch), sinks: runner.durable_sinks(), ..Extras::default() };
        if !shared.append(&state, after.clone(), &events, extras).await? {
            // Another writer was first: decide again.
            shared.catch_up().await?;
            continue;
        }
        worker.state = after;
        if is_parked {
            return Err(NoClaim::Idle);
        }
        return restored(worker, definition, was_refused).await;
    }
}

/// Restores the worker of a run that it has claimed, so that the process never ends in the author's code without a trace in the
/// log. The mailbox comes first: a worker that fails releases the run only if no webhook for it is left there.
async fn restored(
    mut worker: Box<Worker>,
    definition: &Arc<BrainDefinition>,
    is_restored: bool,
) -> Result<Box<Worker>, NoClaim> {
    let shared = Arc::clone(&worker.shared);
    let restored = async {
        take_early_webhooks(&mut worker).await?;
        let state = worker.state.clone();
        let has_work = !state.has_ended() && shared.summary().has_work(shared.now());
        Ok::<_, ResumeError>(has_work && (is_restored || restore(&mut worker, &state, definition).await?))
    };
    match restored.await {
        Ok(true) => Ok(worker),
        Ok(false) => {
            while !worker.state.has_ended() && !release(&mut worker, "nothing to do".to_owned()).await? {}
            Err(NoClaim::Idle)
        }
        Err(stop @ (ResumeError::Claimed { .. } | ResumeError::LeaseLost { .. })) => Err(NoClaim::Stopped(stop)),
        Err(stop) => {
            give_up(&mut worker, &stop).await;
            Err(NoClaim::Stopped(stop))
        }
    }
}

/// Releases an idle run that is still claimed by this runner, whose worker could not release it.
async fn release_idle(shared: &Shared, state: &RunState) -> Result<(), ResumeError> {
    let runner = &shared.runner;
    let Some(Claim { epoch, owner, released: false }) = &state.claim else { return Ok(()) };
    if state.has_ended() || runner.lease().await?.owner() != &**owner {
        return Ok(());
    }
    let Some(_guard) = runner.state.registry.guard(&shared.run) else { return Ok(()) };
    let released = EventKind::RunReleased { reason: "nothing to do".to_owned() };
    append_alone(shared, *epoch, released).await
}

/// Appends an event without a worker. On a conflict, the next attempt decides again.
pub(in crate::runner) async fn append_alone(shared: &Shared, epoch: Epoch, kind: EventKind) -> Result<(), ResumeError> {
    let before = shared.state().clone();
    let at = Stamp::of_worker(shared.now(), before.at);
    let events = stamp(vec![NewEvent::new(Path::root(), kind)], before.next, at, Some(epoch));
    let after = follow(&before, &events)?;
    shared.append(&before, after, &events, Extras { epoch: Some(epoch), ..Extras::default() }).await?;
    Ok(())
}

pub(in crate::runner) fn epoch_after(state: &RunState) -> Epoch {
    // After the last epoch the number repeats, and the claim is refused.
    Epoch(state.claim.as_ref().map_or(0, |claim| claim.epoch.0).saturating_add(1))
}

/// Returns the name of another runner's worker that has claimed the run. This runner's own workers are in the
/// registry.
async fn other_worker(runner: &Runner, own: &HeldLease, state: &RunState) -> Result<Option<String>, StoreError> {
    let worker = worker_of(&*runner.store, state.claim.as_ref()).await?;
    Ok(worker.filter(|worker| *worker != own.owner()).map(str::to_owned))
}
