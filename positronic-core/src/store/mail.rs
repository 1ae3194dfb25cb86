//! Webhooks that came before anybody waited for them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::record::{Actor, RunId, Seq, SignalId, Timestamp};

/// A webhook on its way to whoever waits for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InboundWebhook {
    /// The signal's own id: the same id twice counts once.
    pub id: SignalId,
    /// The webhook's name.
    pub webhook: String,
    /// What tells this wait from others for the same webhook.
    pub identifier: String,
    /// What came.
    pub payload: Value,
    /// Who sent it, and how.
    #[serde(default)]
    pub actor: Actor,
    /// When it came.
    pub at: Timestamp,
    /// When it is forgotten, whether somebody has taken it or not.
    pub expires: Timestamp,
}

/// What became of a mail when it was posted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PostOutcome {
    /// It is new, and kept.
    New,
    /// The same id came before, and nobody has taken it yet.
    Duplicate,
    /// The same id came before, and this event delivered it.
    Delivered {
        /// The run that took it.
        run: RunId,
        /// The first event of the append that took it.
        seq: Seq,
    },
}

/// A webhook that the mailbox knows, until it expires.
#[derive(Debug, Clone, PartialEq)]
pub struct MailboxEntry {
    /// The signal's own id.
    pub id: SignalId,
    /// The webhook's name.
    pub webhook: String,
    /// What tells this wait from others for the same webhook.
    pub identifier: String,
    /// When it came.
    pub at: Timestamp,
    /// When it is forgotten.
    pub expires: Timestamp,
    /// What has become of it.
    pub delivery: DeliveryState,
}

/// Where an entry is.
#[derive(Debug, Clone, PartialEq)]
pub enum DeliveryState {
    /// In the mailbox: nobody has waited for it yet.
    Undelivered(InboundWebhook),
    /// In a run, since the first event of the append that took it.
    Delivered {
        /// The run that took it.
        run: RunId,
        /// The event.
        seq: Seq,
    },
}
