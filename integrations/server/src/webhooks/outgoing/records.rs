//! The entries of outgoing webhooks in the store.

use positronic_core::record::Timestamp;
use positronic_core::runner::Client;
use positronic_core::store::{Entry, EntryFilter, StoreError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::delivery::{Delivery, DeliveryStatus, id_prefix};
use super::endpoint::Endpoint;

const ENDPOINT: &str = "webhook";
const DELIVERY: &str = "delivery";
const DUE: &str = "delivery_due";
const SENDER: &str = "webhook_sender";
const CURSOR: &str = "cursor";
const LEASE: &str = "lease";

/// How many entries are read at once.
const PAGE: usize = 200;
/// How often a change is tried again after another writer's.
const TRIES: usize = 8;

/// The entries of outgoing webhooks.
#[derive(Debug, Clone)]
pub(crate) struct Records(Client);

/// A stored value with its revision.
pub(crate) struct Versioned<T> {
    pub(crate) revision: u64,
    pub(crate) value: T,
}

/// An open delivery of an endpoint in the order of due times.
#[derive(Debug, Clone)]
pub(super) struct DueDelivery {
    pub(super) key: String,
    pub(super) at: Timestamp,
    pub(super) delivery: String,
}

impl Records {
    pub(crate) const fn new(client: Client) -> Self {
        Self(client)
    }

    pub(super) const fn client(&self) -> &Client {
        &self.0
    }

    /// Lists the endpoints in the order of their ids.
    pub(crate) async fn endpoints(&self) -> Result<Vec<(String, Endpoint)>, StoreError> {
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let entries = self.list(of(ENDPOINT, "", after, PAGE)).await?;
            let is_last = entries.len() < PAGE;
            after = entries.last().map(|entry| entry.key.clone());
            all.extend(entries.into_iter().filter_map(|entry| Some((entry.key.clone(), readable(ENDPOINT, entry)?))));
            if is_last {
                return Ok(all);
            }
        }
    }

    pub(crate) async fn endpoint(&self, id: &str) -> Result<Option<Versioned<Endpoint>>, StoreError> {
        self.get(ENDPOINT, id).await
    }

    /// Creates or replaces an endpoint: `change` gets the stored one. Returns what was stored; `None` if `change` returns
    /// `None` or other writers have always been first.
    pub(crate) async fn put_endpoint<E: From<StoreError>>(
        &self,
        id: &str,
        mut change: impl FnMut(Option<Endpoint>) -> Result<Option<Endpoint>, E> + Send,
    ) -> Result<Option<Endpoint>, E> {
        for _ in 0..TRIES {
            let stored = self.endpoint(id).await?;
            let expected = stored.as_ref().map(|stored| stored.revision);
            let Some(endpoint) = change(stored.map(|stored| stored.value))? else { break };
            match self.put(ENDPOINT, id, &endpoint, expected).await {
                Err(StoreError::EntryChanged { .. }) => {}
                put => return Ok(put.map(|_| Some(endpoint))?),
            }
        }
        Ok(None)
    }

    /// Removes an endpoint with its deliveries, and returns whether it existed.
    pub(crate) async fn remove_endpoint(&self, id: &str) -> Result<bool, StoreError> {
        let existed = match self.0.store().entry(ENDPOINT, id).await? {
            Some(entry) => {
                self.0.store().remove_entry(ENDPOINT, id, entry.revision).await?;
                true
            }
            None => false,
        };
        self.remove_deliveries(id).await?;
        Ok(existed)
    }

    /// Removes the deliveries of an endpoint.
    pub(crate) async fn remove_deliveries(&self, endpoint: &str) -> Result<(), StoreError> {
        self.remove_below(DUE, &below(endpoint), None).await?;
        self.remove_below(DELIVERY, &below(endpoint), None).await
    }

    /// Lists the deliveries of an endpoint, latest event first.
    pub(crate) async fn deliveries(
        &self,
        endpoint: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<(String, Delivery)>, StoreError> {
        let prefix = below(endpoint);
        let after = after.map(|after| format!("{prefix}{after}"));
        let mut filter = of(DELIVERY, &prefix, after, limit);
        filter.reverse = true;
        let entries = self.list(filter).await?;
        let named = |entry: Entry| {
            let id = entry.key.strip_prefix(&prefix)?.to_owned();
            Some((id, readable(DELIVERY, entry)?))
        };
        Ok(entries.into_iter().filter_map(named).collect())
    }

    pub(crate) async fn delivery(&self, endpoint: &str, id: &str) -> Result<Option<Versioned<Delivery>>, StoreError> {
        self.get(DELIVERY, &(below(endpoint) + id)).await
    }

    /// Stores a new delivery, unless it exists, and makes it due.
    pub(crate) async fn add_delivery(&self, endpoint: &str, id: &str, new: &Delivery) -> Result<(), StoreError> {
        let open = match self.put(DELIVERY, &(below(endpoint) + id), new, None).await {
            Ok(_) => new.due(),
            // It was found before, perhaps by a server that crashed before it made it due.
            Err(StoreError::EntryChanged { .. }) => {
                self.delivery(endpoint, id).await?.and_then(|stored| stored.value.due())
            }
            Err(error) => return Err(error),
        };
        match open {
            Some(due) => self.make_due(endpoint, id, due).await,
            None => Ok(()),
        }
    }

    /// Changes a delivery, and returns what was stored; `None` if it does not exist.
    pub(super) async fn change_delivery(
        &self,
        endpoint: &str,
        id: &str,
        mut change: impl FnMut(&mut Delivery) + Send,
    ) -> Result<Option<Delivery>, StoreError> {
        for tries in (0..TRIES).rev() {
            let Some(Versioned { revision, mut value }) = self.delivery(endpoint, id).await? else { return Ok(None) };
            change(&mut value);
            match self.put(DELIVERY, &(below(endpoint) + id), &value, Some(revision)).await {
                Err(StoreError::EntryChanged { .. }) if tries > 0 => {}
                put => return put.map(|_| Some(value)),
            }
        }
        Ok(None)
    }

    /// Sends a delivery again, as soon as possible; `None` if it does not exist.
    pub(crate) async fn send_again(
        &self,
        endpoint: &str,
        id: &str,
        now: Timestamp,
    ) -> Result<Option<Delivery>, StoreError> {
        let changed = self.change_delivery(endpoint, id, |delivery| {
            delivery.status = DeliveryStatus::Pending { due: now };
            delivery.failures = 0;
        });
        let changed = changed.await?;
        if changed.is_some() {
            self.make_due(endpoint, id, now).await?;
        }
        Ok(changed)
    }

    pub(super) async fn make_due(&self, endpoint: &str, id: &str, at: Timestamp) -> Result<(), StoreError> {
        let key = format!("{}{:016x}/{id}", below(endpoint), at.0.max(0));
        match self.put(DUE, &key, &json!({}), None).await {
            Ok(_) | Err(StoreError::EntryChanged { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Lists open deliveries of an endpoint, the one that is due first at the beginning.
    pub(super) async fn due(&self, endpoint: &str, limit: usize) -> Result<Vec<DueDelivery>, StoreError> {
        let prefix = below(endpoint);
        let entries = self.list(of(DUE, &prefix, None, limit)).await?;
        let due = |entry: Entry| {
            let (at, delivery) = entry.key.strip_prefix(&prefix)?.split_once('/')?;
            let (at, delivery) = (Timestamp(i64::from_str_radix(at, 16).ok()?), delivery.to_owned());
            Some(DueDelivery { at, delivery, key: entry.key })
        };
        Ok(entries.into_iter().filter_map(due).collect())
    }

    pub(super) async fn remove_due(&self, due: &DueDelivery) -> Result<(), StoreError> {
        self.remove(DUE, &due.key).await
    }

    /// Removes the deliveries of events before a time that are not open, and everything of endpoints that do not exist.
    pub(super) async fn sweep(&self, before: Timestamp) -> Result<(), StoreError> {
        let known: Vec<_> = self.endpoints().await?.into_iter().map(|(id, _)| id).collect();
        for kind in [DELIVERY, DUE] {
            let mut after = None;
            while let Some(entry) = self.list(of(kind, "", after.take(), 1)).await?.into_iter().next() {
                let Some((endpoint, _)) = entry.key.split_once('/') else { break };
                let prefix = below(endpoint);
                if known.iter().all(|id| id != endpoint) {
                    self.remove_below(kind, &prefix, None).await?;
                } else if kind == DELIVERY {
                    self.remove_below(kind, &prefix, Some(before)).await?;
                }
                // The entries of the next endpoint.
                after = Some(format!("{endpoint}0"));
            }
        }
        Ok(())
    }

    /// Removes all entries below a prefix, or only the deliveries that are not open, of events before a time.
    async fn remove_below(&self, kind: &str, prefix: &str, before: Option<Timestamp>) -> Result<(), StoreError> {
        let end = before.map(|before| format!("{prefix}{}", id_prefix(before)));
        let mut after = None;
        loop {
            let entries = self.list(of(kind, prefix, after.take(), PAGE)).await?;
            let is_last = entries.len() < PAGE;
            after = entries.last().map(|entry| entry.key.clone());
            for entry in entries {
                if end.as_ref().is_some_and(|end| entry.key >= *end) {
                    return Ok(());
                }
                let is_open = |value| serde_json::from_value(value).is_ok_and(|it: Delivery| it.due().is_some());
                if end.is_some() && is_open(entry.value) {
                    continue;
                }
                match self.0.store().remove_entry(kind, &entry.key, entry.revision).await {
                    // It was sent again by hand.
                    Ok(()) | Err(StoreError::EntryChanged { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            if is_last {
                return Ok(());
            }
        }
    }

    /// Returns the time up to which the logs were read.
    pub(super) async fn cursor(&self) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.get(SENDER, CURSOR).await?.map(|stored| stored.value))
    }

    pub(super) async fn set_cursor(&self, at: Timestamp) -> Result<(), StoreError> {
        let stored = self.get::<Timestamp>(SENDER, CURSOR).await?;
        if stored.as_ref().is_some_and(|stored| stored.value >= at) {
            return Ok(());
        }
        match self.put(SENDER, CURSOR, &at, stored.map(|stored| stored.revision)).await {
            // A former leader has set it; an earlier cursor only costs time.
            Ok(_) | Err(StoreError::EntryChanged { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Returns the owner of the lease of the server that sends.
    pub(super) async fn leader(&self) -> Result<Option<Versioned<String>>, StoreError> {
        self.get(SENDER, LEASE).await
    }

    /// Makes the owner of a lease the leader, instead of the stored one. Returns `false` if another server was first.
    pub(super) async fn set_leader(&self, owner: &str, before: Option<u64>) -> Result<bool, StoreError> {
        match self.put(SENDER, LEASE, &owner, before).await {
            Ok(_) => Ok(true),
            Err(StoreError::EntryChanged { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn get<T: DeserializeOwned>(&self, kind: &str, key: &str) -> Result<Option<Versioned<T>>, StoreError> {
        let Some(Entry { revision, value, .. }) = self.0.store().entry(kind, key).await? else { return Ok(None) };
        let value = serde_json::from_value(value).map_err(|error| StoreError::Corrupt {
            what: format!("the entry `{key}` of kind `{kind}`"),
            reason: error.to_string(),
        })?;
        Ok(Some(Versioned { revision, value }))
    }

    async fn put(
        &self,
        kind: &str,
        key: &str,
        value: &(impl Serialize + Sync),
        expected: Option<u64>,
    ) -> Result<u64, StoreError> {
        let value: Value = serde_json::to_value(value).map_err(|error| StoreError::Failed {
            message: format!("cannot encode the entry `{key}` of kind `{kind}`: {error}"),
        })?;
        self.0.store().put_entry(kind, key, &value, expected).await
    }

    async fn remove(&self, kind: &str, key: &str) -> Result<(), StoreError> {
        let Some(entry) = self.0.store().entry(kind, key).await? else { return Ok(()) };
        match self.0.store().remove_entry(kind, key, entry.revision).await {
            Ok(()) | Err(StoreError::EntryChanged { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn list(&self, filter: EntryFilter) -> Result<Vec<Entry>, StoreError> {
        self.0.store().entries(&filter).await
    }
}

/// Returns the filter for entries of a kind, whose key begins with a prefix, after a key.
fn of(kind: &str, prefix: &str, after: Option<String>, limit: usize) -> EntryFilter {
    let mut filter = EntryFilter::builder().kind(kind).prefix(prefix).limit(limit).build();
    filter.after = after;
    filter
}

/// Returns the beginning of the keys of an endpoint's entries.
fn below(endpoint: &str) -> String {
    format!("{endpoint}/")
}

/// Decodes an entry of a list, and skips one of a newer release.
fn readable<T: DeserializeOwned>(kind: &str, entry: Entry) -> Option<T> {
    let key = entry.key;
    let decoded = serde_json::from_value(entry.value);
    decoded.inspect_err(|error| tracing::warn!(kind, key, %error, "cannot read the entry of an outgoing webhook")).ok()
}
