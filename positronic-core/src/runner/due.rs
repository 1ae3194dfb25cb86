//! The runs of a store that have work, for a server.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::Client;
use super::resume_backoff::ResumeBackoffs;
use super::server::KnownRunners;
use super::stop::ResumeError;
use crate::record::{Claim, ClaimRefusal, EventKind, RunId, RunSummary, Seq};
use crate::store::{RunFilter, StoreError, Watcher};

/// How often to look for due runs and for dead workers of other processes.
const LOOK: Duration = Duration::from_secs(1);
/// How long other workers have to claim a run that this one cannot, before its log says that no worker has claimed
/// it.
const NOTED_AFTER: Duration = Duration::from_secs(10);

/// Finds the runs with work: runs to which a process appends at once, all others within a second.
pub(super) struct Due {
    client: Client,
    /// The runners of the server, which know their own workers.
    known: KnownRunners,
    backoffs: ResumeBackoffs,
    rung: Arc<Rung>,
    /// When all runs are listed again.
    list: Instant,
    /// The runs that cannot be claimed here.
    refused: HashMap<RunId, Refused>,
}

/// A run that cannot be claimed here.
struct Refused {
    /// The number of its next event at that time.
    next: Seq,
    since: Instant,
    reason: ClaimRefusal,
    message: String,
}

/// The runs whose logs have grown.
#[derive(Default)]
struct Rung {
    runs: Mutex<BTreeSet<RunId>>,
    bell: Notify,
}

impl Rung {
    fn take(&self) -> BTreeSet<RunId> {
        std::mem::take(&mut self.runs.lock())
    }
}

impl Watcher for Rung {
    fn appended(&self, run: &RunId, _: Seq) {
        self.runs.lock().insert(run.clone());
        self.bell.notify_one();
    }
}

impl Due {
    pub(super) fn new(client: Client, known: KnownRunners, backoffs: ResumeBackoffs) -> Self {
        let rung = Arc::new(Rung::default());
        let watcher: Arc<dyn Watcher> = Arc::clone(&rung) as Arc<dyn Watcher>;
        client.store().watch(None, Arc::downgrade(&watcher) as Weak<dyn Watcher>);
        Self { client, known, backoffs, rung, list: Instant::now(), refused: HashMap::new() }
    }

    /// Waits until the next look is worthwhile. Cancel-safe.
    pub(super) async fn wait(&self) {
        tokio::select! {
            () = self.rung.bell.notified() => {}
            () = tokio::time::sleep_until(self.list) => {}
        }
    }

    /// Returns the runs with work that no live worker has claimed, except `busy` ones, refused ones without
    /// changes since, and paused ones. It reads only their rows. What it misses because the store fails is found
    /// within a second.
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
        // Each worker's lease is checked once per list: one worker can have many runs.
        let mut alive = HashMap::new();
        for row in rows {
            if self.is_free(&row, &mut alive).await? && !self.rests(&row).await {
                due.push(row);
            }
        }
        Ok(due)
    }

    /// Returns whether a run is paused after a failure and no signal has arrived since.
    async fn rests(&self, row: &RunSummary) -> bool {
        let Some(rest) = self.backoffs.rest(&row.run) else { return false };
        let events = self.client.store().read(&row.run, rest.since, usize::MAX).await.unwrap_or_default();
        !self.backoffs.records_signal(&row.run, &events)
    }

    /// Returns whether no live worker has claimed a run.
    async fn is_free(&self, row: &RunSummary, alive: &mut HashMap<Arc<str>, bool>) -> Result<bool, StoreError> {
        let Some(Claim { owner, released: false, .. }) = &row.claim else { return Ok(true) };
        if let Some(runner) = self.known.get(owner) {
            return Ok(!runner.registry.has(&row.run));
        }
        if let Some(alive) = alive.get(owner) {
            return Ok(!alive);
        }
        let is_lease_live = self.client.store().is_lease_live(owner).await?;
        alive.insert(Arc::clone(owner), is_lease_live);
        Ok(!is_lease_live)
    }

    /// Records once per claim in the log of each refused run that no worker claims it, after other workers had
    /// time to. A failed append is retried with the next list.
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

    /// Looks at a busy run again; its earlier failures no longer count, since it has made progress.
    pub(super) fn again(&self, run: &RunId) {
        self.backoffs.clear(run);
        self.rung.appended(run, Seq(0));
    }

    /// Excludes a run that cannot be claimed here until it changes. If no other worker claims it within ten
    /// seconds, its log says so once, as `RUN_NOT_CLAIMED`, and its row says why.
    pub(super) fn refuse(&mut self, row: &RunSummary, reason: ClaimRefusal, message: &str) {
        // The note itself is not a change.
        let known = self.refused.get(&row.run).filter(|_| row.refused == Some(reason));
        let since = known.map_or_else(Instant::now, |known| known.since);
        let refused = Refused { next: row.next, since, reason, message: message.to_owned() };
        self.refused.insert(row.run.clone(), refused);
    }

    /// Pauses a run after a failure that a retry may fix, until a signal arrives or the pause is over: one second
    /// at first, doubled after each failure, up to five minutes.
    pub(super) fn rest(&self, row: &RunSummary, reason: Option<ResumeError>) {
        self.backoffs.add(&row.run, row.next, reason);
    }
}

#[cfg(test)]
mod tests;
