//! The mailbox: webhooks that arrived before a run waited for them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{BoxFuture, StoreError};
use crate::record::{Actor, RunId, Seq, SignalId, Timestamp};

/// Keeps webhooks that arrived before a run waited for them.
#[diagnostic::on_unimplemented(note = "a store around another one gets this trait by implementing `StoreWrapper`")]
pub trait MailboxStore: Send + Sync + 'static {
    /// Stores a webhook until a run waits for it or until it expires. Posting the same signal id twice stores it once.
    /// Also drops the webhooks that had expired by `mail.at`.
    fn post<'a>(&'a self, mail: &'a InboundWebhook) -> BoxFuture<'a, Result<PostOutcome, StoreError>>;

    /// Returns the oldest undelivered webhook with this name and identifier that was received at `since` or later, and has not
    /// expired by `now`. An append delivers it: [`Append::deliveries`](super::Append::deliveries).
    fn mail<'a>(
        &'a self,
        webhook: &'a str,
        identifier: &'a str,
        since: Timestamp,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<InboundWebhook>, StoreError>>;

    /// Lists the mailbox, oldest first: undelivered webhooks, and delivered ones that have not expired.
    fn mailbox(&self) -> BoxFuture<'_, Result<Vec<MailboxEntry>, StoreError>>;

    /// Returns the mailbox entry of one webhook, or `None`.
    fn mailbox_entry<'a>(&'a self, mail: &'a SignalId) -> BoxFuture<'a, Result<Option<MailboxEntry>, StoreError>>;

    /// Removes an undelivered webhook that was refused.
    fn discard<'a>(&'a self, mail: &'a SignalId) -> BoxFuture<'a, Result<(), StoreError>>;
}

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
    /// Why it could not start the run that it should start; it is stored for people then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
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
#[expect(clippy::large_enum_variant, reason = "few entries exist at a time: those of one mailbox, when it is listed")]
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
