//! Which runs of a store have work, for whoever serves it.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::Control;
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
        let rung = Arc::new(Rung::default());
        let watcher: Arc<dyn Watcher> = Arc::clone(&rung) as Arc<dyn Watcher>;
        self.store().watch(None, Arc::downgrade(&watcher) as Weak<dyn Watcher>);
        Due { control: self.clone(), rung, list: Instant::now(), refused: HashMap::new() }
    }
}

impl Due {
    /// Waits until it is worth while to look. It may be given up at any time, and loses nothing.
    pub async fn wait(&self) {
        tokio::select! {
            () = self.rung.bell.notified() => {}
            () = tokio::time::sleep_until(self.list) => {}
        }
    }

    /// Returns the runs in which there may be work, without those that are `busy` and those that were refused and have
    /// not changed since. Another worker may have them in hand.
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
        Ok(rows)
    }

    /// Looks at a run that was busy the next time.
    pub fn again(&self, run: &RunId) {
        self.rung.appended(run, Seq(0));
    }

    /// Leaves a run out until something has changed in it.
    pub fn refuse(&mut self, row: &RunSummary) {
        self.refused.insert(row.run.clone(), row.next);
    }
}

impl fmt::Debug for Due {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Due").field("refused", &self.refused).finish_non_exhaustive()
    }
}
