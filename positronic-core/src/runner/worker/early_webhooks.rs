//! Delivery of webhooks that arrived before a call or a stage waited for them.

use super::shared::Shared;
use super::stop_reason::ResumeError;
use super::worker::Worker;
use crate::machine::{REPLY, Refusal, RunState, pending, waits_since};
use crate::record::{Path, Pending, Signal, SignalId, SignalKind, Timestamp, WaitSpec};
use crate::runner::client::child_ends::{cancel_orphan, deliver_ends};
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
pub(in crate::runner) async fn take_early_webhooks(worker: &mut Worker) -> Result<(), ResumeError> {
    worker.retried(check_mailbox).await
}

/// A wait for a webhook: the call or the stage that waits, what for, and since when a webhook counts.
struct AwaitedMail {
    call: Path,
    wait: WaitSpec,
    since: Timestamp,
}

async fn check_mailbox(worker: &mut Worker) -> Result<(), ResumeError> {
    worker.mail_unread = true;
    check_children(worker).await?;
    let mut found = Vec::new();
    for open in open_waits(&worker.state) {
        found.extend(next_mail(worker, open).await?);
    }
    // Of several webhooks for a call the one that arrived first counts, whatever the order of its waits.
    let first = |found: &[_]| found.iter().enumerate().min_by_key(|(_, entry)| arrival(entry)).map(|(at, _)| at);
    while let Some(at) = first(&found) {
        let (mail, open) = found.swap_remove(at);
        if deliver(worker, &mail).await? {
            found.retain(|(_, other): &(_, AwaitedMail)| other.call != open.call);
        } else {
            found.extend(next_mail(worker, open).await?);
        }
    }
    worker.mail_unread = false;
    Ok(())
}

fn open_waits(state: &RunState) -> Vec<AwaitedMail> {
    let since = |call: &Path, wait: &WaitSpec| wait.fresh.then(|| waits_since(state, call)).flatten();
    let open = |pending: &Pending, wait: &WaitSpec| AwaitedMail {
        call: pending.call.clone(),
        wait: wait.clone(),
        since: since(&pending.call, wait).unwrap_or_default(),
    };
    let all = pending(state);
    let waits = all.iter().flat_map(|pending| pending.kind.waits().iter().map(|wait| open(pending, wait)));
    waits.filter(|open| open.wait.webhook != REPLY && open.wait.child().is_none()).collect()
}

fn arrival((mail, _): &(InboundWebhook, AwaitedMail)) -> (Timestamp, SignalId) {
    (mail.at, mail.id.clone())
}

/// Reads the ends of the children for which the run waits, and cancels the run if it is a linked child of a run that has ended.
async fn check_children(worker: &mut Worker) -> Result<(), ResumeError> {
    let (client, state) = (worker.shared.runner.client(), worker.state.clone());
    let run = &worker.shared.run;
    if cancel_orphan(&client, run, &state).await? || deliver_ends(&client, run, &state).await? {
        worker.catch_up().await?;
    }
    Ok(())
}

async fn next_mail(
    worker: &mut Worker,
    open: AwaitedMail,
) -> Result<Option<(InboundWebhook, AwaitedMail)>, ResumeError> {
    let Shared { runner, .. } = &*worker.shared;
    let mail = runner.store.mail(&open.wait.webhook, &open.wait.identifier, open.since, runner.clock.now()).await?;
    Ok(mail.map(|mail| (mail, open)))
}

/// Delivers a webhook. Returns `false` if this run does not take it, so that the next one is tried.
async fn deliver(worker: &mut Worker, mail: &InboundWebhook) -> Result<bool, ResumeError> {
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
