//! Delivery of webhooks that arrived before a call or a stage waited for them.

use super::shared::Shared;
use super::stop::Stop;
use super::worker::Worker;
use crate::machine::{REPLY, Refusal, pending, waits_since};
use crate::record::{Pending, Signal, SignalKind, Timestamp, WaitSpec};
use crate::runner::client::children::{cancel_orphan, deliver_ends};
use crate::runner::client::signals::{SignalError, send};
use crate::store::{InboundWebhook, StoreError};

impl InboundWebhook {
    /// Returns the signal that delivers the webhook.
    #[must_use]
    pub fn signal(&self) -> Signal {
        let Self { id, webhook, identifier, payload, actor, .. } = self.clone();
        Signal { id, actor, kind: SignalKind::Webhook { name: webhook, identifier, payload } }
    }
}

/// Delivers the stored webhooks for which the run waits, with the same retries as an append.
pub(in crate::runner) async fn take_early_webhooks(worker: &mut Worker) -> Result<(), Stop> {
    worker.retried(check_mailbox).await
}

async fn check_mailbox(worker: &mut Worker) -> Result<(), Stop> {
    let since = |pending: &Pending, wait: &WaitSpec| {
        let began = wait.fresh.then(|| waits_since(&worker.state, &pending.call)).flatten();
        began.unwrap_or_default()
    };
    let waits: Vec<_> = pending(&worker.state)
        .iter()
        .flat_map(|pending| pending.kind.waits().iter().map(|wait| (wait.clone(), since(pending, wait))))
        .filter(|(wait, _)| wait.webhook != REPLY && wait.child().is_none())
        .collect();
    worker.mail_unread = true;
    check_children(worker).await?;
    for (wait, since) in waits {
        while let Some(mail) = next_mail(worker, &wait, since).await? {
            if deliver(worker, &mail).await? {
                break;
            }
        }
    }
    worker.mail_unread = false;
    Ok(())
}

/// Reads the ends of the children for which the run waits, and cancels the run if it is a linked child of a run that has ended.
async fn check_children(worker: &mut Worker) -> Result<(), Stop> {
    let (client, state) = (worker.shared.runner.client(), worker.state.clone());
    let run = &worker.shared.run;
    if cancel_orphan(&client, run, &state).await? || deliver_ends(&client, run, &state).await? {
        worker.catch_up().await?;
    }
    Ok(())
}

async fn next_mail(worker: &mut Worker, wait: &WaitSpec, since: Timestamp) -> Result<Option<InboundWebhook>, Stop> {
    let Shared { runner, .. } = &*worker.shared;
    Ok(runner.store.mail(&wait.webhook, &wait.identifier, since, runner.clock.now()).await?)
}

/// Delivers a webhook. Returns `false` if this run does not take it, so that the next one is tried.
async fn deliver(worker: &mut Worker, mail: &InboundWebhook) -> Result<bool, Stop> {
    let Shared { runner, run, .. } = &*worker.shared;
    let state = worker.state.clone();
    match send(&*runner.store, &*runner.clock, run, state, &[mail.signal()], Some(mail)).await {
        Ok(sent) => worker.catch_up().await.map(|()| sent.is_new),
        // Another run that waits for it was first.
        Err(SignalError::Store(StoreError::Taken { .. })) => Ok(false),
        Err(SignalError::Refused(refusal @ Refusal::Misfit { .. })) => {
            tracing::warn!(%run, mail = %mail.id, %refusal, "discarded an early webhook");
            runner.store.discard(&mail.id).await?;
            Ok(false)
        }
        Err(SignalError::Refused(refusal)) => {
            tracing::warn!(%run, mail = %mail.id, %refusal, "did not deliver an early webhook");
            Ok(true)
        }
        Err(SignalError::Store(error)) => Err(error.into()),
    }
}
