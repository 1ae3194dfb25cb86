//! Runs whose handle was dropped before they ended.
//!
//! A runner continues the runs that it started or resumed after their last handles were dropped. A task for each of them keeps its id and
//! its brain's code, watches its log, and claims it again when there is work: an answer arrived, a time is up, or a pause is
//! over. This ends with the runner and its clones, which the tasks do not keep alive.
//!
//! ```text
//! attend ──handle dropped──▶ wait ──an append, a time──▶ check the row ──work──▶ claim ──▶ attend
//! ```

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::backoffs::{POLL, after_claims};
use crate::definition::BrainDefinition;
use crate::record::{RunId, Seq, Timestamp};
use crate::runner::clock::sleep_until;
use crate::runner::worker::lease::{LeaseKeeper, WeakKeeper};
use crate::runner::{ResumeError, Runner};
use crate::store::{StoreError, Watcher};

/// A runner's share of its unattended runs. Clones share it; when the last one is dropped, the runs are left to other
/// workers.
#[derive(Clone)]
pub(in crate::runner) struct Unattended {
    /// Gone when the runner and its clones are.
    tasks: Weak<Tasks>,
    /// `None` in the tasks themselves, and in the runs that they continue.
    _owner: Option<Arc<Tasks>>,
}

impl Unattended {
    /// Creates the share of a new runner.
    pub(in crate::runner) fn new() -> Self {
        let tasks = Arc::new(Tasks::default());
        Self { tasks: Arc::downgrade(&tasks), _owner: Some(tasks) }
    }
}

/// The task of each unattended run.
#[derive(Default)]
struct Tasks(Mutex<HashMap<RunId, AbortHandle>>);

impl Tasks {
    /// Removes the current task, unless another one has replaced it.
    fn remove_current(&self, run: &RunId) {
        let mut tasks = self.0.lock();
        if tasks.get(run).is_some_and(|task| Some(task.id()) == tokio::task::try_id()) {
            tasks.remove(run);
        }
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        self.0.get_mut().values().for_each(AbortHandle::abort);
    }
}

/// The parts of a run that remain after its last handle.
pub(in crate::runner) struct WithoutHandle {
    /// It holds no lease and does not count as live: other workers may claim its runs as soon as the runner itself is gone.
    runner: Runner,
    lease: WeakKeeper,
    run: RunId,
    definition: Arc<BrainDefinition>,
}

impl WithoutHandle {
    /// Returns the parts of a run that a runner continues by itself.
    pub(in crate::runner) fn of(runner: &Runner, run: &RunId, definition: Arc<BrainDefinition>) -> Self {
        let unattended = Unattended { _owner: None, ..runner.unattended.clone() };
        let lease = runner.lease.downgrade();
        let runner = Runner { unattended, lease: LeaseKeeper::default(), ..runner.clone() };
        Self { runner, lease, run: run.clone(), definition }
    }

    /// Continues the run in a task of its own, unless its runner is gone. It replaces an earlier task of the run.
    pub(in crate::runner) fn keep(self) {
        let Some(shared) = self.runner.unattended.tasks.upgrade() else { return };
        let mut tasks = shared.0.lock();
        let run = self.run.clone();
        let task = tokio::spawn(self.wait()).abort_handle();
        if let Some(earlier) = tasks.insert(run, task) {
            earlier.abort();
        }
    }

    /// Waits for work and continues the run, or waits until it has ended or is attended to elsewhere.
    async fn wait(self) {
        let Runner { store, clock, unattended, .. } = &self.runner;
        let bell = Arc::new(Notify::new());
        store.watch(Some(&self.run), Arc::downgrade(&bell) as Weak<dyn Watcher>);
        // It is checked at once: an answer may have just arrived. Boxed, so that a waiting run takes little memory.
        while let Checked::Waits(wake) = Box::pin(self.check()).await {
            tokio::select! {
                () = bell.notified() => {}
                () = sleep_until(&**clock, wake) => {}
            }
        }
        if let Some(tasks) = unattended.tasks.upgrade() {
            tasks.remove_current(&self.run);
        }
    }

    /// Checks the run, and continues it if it has unclaimed work.
    async fn check(&self) -> Checked {
        let now = self.runner.clock.now();
        self.continued(now).await.unwrap_or_else(|error| {
            tracing::warn!(run = %self.run, %error, "cannot read the run");
            Checked::Waits(Some(now.after(POLL)))
        })
    }

    async fn continued(&self, now: Timestamp) -> Result<Checked, StoreError> {
        let (runner, run) = (&self.runner, &self.run);
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
        if let Some(left) = runner.state.backoffs.pause(&*runner.store, run).await? {
            return Ok(Checked::Waits(Some(now.after(left))));
        }
        // Only now is the runner revived: a check must not make a dropped runner count as live.
        let Some(lease) = self.lease.upgrade() else { return Ok(Checked::Gone) };
        let runner = Runner { lease, ..runner.clone() };
        Ok(match runner.resume_with(run, None, Some(Arc::clone(&self.definition))).await {
            Ok(_) | Err(ResumeError::Over { .. } | ResumeError::Leaves) => Checked::Gone,
            Err(ResumeError::Claimed { .. } | ResumeError::Quarantined { .. }) => Checked::Waits(Some(now.after(POLL))),
            Err(error) => {
                tracing::warn!(%run, %error, "cannot resume the run");
                let next = after_claims(&*runner.store, &row).await;
                let rest = runner.state.backoffs.record(&*runner.store, run, next, Some(error)).await;
                Checked::Waits(Some(now.after(rest.unwrap_or_default())))
            }
        })
    }
}

enum Checked {
    /// It has ended or was removed, another task attends to it, or the runner is gone or releases its runs.
    Gone,
    /// It has no work before this time without an append.
    Waits(Option<Timestamp>),
}

/// Wakes the task of a run when its log grows. An append during a check is not lost: the next wait ends at once.
impl Watcher for Notify {
    fn appended(&self, _: &RunId, _: Seq) {
        self.notify_one();
    }
}
