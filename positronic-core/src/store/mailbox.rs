//! The mailbox: webhooks that arrived before a run waited for them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::record::{Actor, RunId, Seq, SignalId, Timestamp};

/// A received webhook that no run has consumed yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InboundWebhook {
    /// The signal's id, which makes posting idempotent.
    pub id: SignalId,
    /// The webhook's name.
    pub webhook: String,
    /// Tells this wait from others for the same webhook.
    pub identifier: String,
    /// The payload.
    pub payload: Value,
    /// The sender.
    #[serde(default)]
    pub actor: Actor,
    /// When it arrived.
    pub at: Timestamp,
    /// When the mailbox drops it, delivered or not.
    pub expires: Timestamp,
}

/// The outcome of posting a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PostOutcome {
    /// The webhook is new and now stored.
    New,
    /// The same id was posted before and is not delivered yet.
    Duplicate,
    /// The same id was posted before and was delivered by this event.
    Delivered {
        /// The run that received it.
        run: RunId,
        /// The first event of the append that delivered it.
        seq: Seq,
    },
}

/// A webhook in the mailbox, until it expires.
#[derive(Debug, Clone, PartialEq)]
pub struct MailboxEntry {
    /// The signal's id.
    pub id: SignalId,
    /// The webhook's name.
    pub webhook: String,
    /// Tells this wait from others for the same webhook.
    pub identifier: String,
    /// When it arrived.
    pub at: Timestamp,
    /// When the mailbox drops it.
    pub expires: Timestamp,
    /// Whether a run has received it.
    pub delivery: DeliveryState,
}

/// Whether a run has received a webhook.
#[derive(Debug, Clone, PartialEq)]
pub enum DeliveryState {
    /// Not yet: no run has waited for it.
    Undelivered(InboundWebhook),
    /// Delivered.
    Delivered {
        /// The run that received it.
        run: RunId,
        /// The first event of the append that delivered it.
        seq: Seq,
    },
}
