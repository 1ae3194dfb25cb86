//! A delivery: one notice for one endpoint, with its attempts.

use positronic_core::record::{RunId, Seq, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::WebhookEvent;

/// How many attempts are recorded: the last ones.
const ATTEMPTS: usize = 20;

/// A delivery, as it is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Delivery {
    pub(crate) event: WebhookEvent,
    pub(crate) run: RunId,
    pub(crate) seq: Seq,
    /// When the event was appended.
    pub(crate) at: Timestamp,
    /// The body of the request.
    pub(crate) body: Value,
    pub(crate) status: DeliveryStatus,
    /// How many attempts in succession have failed since it was created or sent again by hand.
    #[serde(default)]
    pub(crate) failures: u32,
    #[serde(default)]
    pub(crate) attempts: Vec<Attempt>,
}

/// The status of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub(crate) enum DeliveryStatus {
    /// It is sent at a time, or as soon as the endpoint is enabled.
    Pending { due: Timestamp },
    /// The receiver has accepted it.
    Delivered { at: Timestamp },
    /// It was given up.
    Failed { at: Timestamp },
}

/// An attempt to deliver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Attempt {
    pub(crate) at: Timestamp,
    pub(crate) duration_ms: u64,
    /// The status of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<u16>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

impl Delivery {
    /// Returns the time at which it is due, if it is open.
    pub(crate) const fn due(&self) -> Option<Timestamp> {
        match self.status {
            DeliveryStatus::Pending { due } => Some(due),
            DeliveryStatus::Delivered { .. } | DeliveryStatus::Failed { .. } => None,
        }
    }

    pub(super) fn record(&mut self, attempt: Attempt) {
        self.attempts.push(attempt);
        let surplus = self.attempts.len().saturating_sub(ATTEMPTS);
        self.attempts.drain(..surplus);
    }
}

/// Returns the id of an event's notice, which is `webhook-id` and orders deliveries as their events.
pub(super) fn delivery_id(run: &RunId, seq: Seq, at: Timestamp) -> String {
    let hash = Sha256::digest(format!("{run}\n{seq}"));
    let hash = hash.iter().take(8).fold(0_u64, |hash, byte| hash << 8 | u64::from(*byte));
    format!("{}{:08x}{hash:016x}", id_prefix(at), seq.0)
}

/// Returns the beginning of the ids of an event's time.
pub(super) fn id_prefix(at: Timestamp) -> String {
    format!("evt_{:014x}", at.0.max(0))
}
