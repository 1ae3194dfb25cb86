//! Work that reaches the store without Restate: decisions of other programs, due triggers, runs without a workflow.
//!
//! A decision that another program appends to the store reaches no promise. So each endpoint takes the runs that have work
//! and no worker from the store's queue, once a second and after each append of its own process, and wakes their workflows.
//! A run without a workflow gets one. A cancellation in the store ends the log of a waiting run at once, and leaves no work,
//! so the endpoint reads also which of the logs that have grown are cancelled. It also starts the runs of due triggers.

use std::time::Duration;

use positronic_core::record::{RunSummary, Status, Timer};
use positronic_core::runner::{Client, Clock as _, Runner, SystemClock};
use positronic_core::store::{Deferral, DueFilter, DueRun, GrownRuns, StoreError};
use serde_json::Value;
use tokio::time::Instant;

use crate::client::ClientError;
use crate::ingress::Ingress;
use crate::names;
use crate::payloads::WakeRequest;

/// How often the work is listed.
const POLL: Duration = Duration::from_secs(1);
/// How many runs are reserved at once, and for how long: until the last of their workflows is woken.
const PAGE: usize = 64;
const RESERVED: Duration = Duration::from_secs(60);

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
        let mut next_read = Instant::now();
        loop {
            let listed = Instant::now();
            if let Err(error) = self.wake(&client).await {
                tracing::warn!(%error, "cannot list the runs with work");
            }
            if listed >= next_read {
                self.end_cancelled(&client, &grown).await;
                next_read = listed + POLL;
            }
            if let Err(error) = self.fire().await {
                tracing::warn!(%error, "cannot list the due triggers");
            }
            // A worker appends many events, and a list reads the store.
            tokio::select! {
                () = grown.wait() => tokio::time::sleep_until(listed + POLL / 10).await,
                () = tokio::time::sleep(POLL) => {}
            }
        }
    }

    /// Wakes the workflows of the runs that have work and no worker. Each of them is due again after a pause that grows, or
    /// when a worker has claimed it or a signal arrives.
    async fn wake(&self, client: &Client) -> Result<(), StoreError> {
        let owner = self.runner.worker().await?;
        loop {
            let due = DueFilter::builder().now(SystemClock.now()).owner(owner.clone()).code(owner.clone());
            let due = client.store().due(&due.limit(PAGE).reserve(RESERVED).build()).await?;
            let (is_last, mut is_answering) = (due.len() < PAGE, true);
            for DueRun { summary: row, failures, .. } in due {
                let deferral = if !self.serves(&row.brain) {
                    Deferral::Refused { code: owner.clone() }
                } else if is_answering {
                    if let Err(error) = self.wake_workflow(&row).await {
                        tracing::warn!(run = %row.run, %error, "cannot wake the workflow");
                        // The others would wait for the same timeout, and the triggers for all of them.
                        is_answering = !matches!(error, ClientError::Ingress { .. });
                    }
                    Deferral::after_failures(failures.saturating_add(1))
                } else {
                    Deferral::Released
                };
                client.store().defer(&row.run, row.next, &deferral).await?;
            }
            if is_last || !is_answering {
                return Ok(());
            }
        }
    }

    fn serves(&self, brain: &str) -> bool {
        self.titles.iter().any(|title| title == brain)
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
            if row.status != Status::Cancelled || !self.serves(&row.brain) {
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

    async fn fire(&self) -> Result<(), StoreError> {
        let is_own = |timer: &Timer| self.serves(&timer.brain);
        while let Some(due) = self.runner.fire_first(is_own).await? {
            let trigger = &due.timer.trigger.id;
            match due.started {
                Ok(run) => tracing::info!(%trigger, run = %run.id(), "started the run of the trigger"),
                Err(error) => tracing::warn!(%trigger, %error, "cannot start the run of the trigger"),
            }
        }
        Ok(())
    }
}
