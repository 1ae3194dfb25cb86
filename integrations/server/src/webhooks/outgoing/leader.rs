//! Election of the server that sends: the owner of a live lease whose name is in the store.
//!
//! A lease lapses by the store's clock, so clocks of servers need not agree. Two servers send at the same time only if one
//! has lost its lease without knowing it yet; a receiver may then get a delivery twice, under the same id.

use std::time::Duration;

use positronic_core::runner::Client;
use positronic_core::store::{Lease, StoreError};

use super::Records;

/// How often a standby server checks whether the leader is alive, and a leader whether it still is one.
pub(super) const POLL: Duration = Duration::from_secs(1);

/// A server that may become the leader.
pub(super) struct LeaderCandidate {
    client: Client,
    records: Records,
    lease: Lease,
}

impl LeaderCandidate {
    pub(super) async fn new(client: Client) -> Result<Self, StoreError> {
        let lease = client.store().acquire_lease().await?;
        Ok(Self { records: Records::new(client.clone()), client, lease })
    }

    /// Returns whether this server is the leader, and makes it the leader if there is none.
    pub(super) async fn leads(&self) -> Result<bool, StoreError> {
        let stored = self.records.leader().await?;
        let before = match stored {
            Some(stored) if stored.value == self.lease.owner() => return Ok(true),
            Some(stored) if self.client.store().is_lease_live(&stored.value).await? => return Ok(false),
            Some(stored) => Some(stored.revision),
            None => None,
        };
        self.records.set_leader(self.lease.owner(), before).await
    }

    /// Renews the lease until it cannot be renewed.
    pub(super) async fn renewals(&self) -> StoreError {
        let Some(ttl) = self.lease.ttl() else { return std::future::pending().await };
        loop {
            tokio::time::sleep(ttl / 4).await;
            match self.client.store().renew_lease(self.lease.owner()).await {
                Ok(()) => {}
                Err(error @ StoreError::LeaseLapsed { .. }) => return error,
                // The next renewal comes before the lease lapses.
                Err(error) => tracing::warn!(%error, "cannot renew the lease of the webhook sender"),
            }
        }
    }
}
