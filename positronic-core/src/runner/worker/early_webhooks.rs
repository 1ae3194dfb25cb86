//! Delivery of webhooks that arrived before a call waited for them.

use super::shared::Shared;
use super::stop::Stop;
use super::worker::Worker;
use crate::machine::{REPLY, Refusal, pending};
use crate::record::{Signal, SignalKind};
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

impl Worker {
    /// Delivers the stored webhooks for which the run waits, with the same retries as an append.
    pub(in crate::runner) async fn take_mail(&mut self) -> Result<(), Stop> {
        self.retried(Self::check_mailbox).await
    }

    async fn check_mailbox(&mut self) -> Result<(), Stop> {
        let waits: Vec<_> = pending(&self.shared.state())
            .into_iter()
            .flat_map(|pending| pending.kind.waits().to_vec())
            .filter(|wait| wait.webhook != REPLY)
            .collect();
        self.mail_unread = true;
        for wait in waits {
            while let Some(mail) = self.mail(&wait.webhook, &wait.identifier).await? {
                if self.deliver(&mail).await? {
                    break;
                }
            }
        }
        self.mail_unread = false;
        Ok(())
    }

    async fn mail(&mut self, webhook: &str, identifier: &str) -> Result<Option<InboundWebhook>, Stop> {
        let Shared { runner, .. } = &*self.shared;
        Ok(runner.store.mail(webhook, identifier, runner.clock.now()).await?)
    }

    /// Delivers a webhook. Returns `false` if this run does not take it, so that the next one is tried.
    async fn deliver(&mut self, mail: &InboundWebhook) -> Result<bool, Stop> {
        let Shared { runner, run, .. } = &*self.shared;
        let state = self.shared.state().clone();
        match send(&*runner.store, &*runner.clock, run, state, &[mail.signal()], Some(mail)).await {
            Ok(sent) => self.catch_up().await.map(|()| sent.is_new),
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
}
