//! Runs whose handle was dropped before they ended.
//!
//! A runner continues the runs that it started or resumed without their handles. It keeps the id and the brain's code
//! of a waiting run, watches its log, and claims it again when there is work: an answer arrived, a time is up, or a
//! pause is over. This ends with the runner and its clones, which the task does not keep alive.
//!
//! ```text
//! attend ──handle dropped──▶ Runs ──an append, a time──▶ check the row ──work──▶ claim ──▶ attend
//! ```

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::backoffs::after_claims;
use crate::definition::BrainDefinition;
use crate::record::{RunId, Timestamp};
use crate::runner::clock::sleep_until;
use crate::runner::worker::lease::{LeaseKeeper, WeakKeeper};
use crate::runner::{Clock, ResumeError, Runner};
use crate::store::{GrownRuns, StoreError};

/// How long until another check of a run that another worker has claimed or whose row could not be read.
const POLL: Duration = Duration::from_secs(1);

/// The brains that a runner has started, by title. Clones share them.
#[derive(Clone, Default)]
pub(in crate::runner) struct Started(Arc<Mutex<HashMap<String, Arc<BrainDefinition>>>>);

impl Started {
    /// Adds a brain, replacing an earlier one with its title.
    pub(in crate::runner) fn insert(&self, definition: &Arc<BrainDefinition>) {
        let mut all = self.0.lock();
        if all.get(&definition.title).is_none_or(|known| !Arc::ptr_eq(known, definition)) {
            all.insert(definition.title.clone(), Arc::clone(definition));
        }
    }

    pub(in crate::runner) fn get(&self, title: &str) -> Option<Arc<BrainDefinition>> {
        self.0.lock().get(title).cloned()
    }
}

/// A runner's share of its unattended runs. Clones share it; when the last one is dropped, the runs are left to other
/// workers.
#[derive(Clone)]
pub(in crate::runner) struct Unattended {
    runs: Arc<Runs>,
    /// `None` in the task itself, and in the runs that it continues without handles.
    _owner: Option<Arc<Owner>>,
}

impl Unattended {
    /// Creates the share of a new runner.
    pub(in crate::runner) fn new() -> Self {
        let runs = Arc::<Runs>::default();
        Self { _owner: Some(Arc::new(Owner(Arc::clone(&runs)))), runs }
    }

    /// Creates a share that does not keep a runner alive.
    fn weak(&self) -> Self {
        Self { runs: Arc::clone(&self.runs), _owner: None }
    }
}

struct Owner(Arc<Runs>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.closed.store(true, Ordering::Release);
        self.0.known.lock().clear();
        self.0.bell.notify_one();
    }
}

#[derive(Default)]
struct Runs {
    known: Mutex<HashMap<RunId, UnattendedRun>>,
    /// The runs whose logs have grown; set when the task begins.
    grown: OnceLock<Arc<GrownRuns>>,
    /// Notified when a run is added or the runner is gone.
    bell: Notify,
    closed: AtomicBool,
}

/// An unattended run.
#[derive(Clone)]
struct UnattendedRun {
    runner: Arc<WithoutLease>,
    definition: Arc<BrainDefinition>,
    check: Check,
}

/// When a run is checked.
#[derive(Clone, Copy, PartialEq)]
enum Check {
    /// At once.
    Now,
    /// At this time, or when its log grows.
    At(Option<Timestamp>),
    /// It is being checked, and its log may have grown since.
    Begun { grown: bool },
}

impl Runs {
    /// Returns the runs to check now, and the time of the next one.
    fn ready(&self, now: Timestamp) -> (Vec<(RunId, UnattendedRun)>, Option<Timestamp>) {
        let mut known = self.known.lock();
        for run in self.grown.get().map(|grown| grown.take()).unwrap_or_default() {
            if let Some(known) = known.get_mut(&run) {
                let is_begun = matches!(known.check, Check::Begun { .. });
                known.check = if is_begun { Check::Begun { grown: true } } else { Check::Now };
            }
        }
        let (mut ready, mut next) = (Vec::new(), None);
        for (run, known) in known.iter_mut() {
            match known.check {
                Check::Now => {}
                Check::At(Some(wake)) if wake <= now => {}
                Check::At(Some(wake)) => {
                    next = Some(next.map_or(wake, |next: Timestamp| next.min(wake)));
                    continue;
                }
                Check::At(None) | Check::Begun { .. } => continue,
            }
            known.check = Check::Begun { grown: false };
            ready.push((run.clone(), known.clone()));
        }
        (ready, next)
    }

    /// Adds a run, unless its runner is gone.
    fn add(&self, run: RunId, known: UnattendedRun) {
        let mut all = self.known.lock();
        if !self.closed.load(Ordering::Acquire) {
            all.insert(run, known);
        }
        drop(all);
        self.bell.notify_one();
    }

    /// Returns whether a run is unattended.
    fn has(&self, run: &RunId) -> bool {
        self.known.lock().contains_key(run)
    }

    /// Notes the outcome of a check, unless the run was added again meanwhile.
    fn checked(&self, run: &RunId, runner: &Arc<WithoutLease>, checked: &Checked) {
        let mut all = self.known.lock();
        let Some(known) = all.get_mut(run).filter(|known| Arc::ptr_eq(&known.runner, runner)) else { return };
        match checked {
            Checked::Gone => _ = all.remove(run),
            Checked::Waits(_) if known.check == Check::Begun { grown: true } => known.check = Check::Now,
            Checked::Waits(wake) => known.check = Check::At(*wake),
        }
    }
}

