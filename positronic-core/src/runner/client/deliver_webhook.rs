//! Delivery of a webhook to the run that waits for it, or to the mailbox.

use serde::Serialize;

use super::client::Client;
use super::signals::{SignalError, send};
use crate::machine::Refusal;
use crate::record::{RunId, Seq, SignalId, check_document, first_hidden};
use crate::runner::worker::load;
use crate::store::{DeliveryState, InboundWebhook, PendingFilter, PendingItem, PostOutcome, StoreError};

/// The outcome of a webhook's delivery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Delivered {
    /// A run received it, now or by an earlier delivery of the same signal.
    To {
        /// The run.
        run: RunId,
        /// The event that records it.
        seq: Seq,
    },
    /// No run waits for it yet; it stays in the mailbox.
    Kept,
}

impl Delivered {
    /// Returns whether the delivery has started the run that received it.
    #[must_use]
    pub const fn is_start(&self) -> bool {
        matches!(self, Self::To { seq: Seq(0), .. })
    }
}

/// Delivers a webhook, as [`Client::deliver`] says.
pub(super) async fn deliver_webhook(client: &Client, mail: InboundWebhook) -> Result<Delivered, SignalError> {
    check_document(&mail.payload, client.max_document_bytes).map_err(|error| {
        let what = format!("the payload of the webhook `{}` cannot be stored", mail.webhook);
        Refusal::Misfit { what, reason: error.to_string() }
    })?;
    if let Some(char) = first_hidden(&mail.identifier) {
        let what = format!("the identifier {:?} of the webhook `{}` is invalid", mail.identifier, mail.webhook);
        let reason = format!("it has the character U+{:04X}, which lists do not show", u32::from(char));
        return Err(Refusal::Misfit { what, reason }.into());
    }
    // In the mailbox before the waiting runs are listed, so a run that begins to wait in between finds it
    // there.
    let posted = client.store().post(&mail).await?;
    let mail = match posted {
        PostOutcome::Delivered { run, seq } => return Ok(Delivered::To { run, seq }),
        PostOutcome::New => mail,
        // The first payload under an id counts.
        PostOutcome::Duplicate => stored_webhook(client, &mail.id).await?.unwrap_or(mail),
    };
    let waits = PendingFilter::builder().webhook((mail.webhook.clone(), mail.identifier.clone())).build();
    let (mut misfit, mut failed) = (None, None);
    for waiter in forks_last(client, client.store().pending(&waits).await?).await {
        match deliver_to(client, &waiter.run, &mail).await {
            Ok(seq) => return Ok(Delivered::To { run: waiter.run, seq }),
            // A run that waited for the same webhook took it from the mailbox.
            Err(SignalError::Store(StoreError::Taken { run, seq, .. })) => return Ok(Delivered::To { run, seq }),
            Err(SignalError::Refused(refusal @ Refusal::Misfit { .. })) => misfit = Some(refusal),
            // It has its answer or has ended; another run may wait.
            Err(SignalError::Refused(_)) => {}
            // An unreadable run must not keep the others from their answer.
            Err(SignalError::Store(error)) => failed = Some(error),
        }
    }
    if let Some(error) = failed {
        // It stays in the mailbox; a retry under the same id delivers it.
        return Err(error.into());
    }
    // The run that took it after the post no longer waits and is not in the list.
    let known = client.store().post(&mail).await?;
    if let PostOutcome::Delivered { run, seq } = known {
        return Ok(Delivered::To { run, seq });
    }
    let Some(refusal) = misfit else { return Ok(Delivered::Kept) };
    if posted == PostOutcome::New || known == PostOutcome::New {
        client.store().discard(&mail.id).await?;
    }
    Err(refusal.into())
}

/// A fork waits since its origin does. It exists to try things out, so it must not take the webhook from its
/// origin.
async fn forks_last(client: &Client, waiters: Vec<PendingItem>) -> Vec<PendingItem> {
    if waiters.len() < 2 {
        return waiters;
    }
    let (mut first, mut forks) = (Vec::with_capacity(waiters.len()), Vec::new());
    for waiter in waiters {
        match client.store().run(&waiter.run).await {
            Ok(row) if row.forked_from.is_some() => forks.push(waiter),
            // It was removed in between.
            Err(StoreError::NoSuchRun { .. }) => {}
            // The delivery reports what is wrong with it.
            Ok(_) | Err(_) => first.push(waiter),
        }
    }
    first.append(&mut forks);
    first
}

async fn deliver_to(client: &Client, run: &RunId, mail: &InboundWebhook) -> Result<Seq, SignalError> {
    let state = load::state(client.store(), run).await?;
    let sent = send(client.store(), &*client.clock, run, state, &[mail.signal()], Some(mail)).await?;
    Ok(sent.accepted.first().copied().unwrap_or_default())
}

/// Returns a webhook of the mailbox that no run has received.
pub(in crate::runner) async fn stored_webhook(
    client: &Client,
    id: &SignalId,
) -> Result<Option<InboundWebhook>, StoreError> {
    Ok(client.store().mailbox_entry(id).await?.and_then(|entry| match entry.delivery {
        DeliveryState::Undelivered(mail) => Some(mail),
        DeliveryState::Delivered { .. } => None,
    }))
}
