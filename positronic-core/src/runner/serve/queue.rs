//! The queue of work: the runs of a store that have work and no live worker.
//!
//! ```text
//! log grows, once a second ──▶ take ──▶ claimed by the caller
//!                               ▲  └──▶ pause (failed) · refuse (never fits) · postpone (suspect) · release
//!                               └─────────────────────────────┘
//! ```
//!
//! The store reserves what is taken, so that of many workers one loads a run. Appends to runs that are in progress here
//! ask nothing.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::backoffs::{POLL, ResumeBackoffs, defer};
use super::not_claimed::{NOTED_AFTER, NotClaimedHere};
use super::quarantine::Quarantine;
use crate::record::{ClaimRefusal, RunId, RunSummary};
use crate::runner::worker::append::worker_of;
use crate::runner::worker::lease::LeaseKeeper;
use crate::runner::{Client, ResumeError, Runner};
use crate::store::{Deferral, DueFilter, DueRun, GrownRuns, RunFilter, StoreError};

/// How long a run is reserved at most: it waits for a permit, its log is loaded, and its plugins are asked.
const RESERVED: Duration = Duration::from_mins(1);
/// How long a quarantined run is hidden, on average.
const QUARANTINED: Duration = Duration::from_secs(1);
/// What a queue shares with its server. Clones share it.
#[derive(Clone, Default)]
pub(super) struct Claims {
    /// The runners of the server, which know their own workers.
    pub(super) known: KnownRunners,
    pub(super) backoffs: ResumeBackoffs,
    pub(super) quarantine: Quarantine,
    /// Under which the server reserves runs; each of its runners claims under its own.
    pub(super) lease: LeaseKeeper,
}

impl Claims {
    /// Returns what the queue of one runner shares with it.
    pub(super) fn of(runner: &Runner) -> Self {
        let (backoffs, quarantine) = (runner.state.backoffs.clone(), runner.state.quarantine.clone());
        Self { backoffs, quarantine, lease: runner.lease.clone(), known: KnownRunners::default() }
    }
}

/// The runners of a server, by the names under which they claim runs.
#[derive(Clone, Default)]
pub(super) struct KnownRunners(Arc<Mutex<HashMap<String, Runner>>>);

impl KnownRunners {
    pub(super) async fn add(&self, runner: &Runner) -> Result<(), StoreError> {
        let name = runner.worker().await?;
        self.0.lock().entry(name).or_insert_with(|| runner.clone());
        Ok(())
    }

    /// Returns the name of the runner if there is exactly one.
    pub(super) fn only(&self) -> Option<String> {
        let all = self.0.lock();
        all.keys().next().filter(|_| all.len() == 1).cloned()
    }

    /// Returns whether a worker of one of them works on a run.
    pub(super) fn have(&self, run: &RunId) -> bool {
        self.0.lock().values().any(|runner| runner.state.registry.has(run))
    }

    pub(super) fn get(&self, name: &str) -> Option<Runner> {
        self.0.lock().get(name).cloned()
    }

    pub(super) fn all(&self) -> Vec<Runner> {
        self.0.lock().values().cloned().collect()
    }
}

/// Finds the runs with work: runs to which a process appends at once, all others within a second.
pub(super) struct WorkQueue {
    client: Client,
    claims: Claims,
    /// Identifies the server's code; without it, only this server skips the runs that it has refused.
    code: Option<String>,
    /// Whether pauses do not count.
    once: bool,
    /// The runs whose logs have grown, except for those in progress here.
    grown: Arc<GrownRuns>,
    /// When all runs are listed again.
    list: Instant,
    not_claimed: NotClaimedHere,
}

impl WorkQueue {
    pub(super) fn new(client: Client, claims: Claims, code: Option<String>, once: bool) -> Self {
        let own = claims.known.clone();
        let grown = GrownRuns::except(client.store(), move |run| own.have(run));
        Self { client, claims, code, once, grown, list: Instant::now(), not_claimed: NotClaimedHere::default() }
    }

    /// Waits until the next poll is worthwhile. Cancel-safe.
    pub(super) async fn wait(&self) {
        tokio::select! {
            () = self.grown.wait() => {}
            () = tokio::time::sleep_until(self.list) => {}
        }
    }

    /// Reserves and returns up to `limit` runs with work that no live worker has claimed, except `busy` ones. It reads
    /// only their rows. What it misses because the store fails is found within a second.
    pub(super) async fn take(
        &mut self,
        limit: usize,
        busy: impl Fn(&RunId) -> bool,
    ) -> Result<Vec<RunSummary>, StoreError> {
        if limit == 0 {
            self.list = Instant::now() + POLL;
            return Ok(Vec::new());
        }
        let listed = Instant::now() >= self.list;
        let runs: Vec<_> =
            self.grown.take().into_iter().filter(|run| !listed && !busy(run) && !self.claims.known.have(run)).collect();
        let mut rows = Vec::new();
        if listed {
            self.list = Instant::now() + POLL;
            self.note_refusals(NOTED_AFTER).await;
            rows = self.own_failures(limit).await;
        } else if runs.is_empty() {
            return Ok(rows);
        }
        let due = self.reserve(runs, limit).await?;
        if due.len() == limit {
            self.list = Instant::now();
        }
        // Those that are left out here are found by the next list.
        rows.truncate(limit.saturating_sub(due.len()));
        for run in due {
            self.claims.backoffs.know(&run.summary.run, run.failures);
            if rows.iter().all(|row| row.run != run.summary.run) {
                rows.push(run.summary);
            }
        }
        let mut fresh = Vec::with_capacity(rows.len());
        for row in rows {
            if busy(&row.run) || self.is_paused(&row).await {
                self.release(&row).await;
            } else if !self.has_room(&row) {
                self.postpone(&row).await;
            } else {
                fresh.push(row);
            }
        }
        Ok(fresh)
    }

