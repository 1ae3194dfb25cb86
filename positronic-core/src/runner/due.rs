//! Which runs of a store have work, for whoever serves it.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::Client;
use super::open::ResumeError;
use super::retry_backoff::RetryBackoffs;
use super::server::KnownRunners;
use crate::record::{Claim, ClaimRefusal, EventKind, RunId, RunSummary, Seq};
use crate::store::{RunFilter, StoreError, Watcher};

/// How often it is looked whether something is due, or a worker of another process has died.
const LOOK: Duration = Duration::from_secs(1);
/// How long other workers have to claim a run that cannot be claimed here, before its log says that none has.
const NOTED_AFTER: Duration = Duration::from_secs(10);

/// Finds the runs in which there is work: those that somebody appends to at once, and all others once a second.
pub(super) struct Due {
    client: Client,
    /// The runners of the server, which know their own workers.
    known: KnownRunners,
    backoffs: RetryBackoffs,
    rung: Arc<Rung>,
    /// When all runs are listed again.
    list: Instant,
    /// The runs that cannot be claimed here.
    refused: HashMap<RunId, Refused>,
}

/// A run that cannot be claimed here.
struct Refused {
    /// The number of its next event when that was found.
    next: Seq,
    since: Instant,
    reason: ClaimRefusal,
    message: String,
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

impl Due {
    pub(super) fn new(client: Client, known: KnownRunners, backoffs: RetryBackoffs) -> Self {
        let rung = Arc::new(Rung::default());
        let watcher: Arc<dyn Watcher> = Arc::clone(&rung) as Arc<dyn Watcher>;
        client.store().watch(None, Arc::downgrade(&watcher) as Weak<dyn Watcher>);
        Self { client, known, backoffs, rung, list: Instant::now(), refused: HashMap::new() }
    }

    /// Waits until it is worth while to look. It may be given up at any time, and loses nothing.
    pub(super) async fn wait(&self) {
        tokio::select! {
            () = self.rung.bell.notified() => {}
            () = tokio::time::sleep_until(self.list) => {}
        }
    }

    /// Returns the runs with work that no live worker has claimed, without those that are `busy`, those that were refused and
    /// have not changed since, and those that rest. Their rows are enough to know that: no log is loaded.
    /// What is missed when the store fails is found within a second.
    pub(super) async fn rows(&mut self, busy: impl Fn(&RunId) -> bool) -> Result<Vec<RunSummary>, StoreError> {
        let (store, filter) = (self.client.store(), RunFilter::builder().due(self.client.now()).build());
        let rung = self.rung.take();
        let mut rows = Vec::new();
        if Instant::now() >= self.list {
            self.list = Instant::now() + LOOK;
            rows = store.runs(&filter).await?;
            let listed: HashSet<_> = rows.iter().map(|row| &row.run).collect();
            self.refused.retain(|run, _| listed.contains(run));
            self.note_refusals(&rows).await;
        } else {
            for run in rung.iter().filter(|run| !busy(run)) {
                match store.run(run).await {
                    Ok(row) => rows.extend(Some(row).filter(|row| filter.passes(row))),
                    Err(StoreError::NoSuchRun { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        rows.retain(|row| !busy(&row.run) && self.refused.get(&row.run).is_none_or(|refused| refused.next != row.next));
        let mut due = Vec::with_capacity(rows.len());
        // Asked once a list of each worker: the runs of one are many.
        let mut alive = HashMap::new();
        for row in rows {
            if self.is_free(&row, &mut alive).await? && !self.rests(&row).await {
                due.push(row);
            }
        }
        Ok(due)
    }

    /// Says whether a run rests after a failure, and nothing was sent to it since.
    async fn rests(&self, row: &RunSummary) -> bool {
        let Some(rest) = self.backoffs.rest(&row.run) else { return false };
        let events = self.client.store().read(&row.run, rest.since, usize::MAX).await.unwrap_or_default();
        !self.backoffs.hear(&row.run, &events)
    }

    /// Says whether no live worker has claimed a run.
    async fn is_free(&self, row: &RunSummary, alive: &mut HashMap<Arc<str>, bool>) -> Result<bool, StoreError> {
        let Some(Claim { owner, released: false, .. }) = &row.claim else { return Ok(true) };
        if let Some(runner) = self.known.get(owner) {
            return Ok(!runner.in_hand.has(&row.run));
        }
        if let Some(alive) = alive.get(owner) {
            return Ok(!alive);
        }
        let is_lease_live = self.client.store().is_lease_live(owner).await?;
        alive.insert(Arc::clone(owner), is_lease_live);
        Ok(!is_lease_live)
    }

    /// Notes in the log of each refused run that nobody claims it, once a claim, after other workers had the time to. What
    /// cannot be written is tried again with the next list.
    async fn note_refusals(&self, rows: &[RunSummary]) {
        for row in rows.iter().filter(|row| row.refused.is_none()) {
            let Some(refused) = self.refused.get(&row.run) else { continue };
            if refused.next != row.next || refused.since.elapsed() < NOTED_AFTER {
                continue;
            }
            let owner = self.known.only().unwrap_or_default();
            let (reason, message) = (refused.reason, refused.message.clone());
            let noted = self.client.note(row, EventKind::RunNotClaimed { owner, reason, message }).await;
            if let Err(error) = noted {
                tracing::warn!(run = %row.run, %error, "the log does not say yet that the run is not claimed");
            }
        }
    }

    /// Looks at a run that was busy the next time; it has gone on, so nothing counts at which it failed before.
    pub(super) fn again(&self, run: &RunId) {
        self.backoffs.clear(run);
        self.rung.appended(run, Seq(0));
    }

    /// Leaves a run out that cannot be claimed here, until something changes in it. Where no other worker claims it within ten
    /// seconds either, that is noted in its log once, as `RUN_NOT_CLAIMED`, and its row says why.
    pub(super) fn refuse(&mut self, row: &RunSummary, reason: ClaimRefusal, message: &str) {
        // The note itself does not count as a change.
        let known = self.refused.get(&row.run).filter(|_| row.refused == Some(reason));
        let since = known.map_or_else(Instant::now, |known| known.since);
        let refused = Refused { next: row.next, since, reason, message: message.to_owned() };
        self.refused.insert(row.run.clone(), refused);
    }

    /// Leaves a run out until somebody sends it something, or for a while, since what has failed may go well then: for a
    /// second, and for twice as long each time it fails again, up to five minutes.
    pub(super) fn rest(&self, row: &RunSummary, reason: Option<ResumeError>) {
        self.backoffs.add(&row.run, row.next, reason);
    }
}

#[cfg(test)]
mod tests;
