//! Webhooks that came before a call waited for them.

use super::commit::{Extras, append_of, follow, stamp};
use super::shared::Stop;
use super::worker::Worker;
use crate::machine::{REPLY, decide, pending};
use crate::record::{PendingKind, Signal, SignalKind};
use crate::store::{Mail, StoreError};
use crate::tools::JsonSchemas;

impl Mail {
    /// Returns the mail as the signal that delivers it.
    #[must_use]
    pub fn signal(&self) -> Signal {
        let Self { id, webhook, identifier, payload, actor, .. } = self.clone();
        Signal { id, actor, kind: SignalKind::Webhook { name: webhook, identifier, payload } }
    }
}

impl Worker {
    /// Looks in the mailbox for everything that the run waits for.
    pub(super) async fn take_mail(&mut self) -> Result<(), Stop> {
        let waits: Vec<_> = pending(&self.shared.state())
            .into_iter()
            .flat_map(|pending| match pending.kind {
                PendingKind::Answer { waits } => waits,
                PendingKind::Approval { .. } => Vec::new(),
            })
            .filter(|wait| wait.webhook != REPLY)
            .collect();
        for wait in waits {
            if let Some(mail) = self.shared.runner.store.mail(&wait.webhook, &wait.identifier).await? {
                self.deliver(mail).await?;
            }
        }
        Ok(())
    }

    /// Delivers a mail, unless somebody else does, or it does not fit.
    async fn deliver(&mut self, mail: Mail) -> Result<(), Stop> {
        let shared = std::sync::Arc::clone(&self.shared);
        loop {
            let before = shared.state().clone();
            let now = shared.now().max(before.at);
            if mail.expires <= now {
                return Ok(());
            }
            let drafts = match decide(&before, &mail.signal(), now, &JsonSchemas) {
                Ok(drafts) => drafts,
                Err(refusal) => {
                    tracing::warn!(run = %shared.run, mail = %mail.id, %refusal, "a webhook that came early is not delivered");
                    return Ok(());
                }
            };
            let events = stamp(drafts, before.next, now, None);
            let after = follow(&before, &events)?;
            let row = shared.summary().clone();
            let extras = Extras { takes: vec![mail.id.clone()], ..Extras::default() };
            let append = append_of(&shared.run, &before, &after, Some(&row), &events, extras);
            let summary = append.index.summary.clone();
            match shared.runner.store.append(&shared.run, append).await {
                Ok(()) => {
                    shared.take_over(after, summary, &events);
                    return Ok(());
                }
                Err(StoreError::Conflict { .. }) => self.catch_up().await?,
                Err(error) => return Err(error.into()),
            }
        }
    }
}