    /// Reserves up to `limit` runs that are due: of these, or of all runs of the store.
    async fn reserve(&self, runs: Vec<RunId>, limit: usize) -> Result<Vec<DueRun>, StoreError> {
        let (owner, code) = self.names().await?;
        let filter = DueFilter::builder().now(self.client.now()).owner(owner).code(code).limit(limit);
        let filter = DueFilter { runs, paused: self.once, ..filter.reserve(RESERVED).build() };
        self.client.store().due(&filter).await
    }

    /// Returns the owner of the server's lease and the name of its code.
    async fn names(&self) -> Result<(String, String), StoreError> {
        let lease = self.claims.lease.get(&self.client.shared_store()).await?;
        let owner = lease.owner().to_owned();
        let code = self.code.clone().unwrap_or_else(|| owner.clone());
        Ok((owner, code))
    }

    /// Returns the runs that have failed here, whose pause is over, and that no other worker has claimed. A worker that
    /// fails may leave its run without a release.
    async fn own_failures(&self, limit: usize) -> Vec<RunSummary> {
        let (store, filter) = (self.client.store(), RunFilter::builder().due(self.client.now()).build());
        let mut rows = Vec::new();
        for run in self.claims.backoffs.over().into_iter().take(limit) {
            // What cannot be read now is read again in a second.
            let Ok(row) = store.run(&run).await else { continue };
            let is_free = match worker_of(store, row.claim.as_ref()).await {
                Ok(Some(owner)) => self.claims.known.get(owner).is_some_and(|runner| !runner.state.registry.has(&run)),
                Ok(None) => true,
                Err(_) => continue,
            };
            if is_free && filter.passes(&row) {
                rows.push(row);
            }
        }
        rows
    }

    /// Returns whether a run may be claimed beside the suspects in progress. The claim of a run that was not released counts
    /// another crash.
    fn has_room(&self, row: &RunSummary) -> bool {
        let crashes = row.crashes.as_ref().map_or(0, |crashes| crashes.count);
        let crashed = row.claim.as_ref().is_some_and(|claim| !claim.released);
        self.claims.quarantine.has_room(crashes.saturating_add(u32::from(crashed)))
    }

    /// Hides a quarantined run for a moment, at random, so that the runs behind it and other processes get their turn.
    pub(super) async fn postpone(&self, row: &RunSummary) {
        let pause = QUARANTINED.mul_f64(0.5 + self.client.jitter());
        let failures = self.claims.backoffs.failures(&row.run);
        self.defer(row, &Deferral::Paused { failures, pause }).await;
    }

    /// Returns whether a run is paused after a failure here and no signal has arrived since.
    async fn is_paused(&self, row: &RunSummary) -> bool {
        // A run whose log cannot be read stays paused.
        !matches!(self.claims.backoffs.pause(self.client.store(), &row.run).await, Ok(None))
    }

    /// Records in the logs of the runs refused that long ago that no worker claims them.
    pub(super) async fn note_refusals(&mut self, after: Duration) {
        let owner = self.claims.known.only().unwrap_or_default();
        self.not_claimed.note(&self.client, &owner, after).await;
    }

    /// Checks a run again that was busy.
    pub(super) fn again(&self, run: &RunId) {
        self.grown.add(run.clone());
    }

    /// Hides a run that cannot be claimed here until it changes: from this server, or from all with the same code. If no other worker
    /// claims it within ten seconds, or before the server ends, its log says so once, as `RUN_NOT_CLAIMED`, and its row says why.
    pub(super) async fn refuse(&mut self, row: &RunSummary, reason: ClaimRefusal, message: &str) {
        self.not_claimed.add(row, reason, message);
        if let Ok((owner, code)) = self.names().await {
            // Models and prices may be others in the next process.
            let depends_on_code = matches!(reason, ClaimRefusal::NoBrain | ClaimRefusal::Changed);
            let code = if depends_on_code { code } else { owner };
            self.defer(row, &Deferral::Refused { code }).await;
        }
    }

    /// Pauses a run after a failure that a retry may fix, until a signal arrives or the pause is over: one second
    /// at first, doubled after each failure, up to five minutes.
    pub(super) async fn pause(&self, row: &RunSummary, reason: Option<ResumeError>) {
        _ = self.claims.backoffs.record(self.client.store(), &row.run, row.next, reason).await;
    }

    /// Ends the reservation of a run that this server does not claim.
    pub(super) async fn release(&self, row: &RunSummary) {
        self.defer(row, &Deferral::Released).await;
    }

    async fn defer(&self, row: &RunSummary, deferral: &Deferral) {
        defer(self.client.store(), &row.run, row.next, deferral).await;
    }
}

#[cfg(test)]
mod tests;
