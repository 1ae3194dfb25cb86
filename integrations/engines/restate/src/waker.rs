//! Work that reaches the store without Restate: decisions of other programs, due triggers, runs without a workflow.
//!
//! A decision that another program appends to the store reaches no promise. So each endpoint lists the runs that have work
//! and no worker, once a second and after each append of its own process, and wakes their workflows. A run without a
//! workflow gets one. A cancellation in the store ends the log of a waiting run at once, and leaves no work, so the endpoint
//! reads also which of the logs that have grown are cancelled. It also starts the runs of due triggers.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use positronic_core::record::{RunSummary, Status, Timer};
use positronic_core::runner::{Client, Clock as _, FireError, Runner, SystemClock};
use positronic_core::store::{GrownRuns, RunFilter, RunPages, StoreError};
use serde_json::Value;
use tokio::time::Instant;

use crate::client::ClientError;
use crate::ingress::Ingress;
use crate::names;
use crate::protocol::WakeRequest;

/// How often the work is listed.
const POLL: Duration = Duration::from_secs(1);

/// The longest pause until the same work is reported again.
const PAUSE: Duration = Duration::from_secs(60);

/// Wakes workflows and starts the runs of triggers.
pub(crate) struct Waker {
    pub(crate) runner: Runner,
    pub(crate) ingress: Ingress,
    pub(crate) titles: Vec<String>,
}

impl Waker {
    /// Works until it is dropped.
    pub(crate) async fn work(self) {
        let client = self.runner.client();
        let grown = GrownRuns::of(client.store());
        let (mut woken, mut fired) = (Attempts::default(), Attempts::default());
        let mut next_read = Instant::now();
        loop {
            let listed = Instant::now();
            self.wake(&client, &mut woken).await;
            if listed >= next_read {
                self.end_cancelled(&client, &grown).await;
                next_read = listed + POLL;
            }
            self.fire(&client, &mut fired).await;
            // A worker appends many events, and a list reads the store.
            tokio::select! {
                () = grown.wait() => tokio::time::sleep_until(listed + POLL / 10).await,
                () = tokio::time::sleep(POLL) => {}
            }
        }
    }

    async fn wake(&self, client: &Client, woken: &mut Attempts) {
        let (mut due, mut live) = (Vec::new(), HashMap::new());
        for title in &self.titles {
            if let Err(error) = unattended(client, title, &mut live, &mut due).await {
                tracing::warn!(%error, brain = title, "cannot list the runs with work");
            }
        }
        let runs: HashSet<_> = due.iter().map(|row| row.run.as_str()).collect();
        woken.retain(|run| runs.contains(run));
        for row in due.into_iter().filter(|row| woken.again(row.run.as_str(), row.next.0)) {
            if let Err(error) = self.wake_workflow(&row).await {
                tracing::warn!(run = %row.run, %error, "cannot wake the workflow");
                if matches!(error, ClientError::Ingress { .. }) {
                    // The others would wait for the same timeout, and the triggers for all of them.
                    return;
                }
            }
        }
    }

    /// Wakes the workflows of runs that were cancelled since the last call, so that they end.
    async fn end_cancelled(&self, client: &Client, all_grown: &GrownRuns) {
        let mut grown = all_grown.take().into_iter();
        while let Some(run) = grown.next() {
            let row = match client.store().run(&run).await {
                Ok(row) => row,
                Err(StoreError::NoSuchRun { .. }) => continue,
                Err(error) => {
                    tracing::warn!(%run, %error, "cannot read whether the run is cancelled");
                    all_grown.put_back(grown.by_ref().chain([run]));
                    return;
                }
            };
            if row.status != Status::Cancelled || !self.titles.iter().any(|title| **title == *row.brain) {
                continue;
            }
            if let Err(error) = self.wake_workflow(&row).await {
                tracing::warn!(%run, %error, "cannot wake the workflow of the cancelled run");
                all_grown.put_back(grown.by_ref().chain([run]));
                return;
            }
        }
    }

    async fn wake_workflow(&self, row: &RunSummary) -> Result<(), ClientError> {
        let path = [&*names::workflow(&row.brain), row.run.as_str(), "wake", "send"];
        self.ingress.call::<_, Value>(&path, &WakeRequest { next: row.next }, None).await.map(drop)
    }

    async fn fire(&self, client: &Client, fired: &mut Attempts) {
        let due = match client.due_triggers().await {
            Ok(due) => due,
            Err(error) => return tracing::warn!(%error, "cannot list the due triggers"),
        };
        let is_own = |timer: &Timer| self.titles.iter().any(|title| **title == *timer.brain);
        fired.retain(|id| due.iter().any(|timer| timer.trigger.id.as_str() == id));
        for timer in due.into_iter().filter(is_own) {
            let id = timer.trigger.id.as_str();
            if !fired.again(id, timer.trigger.due.0.unsigned_abs()) {
                continue;
            }
            match self.runner.fire(&timer).await {
                Ok(run) => tracing::info!(trigger = id, run = %run.id(), "started the run of the trigger"),
                Err(FireError::Busy { .. } | FireError::Gone { .. }) => {}
                Err(error) => tracing::warn!(trigger = id, %error, "cannot start the run of the trigger"),
            }
        }
    }
}

/// Adds the runs of a brain that have work and no worker. `live` keeps which workers are alive.
async fn unattended(
    client: &Client,
    title: &str,
    live: &mut HashMap<Arc<str>, bool>,
    due: &mut Vec<RunSummary>,
) -> Result<(), StoreError> {
    let filter = RunFilter::builder().brain(title).due(SystemClock.now()).build();
    let mut pages = RunPages::new(client.store(), filter);
    while let Some(page) = pages.next().await? {
        for row in page {
            let has_worker = match row.claim.as_ref().filter(|claim| !claim.released) {
                None => false,
                Some(claim) => match live.get(&claim.owner) {
                    Some(&is_live) => is_live,
                    None => {
                        let is_live = client.store().is_lease_live(&claim.owner).await?;
                        live.insert(Arc::clone(&claim.owner), is_live);
                        is_live
                    }
                },
            };
            if !has_worker {
                due.push(row);
            }
        }
    }
    Ok(())
}

/// When the same work was reported, and when it is reported again.
#[derive(Default)]
struct Attempts(HashMap<String, WakeAttempt>);

struct WakeAttempt {
    mark: u64,
    again: Instant,
    pause: Duration,
}

impl Attempts {
    fn retain(&mut self, is_due: impl Fn(&str) -> bool) {
        self.0.retain(|id, _| is_due(id));
    }

    /// Returns whether work is reported now: at once if its mark is new, then after growing pauses.
    fn again(&mut self, id: &str, mark: u64) -> bool {
        let now = Instant::now();
        let pause = match self.0.get(id).filter(|known| known.mark == mark) {
            Some(known) if now < known.again => return false,
            Some(known) => (known.pause * 2).min(PAUSE),
            None => POLL,
        };
        self.0.insert(id.to_owned(), WakeAttempt { mark, again: now + pause, pause });
        true
    }
}
