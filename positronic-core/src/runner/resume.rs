//! Opening and resuming of runs.

use std::fmt;
use std::sync::Arc;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream;
use serde_json::Value;

use super::serve::load_permits::LoadPermit;
use super::serve::run_task::attend;
use super::serve::runs_without_handle::WithoutHandle;
use super::start::start_run;
use super::worker::append::worker_of;
use super::worker::claim::{NoClaim, claim};
use super::worker::code_difference::{migration, version_difference};
use super::worker::load;
use super::worker::shared::{Folded, Shared};
use super::worker::stop_reason::ResumeError;
use super::{RunHandle, Runner};
use crate::definition::BrainDefinition;
use crate::error::panicked;
use crate::machine::{RunState, has_limit_of_money};
use crate::record::{RunId, RunSummary};
use crate::store::StoreError;

/// How many child runs of a run are loaded at once.
const CHILDREN_AT_ONCE: usize = 8;

/// Opens a run without a claim.
pub(super) async fn open(runner: &Runner, run: &RunId) -> Result<RunHandle<Value>, StoreError> {
    let folded = load::whole(&*runner.store, run, &runner.state.histories).await?;
    Ok(attended(runner, run.clone(), None, folded))
}

/// Returns a handle of a run, with a task that attends to it.
pub(super) fn attended(
    runner: &Runner,
    run: RunId,
    definition: Option<Arc<BrainDefinition>>,
    folded: Folded,
) -> RunHandle<Value> {
    let next = folded.state.next;
    let shared = Shared::new((runner.clone(), start_run), run, definition, runner.settings.driven, folded);
    shared.feed(next);
    tokio::spawn(attend(Arc::clone(&shared), None));
    RunHandle::new(shared)
}

/// Claims a run, and works on it from then on. The permit is released after the load; without a definition, the runner's is used.
pub(super) async fn resume(
    runner: &Runner,
    run: &RunId,
    permit: Option<LoadPermit>,
    definition: Option<Arc<BrainDefinition>>,
) -> Result<RunHandle<Value>, ResumeError> {
    let (own, run) = (runner.clone(), run.clone());
    let resumed = async move { resume_here(&own, &run, permit, definition).await };
    let resumed = apart(resumed).await;
    resumed.unwrap_or_else(|panic| Err(ResumeError::Panicked { reason: panicked(&*panic).to_string() }))
}

async fn resume_here(
    runner: &Runner,
    run: &RunId,
    permit: Option<LoadPermit>,
    definition: Option<Arc<BrainDefinition>>,
) -> Result<RunHandle<Value>, ResumeError> {
    // The row names the worker that has claimed the run, so the log of a claimed run is not loaded.
    let row = runner.store.run(run).await?;
    if row.has_work(runner.clock.now())
        && let Some(by) = claimed_by(runner, &row).await?
    {
        return Err(ResumeError::Claimed { by });
    }
    if row.status.is_over() {
        return Err(ResumeError::Over { run: run.clone() });
    }
    let title = Arc::clone(&row.brain);
    let Some(definition) = definition.or_else(|| runner.definition_of(&title)) else {
        return Err(ResumeError::NoBrain { brain: title.to_string() });
    };
    if let Some(difference) = version_difference(&title, row.version, &definition) {
        return Err(ResumeError::Changed { difference });
    }
    let folded = load::whole(&*runner.store, run, &runner.state.histories).await?;
    drop(permit);
    if folded.state.has_ended() {
        return Err(ResumeError::Over { run: run.clone() });
    }
    if let Some(root) = &folded.state.root {
        migration(root, &definition, runner.settings.max_document_bytes)
            .map_err(|difference| ResumeError::Changed { difference })?;
    }
    can_pay(runner, &folded.state)?;
    runner.state.backoffs.end(run);
    let next = folded.state.next;
    let shared =
        Shared::new((runner.clone(), start_run), run.clone(), Some(definition), runner.settings.driven, folded);
    let begun = match claim(&shared).await {
        Ok(worker) => Some(worker),
        Err(NoClaim::Idle | NoClaim::NoCode) => None,
        Err(NoClaim::Claimed { by }) => return Err(ResumeError::Claimed { by }),
        Err(NoClaim::Quarantined { crashes }) => return Err(ResumeError::Quarantined { crashes }),
        Err(NoClaim::Stopped(stop)) => return Err(stop),
    };
    // Only after the claim: the sinks here do not get the events of another worker's run.
    shared.feed(next);
    tokio::spawn(attend(Arc::clone(&shared), begun));
    Ok(RunHandle::new(shared))
}

/// Attends to the child runs of a run, beside it.
pub(super) fn attend_children(runner: &Runner, of: &RunHandle<Value>) {
    if !of.shared().state().children.is_empty() {
        tokio::spawn(resume_children(runner.clone(), of.clone()));
    }
}

/// Resumes the child runs of a run that have not ended, and theirs, as far as the runner knows their brains. One that cannot be claimed
/// now is watched until it can be; one that the code does not fit is logged.
fn resume_children(runner: Runner, of: RunHandle<Value>) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let children = Arc::clone(&of.shared().state().children);
        let resumed = stream::iter(children.keys()).for_each_concurrent(CHILDREN_AT_ONCE, async |child| {
            match runner.resume(child).await {
                Ok(_) | Err(ResumeError::Over { .. } | ResumeError::Leaves) => {}
                Err(ResumeError::Claimed { .. } | ResumeError::Quarantined { .. } | ResumeError::Store(_)) => {
                    watch(&runner, child).await;
                }
                Err(error) => tracing::warn!(run = %of.id(), %child, %error, "cannot resume the child run"),
            }
        });
        resumed.await;
    })
}

/// Continues a run when it can be claimed.
async fn watch(runner: &Runner, run: &RunId) {
    match runner.store.run(run).await {
        Ok(row) => {
            if let Some(definition) = runner.definition_of(&row.brain) {
                WithoutHandle::of(runner, run, definition).keep();
            }
        }
        Err(error) => tracing::warn!(%run, %error, "cannot read the run"),
    }
}

/// Refuses a run with a limit of money that this runner's prices cannot enforce.
fn can_pay(runner: &Runner, state: &RunState) -> Result<(), ResumeError> {
    let counted = state.currency.as_deref();
    let own = runner.models.prices.as_ref().map(|prices| prices.currency.as_str());
    let fits = own.is_some_and(|own| counted.is_none_or(|counted| counted == own));
    if fits || !has_limit_of_money(state) {
        return Ok(());
    }
    let what = match (own, counted) {
        (Some(own), Some(counted)) => format!("it counts in {counted}, and this runner's prices are in {own}"),
        _ => "this runner has no prices".to_owned(),
    };
    Err(ResumeError::Prices { what })
}

/// Returns the live worker that has claimed a run, from its row.
async fn claimed_by(runner: &Runner, row: &RunSummary) -> Result<Option<String>, StoreError> {
    let worker = worker_of(&*runner.store, row.claim.as_ref()).await?.map(str::to_owned);
    let own = runner.lease().await?;
    // A worker of this runner that is not registered has left the run without releasing it.
    Ok(worker.filter(|worker| worker != own.owner() || runner.state.registry.has(&row.run)))
}

/// Runs work to its end even if the caller is dropped: a claimed run must have a task. Returns the panic, if there
/// was one.
pub(super) async fn apart<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, Box<dyn std::any::Any + Send>> {
    match tokio::spawn(work).await {
        Ok(done) => Ok(done),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => Err(panic),
            // The runtime is shutting down.
            Err(_) => std::future::pending().await,
        },
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Shared").field(&self.run).finish()
    }
}
