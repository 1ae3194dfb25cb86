//! The worker of a run: what it holds, its tasks in flight, and what it knows of the run.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;

use super::claimed_runs::RunGuard;
use super::draft::Draft;
use super::lease::HeldLease;
use super::loaded_code::Frames;
use super::lockstep::HeldReports;
use super::shared::Shared;
use super::stop_reason::ResumeError;
use crate::definition::{Scope, StateValue};
use crate::machine::{Effect, Outcome, RunState, SettleContext, is_due, settle};
use crate::record::{Epoch, NewEvent, Path};
use crate::runner::effects::link::RunLink;
use crate::runner::effects::report::{self, Report, Reports};
use crate::runner::serve::quarantine::QuarantinePermit;

/// Drives one run.
pub(in crate::runner) struct Worker {
    pub(in crate::runner) shared: Arc<Shared>,
    /// The state after the drafted events. Handles and readers see the one in `shared`, which is never ahead of the log.
    pub(in crate::runner) state: RunState,
    /// What the next append writes.
    pub(in crate::runner) draft: Draft,
    pub(super) epoch: Epoch,
    /// The lease of the claim.
    pub(super) lease: Arc<HeldLease>,
    pub(in crate::runner) frames: Frames,
    pub(in crate::runner) link: Arc<RunLink>,
    pub(super) reports: Reports,
    pub(in crate::runner) used_answers: BTreeMap<Path, HashSet<usize>>,
    /// What came of the checks of edited arguments, for calls whose brains have not begun.
    pub(in crate::runner) checked_edits: BTreeMap<Path, crate::Result<()>>,
    /// Effects whose intents are in the log and that the worker starts next.
    pub(in crate::runner) announced: Vec<Effect>,
    pub(super) flights: BTreeMap<Path, Flight>,
    /// The effects that have ended and whose outcomes are not appended yet.
    pub(in crate::runner) unrecorded: Vec<Path>,
    pub(super) incoming: mpsc::UnboundedReceiver<Box<Report>>,
    pub(super) held: HeldReports,
    /// Whether the runner releases its runs.
    pub(super) leaves: watch::Receiver<bool>,
    /// Until when work in flight may end after that.
    pub(super) leaves_at: Option<tokio::time::Instant>,
    /// Whether the mailbox may have unread webhooks for the run. A worker that stops then does not release the
    /// run, so that it counts as orphaned.
    pub(in crate::runner) mail_unread: bool,
    /// The permit to work on a suspect, until it makes progress or waits.
    pub(super) quarantined: Option<QuarantinePermit>,
    pub(super) guard: RunGuard,
}

/// A task that is in flight.
pub(super) struct Flight {
    pub(super) task: AbortHandle,
    /// Whether lockstep waits for it. A step waits for its question, so a question is settled at once.
    pub(super) awaited: bool,
}

impl Worker {
    /// Creates the worker of a run, without the code of its open frames.
    pub(in crate::runner) fn new(
        shared: &Arc<Shared>,
        (epoch, lease): (Epoch, Arc<HeldLease>),
        guard: RunGuard,
    ) -> Box<Self> {
        let (reports, incoming) = mpsc::unbounded_channel();
        Box::new(Self {
            state: shared.state().clone(),
            draft: Draft::default(),
            epoch,
            lease,
            frames: Frames::new(&shared.run, None, shared.runner.settings.max_document_bytes),
            link: Arc::new(RunLink::new(shared, reports.clone())),
            reports,
            used_answers: BTreeMap::new(),
            checked_edits: BTreeMap::new(),
            announced: Vec::new(),
            flights: BTreeMap::new(),
            unrecorded: Vec::new(),
            incoming,
            held: HeldReports::new(shared.runner.settings.lockstep),
            leaves: shared.runner.state.registry.leaves(),
            leaves_at: None,
            shared: Arc::clone(shared),
            mail_unread: false,
            quarantined: None,
            guard,
        })
    }

    pub(super) fn leaves(&self) -> bool {
        *self.leaves.borrow()
    }

    /// Sleeps before a retry, unless the lease is lost first.
    pub(super) async fn pause(&mut self, pause: Duration) -> Result<(), ResumeError> {
        self.until_lost(tokio::time::sleep(pause)).await
    }

    /// Runs work, and stops it when the lease is lost.
    pub(super) async fn until_lost<T>(&mut self, work: impl Future<Output = T>) -> Result<T, ResumeError> {
        let lease = Arc::clone(&self.lease);
        tokio::select! {
            biased;
            done = work => Ok(done),
            () = lease.lost() => Err(lost(&lease)),
        }
    }

    /// Returns whether an effect is in flight at a path.
    pub(in crate::runner) fn is_in_flight(&self, path: &Path) -> bool {
        self.flights.contains_key(path)
    }

    /// Runs work in a task, which reports its outcome. The work is boxed, since a task's future is moved several times.
    pub(in crate::runner) fn launch(
        &mut self,
        path: Path,
        awaited: bool,
        work: BoxFuture<'static, report::EffectOutcome>,
    ) {
        let reports = self.reports.clone();
        let at = path.clone();
        let task = tokio::spawn(async move {
            let outcome = work.await;
            // The worker is gone when the run was stopped.
            _ = reports.send(Box::new(Report::Done { path: at, outcome }));
        });
        self.flights.insert(path, Flight { task: task.abort_handle(), awaited });
    }

    /// Aborts the effect in flight at a path.
    pub(in crate::runner) fn drop_flight(&mut self, path: &Path) {
        if let Some(flight) = self.flights.remove(path) {
            flight.task.abort();
        }
        self.link.forget(path);
    }

    /// Returns the scope that the author's code at `path` gets.
    pub(in crate::runner) fn scope(&mut self, path: Path) -> Option<Scope> {
        let brain = self.state.owner(&path)?;
        Some(self.frames.scope(brain, path, &self.link))
    }

    /// Returns the events of an outcome whose duration the state knows.
    pub(in crate::runner) fn settled(&self, path: &Path, outcome: Outcome) -> Vec<NewEvent> {
        settle(&self.state, path, outcome, Duration::ZERO, &self.settle_context())
    }

    /// Returns whether the machine still asks for an effect.
    pub(in crate::runner) fn is_due(&self, effect: &Effect) -> bool {
        is_due(&self.state, effect, self.shared.now().max(self.state.at))
    }

    /// Returns the state of the brain around a stage.
    pub(in crate::runner) fn document(&mut self, path: &Path) -> Option<StateValue> {
        Some(self.frames.document(self.state.owner(path)?))
    }

    pub(in crate::runner) fn settle_context(&self) -> SettleContext {
        let runner = &self.shared.runner;
        SettleContext { now: self.shared.now(), jitter: runner.ids.jitter(), retry: runner.settings.retry }
    }
}

pub(super) fn lost(lease: &HeldLease) -> ResumeError {
    ResumeError::LeaseLost { owner: lease.owner().to_owned(), in_flight: Vec::new() }
}
