//! Which runs of a store have work, for whoever serves it.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::setbacks::Setbacks;
use super::{Control, Runner};
use crate::record::{RunId, RunSummary, Seq};
use crate::store::{RunFilter, StoreError, Watcher};

/// How often it is looked whether something is due, or a worker of another process has died.
const LOOK: Duration = Duration::from_secs(1);

/// Finds the runs in which there is work: those that somebody appends to at once, and all others once a second.
///
/// ```no_run
/// # use positronic_core::runner::Control;
/// # async fn example(control: Control) -> Result<(), positronic_core::store::StoreError> {
/// let mut due = control.due();
/// loop {
///     due.wait().await;
///     for row in due.rows(|_| false).await? {
///         println!("{} has work", row.run);
///     }
/// }
/// # }
/// ```
pub struct Due {
    control: Control,
    /// The runner that takes up what is found; it knows its own workers.
    runner: Option<Runner>,
    setbacks: Setbacks,
    rung: Arc<Rung>,
    /// When all runs are listed again.
    list: Instant,
    /// Where a run was refused, as of which event.
    refused: HashMap<RunId, Seq>,
}

/// The runs that somebody has appended to.
#[derive(Default)]
struct Rung {
    runs: Mutex<BTreeSet<RunId>>,
    bell: Notify,
}

impl Rung {
    fn take(&self) -> BTreeSet<RunId> {
        std::mem::take(&mut self.runs.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Watcher for Rung {
    fn appended(&self, run: &RunId, _: Seq) {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).insert(run.clone());
        self.bell.notify_one();
    }
}

impl Control {
    /// Begins to look for runs in which there is work.
    #[must_use]
    pub fn due(&self) -> Due {
        Due::new(self.clone(), None, Setbacks::default())
    }
}

impl Runner {
    /// Begins to look for runs in which there is work for this runner, whose workers say themselves when one rests.
    pub(super) fn due(&self) -> Due {
        Due::new(self.control(), Some(self.clone()), self.setbacks.clone())
    }
}

impl Due {
    fn new(control: Control, runner: Option<Runner>, setbacks: Setbacks) -> Self {
        let rung = Arc::new(Rung::default());
        let watcher: Arc<dyn Watcher> = Arc::clone(&rung) as Arc<dyn Watcher>;
        control.store().watch(None, Arc::downgrade(&watcher) as Weak<dyn Watcher>);
        Self { control, runner, setbacks, rung, list: Instant::now(), refused: HashMap::new() }
    }

    /// Waits until it is worth while to look. It may be given up at any time, and loses nothing.
    pub async fn wait(&self) {
        tokio::select! {
            () = self.rung.bell.notified() => {}
            () = tokio::time::sleep_until(self.list) => {}
        }
    }

    /// Returns the runs in which there may be work, without those that are `busy`, those that were refused and have not
    /// changed since, and those that rest. Another worker may have them in hand, but not those that only wait: where a
    /// worker has died right after the wait began, it may not have looked for mail that came early.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the store fails; what was missed is found within a second.
    pub async fn rows(&mut self, busy: impl Fn(&RunId) -> bool) -> Result<Vec<RunSummary>, StoreError> {
        let (store, filter) = (self.control.store(), RunFilter::builder().due(self.control.now()).build());
        let rung = self.rung.take();
        let mut rows = Vec::new();
        if Instant::now() >= self.list {
            self.list = Instant::now() + LOOK;
            rows = store.runs(&filter).await?;
            let listed: HashSet<_> = rows.iter().map(|row| &row.run).collect();
            self.refused.retain(|run, _| listed.contains(run));
        } else {
            for run in rung.iter().filter(|run| !busy(run)) {
                match store.run(run).await {
                    Ok(row) => rows.extend(Some(row).filter(|row| filter.passes(row))),
                    Err(StoreError::NoSuchRun { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        rows.retain(|row| !busy(&row.run) && self.refused.get(&row.run) != Some(&row.next));
        let mut due = Vec::with_capacity(rows.len());
        for row in rows {
            // A worker that is alive looks for its mail itself.
            if !self.rests(&row).await && (!row.mail || self.is_left(&row).await?) {
                due.push(row);
            }
        }
        Ok(due)
    }

    /// Says whether a run rests after a failure, and nothing was sent to it since.
    async fn rests(&self, row: &RunSummary) -> bool {
        let Some(rest) = self.setbacks.rest(&row.run) else { return false };
        let events = self.control.store().read(&row.run, rest.since, usize::MAX).await.unwrap_or_default();
        !self.setbacks.hear(&row.run, &events)
    }

    /// Says whether no worker has a run in hand.
    async fn is_left(&self, row: &RunSummary) -> Result<bool, StoreError> {
        match &self.runner {
            Some(runner) => runner.is_free(row).await,
            None => Ok(self.control.worker(row).await?.is_none()),
        }
    }

    /// Looks at a run that was busy the next time; it has gone on, so nothing counts at which it failed before.
    pub fn again(&self, run: &RunId) {
        self.setbacks.clear(run);
        self.rung.appended(run, Seq(0));
    }

    /// Leaves a run out until something has changed in it.
    pub fn refuse(&mut self, row: &RunSummary) {
        self.refused.insert(row.run.clone(), row.next);
    }

    /// Leaves a run out until somebody sends it something, or for a while, since what has failed may go well then: for a
    /// second, and for twice as long each time it fails again, up to five minutes.
    pub fn postpone(&self, row: &RunSummary) {
        self.rest(row, "the run rests after a failure".to_owned());
    }

    pub(super) fn rest(&self, row: &RunSummary, reason: String) {
        self.setbacks.add(&row.run, row.next, reason);
    }
}

impl fmt::Debug for Due {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Due").field("refused", &self.refused).finish_non_exhaustive()
    }
}
