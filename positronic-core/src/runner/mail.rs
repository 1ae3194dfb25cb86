//! Webhooks that came before a call waited for them.

use super::commit::{PAUSES, passes};
use super::shared::{Shared, Stop};
use super::signals::{SignalError, send};
use super::worker::Worker;
use crate::machine::{REPLY, Refusal, pending};
use crate::record::{PendingKind, Signal, SignalKind};
use crate::store::{InboundWebhook, StoreError};

impl InboundWebhook {
    /// Returns the mail as the signal that delivers it.
    #[must_use]
    pub fn signal(&self) -> Signal {
        let Self { id, webhook, identifier, payload, actor, .. } = self.clone();
        Signal { id, actor, kind: SignalKind::Webhook { name: webhook, identifier, payload } }
    }
}

impl Worker {
    /// Looks in the mailbox for everything that the run waits for, as patiently as it appends.
    pub(super) async fn take_mail(&mut self) -> Result<(), Stop> {
        let mut pauses = PAUSES.iter();
        loop {
            match self.look_for_mail().await {
                Ok(()) => return Ok(()),
                Err(stop) => match pauses.next().filter(|_| passes(&stop)) {
                    Some(pause) => tokio::time::sleep(*pause).await,
                    None => return Err(stop),
                },
            }
        }
    }

    async fn look_for_mail(&mut self) -> Result<(), Stop> {
        let waits: Vec<_> = pending(&self.shared.state())
            .into_iter()
            .flat_map(|pending| match pending.kind {
                PendingKind::Answer { waits } => waits,
                PendingKind::Approval { .. } | PendingKind::Budget { .. } => Vec::new(),
            })
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

    /// Delivers a mail as anybody would. Answers `false` where it was none for this run, so that there may be a next one.
    async fn deliver(&mut self, mail: &InboundWebhook) -> Result<bool, Stop> {
        let Shared { runner, run, .. } = &*self.shared;
        let state = self.shared.state().clone();
        match send(&*runner.store, &*runner.clock, run, state, &[mail.signal()], std::slice::from_ref(&mail.id)).await {
            Ok(sent) => self.catch_up().await.map(|()| sent.is_new),
            // Another run that waits for the same was first.
            Err(SignalError::Store(StoreError::Taken { .. })) => Ok(false),
            Err(SignalError::Refused(refusal @ Refusal::Misfit { .. })) => {
                tracing::warn!(%run, mail = %mail.id, %refusal, "a webhook that came early is thrown away");
                runner.store.discard(&mail.id).await?;
                Ok(false)
            }
            Err(SignalError::Refused(refusal)) => {
                tracing::warn!(%run, mail = %mail.id, %refusal, "a webhook that came early is not delivered");
                Ok(true)
            }
            Err(SignalError::Store(error)) => Err(error.into()),
        }
    }
}
