//! Taking a run over: who may, and what has to be found again first.

use std::sync::Arc;

use super::Runner;
use super::commit::{Extras, append_of, follow, stamp};
use super::hand::LEAVES;
use super::restore::migration;
use super::shared::{Shared, Stop};
use super::worker::Worker;
use crate::machine::RunState;
use crate::record::{Body, Claim, Draft, Epoch, Path};
use crate::store::{EventStore, StoreError};

/// Why a run is not taken over.
pub(super) enum NoClaim {
    /// There is nothing to do in it.
    Idle,
    /// Another worker has it.
    Held { by: String },
    /// The brain's code is not known here.
    NoCode,
    /// The brain's code is another one than the run's.
    Changed(String),
    /// The store failed, or the log cannot be folded.
    Stopped(Stop),
}

impl<E: Into<Stop>> From<E> for NoClaim {
    fn from(error: E) -> Self {
        Self::Stopped(error.into())
    }
}

/// Takes a run over in which there is work that nobody does, and makes its worker.
pub(super) async fn claim(shared: &Arc<Shared>) -> Result<Box<Worker>, NoClaim> {
    let Some(plan) = &shared.plan else { return Err(NoClaim::NoCode) };
    let runner = &shared.runner;
    loop {
        let state = shared.state().clone();
        if !shared.summary().has_work(shared.now()) {
            return Err(NoClaim::Idle);
        }
        if runner.in_hand.is_leaving() {
            return Err(NoClaim::Stopped(Stop::Failed(LEAVES.to_owned())));
        }
        let Some(grip) = runner.in_hand.grip(&shared.run) else {
            return Err(NoClaim::Held { by: runner.holder().await?.name().to_owned() });
        };
        if let Some(by) = other_worker(runner, &state).await? {
            return Err(NoClaim::Held { by });
        }
        let (epoch, holder) = (epoch_after(&state), runner.holder().await?.name().to_owned());
        let mut drafts = vec![Draft::new(Path::root(), Body::RunClaimed { holder, trace: None })];
        let migrated = state.root.as_ref().map(|root| migration(root, plan)).transpose().map_err(NoClaim::Changed)?;
        drafts.extend(migrated.flatten().map(|body| Draft::new(Path::root(), body)));
        let events = stamp(drafts, state.next, shared.now().max(state.at), Some(epoch));
        let after = follow(&state, &events)?;
        let worker = Worker::restored(shared, &after, plan, epoch, grip).await.map_err(NoClaim::Changed)?;
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

pub(super) fn epoch_after(state: &RunState) -> Epoch {
    Epoch(state.claim.as_ref().map_or(0, |claim| claim.epoch.0) + 1)
}

/// Returns the name of the worker of another runner that has the run in hand. One of this runner has not: then its
/// grip would be there.
async fn other_worker(runner: &Runner, state: &RunState) -> Result<Option<String>, StoreError> {
    let own = runner.holder().await?.name();
    let worker = worker_of(&*runner.store, state.claim.as_ref()).await?;
    Ok(worker.filter(|worker| *worker != own).map(str::to_owned))
}

/// Returns the worker that has a run in hand by its last claim, if it is alive.
pub(super) async fn worker_of<'a>(
    store: &dyn EventStore,
    claim: Option<&'a Claim>,
) -> Result<Option<&'a str>, StoreError> {
    let Some(Claim { holder, released: false, .. }) = claim else { return Ok(None) };
    Ok(store.is_alive(holder).await?.then_some(&**holder))
}
