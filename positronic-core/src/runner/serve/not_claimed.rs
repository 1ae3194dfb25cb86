//! The runs that a queue cannot claim: their logs say so when no other worker has claimed them either.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::record::{ClaimRefusal, EventKind, RunId, RunSummary, Seq};
use crate::runner::Client;
use crate::store::StoreError;

/// How long other workers have to claim a run that this one cannot, before its log says that no worker has claimed
/// it.
pub(super) const NOTED_AFTER: Duration = Duration::from_secs(10);

/// The runs that cannot be claimed here, until their logs say so.
#[derive(Default)]
pub(super) struct NotClaimedHere(HashMap<RunId, RefusedRun>);

/// A run that cannot be claimed here.
struct RefusedRun {
    /// The number of its next event at that time.
    next: Seq,
    since: Instant,
    reason: ClaimRefusal,
    message: String,
}

impl NotClaimedHere {
    /// Adds a run, unless its row says already that it was not claimed.
    pub(super) fn add(&mut self, row: &RunSummary, reason: ClaimRefusal, message: &str) {
        if row.refused.is_none() {
            let refused = RefusedRun { next: row.next, since: Instant::now(), reason, message: message.to_owned() };
            self.0.insert(row.run.clone(), refused);
        }
    }

    /// Records once per claim in the log of each run refused that long ago that no worker claims it: after other workers had
    /// time to, or when the server ends, since later ones with the same code skip the run. A failed append is retried with
    /// the next list.
    pub(super) async fn note(&mut self, client: &Client, owner: &str, after: Duration) {
        let late: Vec<_> =
            self.0.iter().filter(|(_, refused)| refused.since.elapsed() >= after).map(|(run, _)| run.clone()).collect();
        for run in late {
            let Some(refused) = self.0.remove(&run) else { continue };
            if let Err(error) = refused.note(client, &run, owner).await {
                tracing::warn!(%run, %error, "the log does not say yet that the run is not claimed");
                self.0.insert(run, refused);
            }
        }
    }
}

impl RefusedRun {
    async fn note(&self, client: &Client, run: &RunId, owner: &str) -> Result<(), StoreError> {
        let row = match client.store().run(run).await {
            Ok(row) => row,
            Err(StoreError::NoSuchRun { .. }) => return Ok(()),
            Err(error) => return Err(error),
        };
        if row.refused.is_some() || row.next != self.next {
            return Ok(());
        }
        let (reason, message) = (self.reason, self.message.clone());
        client.note(&row, EventKind::RunNotClaimed { owner: owner.to_owned(), reason, message }).await
    }
}