/// A runner that holds no lease: other workers may claim its runs as soon as the runner itself is gone.
struct WithoutLease {
    runner: Runner,
    lease: WeakKeeper,
}

impl WithoutLease {
    fn of(runner: &Runner) -> Self {
        let lease = runner.lease.downgrade();
        let runner = Runner { unattended: runner.unattended.weak(), lease: LeaseKeeper::default(), ..runner.clone() };
        Self { runner, lease }
    }

    fn wake(&self) -> Option<Runner> {
        Some(Runner { lease: self.lease.upgrade()?, ..self.runner.clone() })
    }
}

/// The parts of a run that remain after its last handle.
pub(super) struct WithoutHandle {
    runner: WithoutLease,
    run: RunId,
    definition: Arc<BrainDefinition>,
}

impl WithoutHandle {
    /// Returns the parts of a run that a runner continues by itself.
    pub(super) fn of(runner: &Runner, run: &RunId, definition: Arc<BrainDefinition>) -> Self {
        Self { runner: WithoutLease::of(runner), run: run.clone(), definition }
    }

    /// Adds the run and checks it at once: an answer may have just arrived.
    pub(super) fn keep(self) {
        let Self { runner, run, definition } = self;
        let Runner { unattended, store, clock, .. } = &runner.runner;
        let (runs, clock, store) = (Arc::clone(&unattended.runs), Arc::clone(clock), Arc::clone(store));
        let mut begins = false;
        let grown = runs.grown.get_or_init(|| {
            begins = true;
            let runs = Arc::downgrade(&runs);
            GrownRuns::except(&*store, move |run| runs.upgrade().is_none_or(|runs| !runs.has(run)))
        });
        let grown = Arc::clone(grown);
        runs.add(run, UnattendedRun { runner: Arc::new(runner), definition, check: Check::Now });
        if begins {
            tokio::spawn(work(runs, grown, clock));
        }
    }
}

/// Continues unattended runs until their runner is gone.
async fn work(runs: Arc<Runs>, grown: Arc<GrownRuns>, clock: Arc<dyn Clock>) {
    let mut checks = FuturesUnordered::new();
    while !runs.closed.load(Ordering::Acquire) {
        let (ready, wake) = runs.ready(clock.now());
        checks.extend(ready.into_iter().map(|(run, known)| check(&runs, run, known)));
        tokio::select! {
            Some(()) = checks.next() => {}
            () = runs.bell.notified() => {}
            () = grown.wait() => {}
            () = sleep_until(&*clock, wake) => {}
        }
    }
}

/// Checks a run, and continues it if it has unclaimed work.
async fn check(runs: &Runs, run: RunId, known: UnattendedRun) {
    let UnattendedRun { runner, definition, .. } = known;
    let now = runner.runner.clock.now();
    let checked = continued(&runner, &run, &definition, now).await.unwrap_or_else(|error| {
        tracing::warn!(%run, %error, "cannot read the run");
        Checked::Waits(Some(now.after(POLL)))
    });
    runs.checked(&run, &runner, &checked);
}

enum Checked {
    /// It has ended, or another task attends to it.
    Gone,
    /// It has no work before this time without an append.
    Waits(Option<Timestamp>),
}

async fn continued(
    without_lease: &WithoutLease,
    run: &RunId,
    definition: &Arc<BrainDefinition>,
    now: Timestamp,
) -> Result<Checked, StoreError> {
    let runner = &without_lease.runner;
    let row = match runner.store.run(run).await {
        Ok(row) => row,
        Err(StoreError::NoSuchRun { .. }) => return Ok(Checked::Gone),
        Err(error) => return Err(error),
    };
    if row.status.is_over() || runner.state.registry.is_leaving() || runner.state.registry.has(run) {
        return Ok(Checked::Gone);
    }
    if !row.has_work(now) {
        return Ok(Checked::Waits(row.wake));
    }
    if let Some(rest) = runner.state.backoffs.rest(run)
        && !runner.state.backoffs.records_signal(run, &runner.store.read(run, rest.since, usize::MAX).await?)
    {
        return Ok(Checked::Waits(Some(now.after(rest.left))));
    }
    // Only now is the runner revived: a check must not make a dropped runner count as live.
    let Some(runner) = without_lease.wake() else { return Ok(Checked::Gone) };
    Ok(match runner.resume_with(run, None, Some(Arc::clone(definition))).await {
        Ok(_) | Err(ResumeError::Over { .. } | ResumeError::Leaves) => Checked::Gone,
        Err(ResumeError::Claimed { .. } | ResumeError::Quarantined { .. }) => Checked::Waits(Some(now.after(POLL))),
        Err(error) => {
            tracing::warn!(%run, %error, "cannot resume the run");
            let next = after_claims(&*runner.store, &row).await;
            runner.state.backoffs.record(&*runner.store, run, next, Some(error)).await;
            let rest = runner.state.backoffs.rest(run).map_or(POLL, |rest| rest.left);
            Checked::Waits(Some(now.after(rest)))
        }
    })
}
