//! Client of a store's runs: decisions, webhooks and reads, from any process and without a brain's code.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use super::child_ends::after_end;
use super::live::LiveDeltas;
use super::signals::{Sent, SignalError, recordable, send};
use crate::machine::{Refusal, RunState};
use crate::record::{
    Actor, EventKind, MAX_DOCUMENT_BYTES, NewEvent, Path, RunId, RunSummary, Seq, Signal, SignalId, SignalKind, Timer,
    Timestamp, TriggerId, check_document, first_hidden,
};
use crate::runner::worker::append::{Extras, append, append_of, follow, stamp, worker_of};
use crate::runner::worker::load;
use crate::runner::{Clock, Ids, SystemClock, UuidIds};
use crate::store::{
    DeliveryState, EventStore, InboundWebhook, PendingFilter, PendingItem, PostOutcome, StoreError, TimerFilter,
};

/// Sends signals to runs and reads them, from any process that opens the store.
///
/// A decision is appended to the run's log at once, whether or not a worker is alive. A live worker reads it at once
/// in the same process, and within a second in another one.
///
/// ```
/// # use positronic_core::runner::{Client, SignalError};
/// # use positronic_core::record::{Actor, RunId, SignalKind};
/// # use positronic_core::store::{EventStore, PendingFilter};
/// # async fn example(store: impl EventStore) -> Result<(), SignalError> {
/// let client = Client::new(store);
/// let ann = Actor::builder().by("ann").channel("cli").build();
/// for item in client.store().pending(&PendingFilter::builder().person(true).build()).await? {
///     client.approve(&item.run, &item.pending.call, ann.clone()).await?;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client {
    store: Arc<dyn EventStore>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
    live: LiveDeltas,
    max_document_bytes: usize,
}

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

impl Client {
    /// How long the mailbox stores an undelivered webhook and remembers a delivered one: seven days.
    pub const KEEP: Duration = Duration::from_hours(7 * 24);

    /// Creates a client of a store's runs.
    pub fn new(store: impl EventStore) -> Self {
        Self::with(Arc::new(store), Arc::new(SystemClock), Arc::new(UuidIds), LiveDeltas::default())
    }

    pub(in crate::runner) fn with(
        store: Arc<dyn EventStore>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn Ids>,
        live: LiveDeltas,
    ) -> Self {
        Self { store, clock, ids, live, max_document_bytes: MAX_DOCUMENT_BYTES }
    }

    pub(in crate::runner) fn shared_store(&self) -> Arc<dyn EventStore> {
        Arc::clone(&self.store)
    }

    pub(in crate::runner) const fn live(&self) -> &LiveDeltas {
        &self.live
    }

    /// Sets the maximum size in bytes of a payload, of edited arguments and of a message;
    /// [`Runner::max_document_bytes`](crate::runner::Runner::max_document_bytes) sets the same for the author's code.
    #[must_use]
    pub fn max_document_bytes(self, max_document_bytes: usize) -> Self {
        Self { max_document_bytes, ..self }
    }

    /// Returns the store, for lists and logs.
    #[must_use]
    pub fn store(&self) -> &dyn EventStore {
        &*self.store
    }

    /// Returns the live worker that has claimed a run.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store fails.
    pub async fn worker(&self, row: &RunSummary) -> Result<Option<String>, StoreError> {
        Ok(worker_of(&*self.store, row.claim.as_ref()).await?.map(str::to_owned))
    }

    /// Returns the current time of its clock: the runner's, or the system's.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns a random number from 0 to 1.
    pub(in crate::runner) fn jitter(&self) -> f64 {
        self.ids.jitter()
    }

    pub(super) fn new_run(&self) -> RunId {
        self.ids.run()
    }

    /// Sends a signal under a new id.
    ///
    /// # Errors
    ///
    /// As [`Client::send`].
    pub async fn signal(&self, run: &RunId, kind: SignalKind, by: impl Into<Actor>) -> Result<Seq, SignalError> {
        let signal = Signal { id: self.ids.signal(), actor: by.into(), kind };
        self.send(run, signal).await
    }

    /// Sends a signal with an id of its own and returns the number of the event that accepts it. A repeated id returns the
    /// same number.
    ///
    /// # Errors
    ///
    /// As [`Client::send_all`].
    pub async fn send(&self, run: &RunId, signal: Signal) -> Result<Seq, SignalError> {
        Ok(self.send_all(run, &[signal]).await?.first().copied().unwrap_or_default())
    }

    /// Sends a signal as [`send`](Self::send) does, without reading the run's state again. A state that is behind the log is caught
    /// up.
    ///
    /// # Errors
    ///
    /// As [`Client::send_all`].
    pub async fn send_with_state(&self, run: &RunId, state: RunState, signal: Signal) -> Result<Seq, SignalError> {
        let Sent { accepted, .. } = self.send_to(run, Some(state), &[signal]).await?;
        Ok(accepted.first().copied().unwrap_or_default())
    }

    /// Sends signals to a run, all or none, and returns the number of the event that accepts each. A signal that
    /// was accepted earlier returns its earlier number.
    ///
    /// # Errors
    ///
    /// [`SignalError::Refused`] if a signal does not fit the run's state after those before it;
    /// [`SignalError::Store`] if there is no such run or the store fails. Nothing is changed in either case.
    pub async fn send_all(&self, run: &RunId, signals: &[Signal]) -> Result<Vec<Seq>, SignalError> {
        Ok(self.send_to(run, None, signals).await?.accepted)
    }

    /// Sends signals to a run, whose state the caller may know.
    pub(super) async fn send_to(
        &self,
        run: &RunId,
        known: Option<RunState>,
        signals: &[Signal],
    ) -> Result<Sent, SignalError> {
        for signal in signals {
            recordable(signal, self.max_document_bytes)?;
        }
        let state = match known {
            Some(state) => state,
            None => load::state(&*self.store, run).await?,
        };
        let sent = send(&*self.store, &*self.clock, run, state, signals, None).await?;
        if sent.is_new && signals.iter().any(|signal| matches!(signal.kind, SignalKind::Cancel { .. })) {
            after_end(self, run, &load::state(&*self.store, run).await?).await;
        }
        Ok(sent)
    }

    /// Delivers a webhook to the run that waits for it, or stores it until one does. The same id counts once. If
    /// several runs wait for the same webhook, the one that has waited longest gets it; a fork gets it only if no
    /// other run takes it.
    ///
    /// # Errors
    ///
    /// [`SignalError::Refused`] if the payload does not fit what a run waits for and no run takes it; it is then
    /// not stored, unless it already was. [`SignalError::Store`] if the store fails; a retry under the same id is
    /// safe.
    pub async fn deliver(
        &self,
        id: SignalId,
        webhook: &str,
        identifier: &str,
        payload: Value,
        actor: Actor,
    ) -> Result<Delivered, SignalError> {
        check_document(&payload, self.max_document_bytes).map_err(|error| {
            let what = format!("the payload of the webhook `{webhook}` cannot be stored");
            Refusal::Misfit { what, reason: error.to_string() }
        })?;
        if let Some(char) = first_hidden(identifier) {
            let what = format!("the identifier {identifier:?} of the webhook `{webhook}` is invalid");
            let reason = format!("it has the character U+{:04X}, which lists do not show", u32::from(char));
            return Err(Refusal::Misfit { what, reason }.into());
        }
        let at = self.clock.now();
        let (webhook, identifier) = (webhook.to_owned(), identifier.to_owned());
        let expires = at.after(Self::KEEP);
        let mail = InboundWebhook { id, webhook, identifier, payload, actor, at, expires, refusal: None };
        // In the mailbox before the waiting runs are listed, so a run that begins to wait in between finds it
        // there.
        let posted = self.store.post(&mail).await?;
        let mail = match posted {
            PostOutcome::Delivered { run, seq } => return Ok(Delivered::To { run, seq }),
            PostOutcome::New => mail,
            // The first payload under an id counts.
            PostOutcome::Duplicate => self.stored_webhook(&mail.id).await?.unwrap_or(mail),
        };
        let waits = PendingFilter::builder().webhook((mail.webhook.clone(), mail.identifier.clone())).build();
        let (mut misfit, mut failed) = (None, None);
        for waiter in self.forks_last(self.store.pending(&waits).await?).await {
            match self.deliver_to(&waiter.run, &mail).await {
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
        let known = self.store.post(&mail).await?;
        if let PostOutcome::Delivered { run, seq } = known {
            return Ok(Delivered::To { run, seq });
        }
        let Some(refusal) = misfit else { return Ok(Delivered::Kept) };
        if posted == PostOutcome::New || known == PostOutcome::New {
            self.store.discard(&mail.id).await?;
        }
        Err(refusal.into())
    }

    /// Lists triggers by due time, without loading a log.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store fails.
    pub async fn triggers(&self, filter: &TimerFilter) -> Result<Vec<Timer>, StoreError> {
        self.store().timers(filter).await
    }

    /// Lists the due triggers.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store fails.
    pub async fn due_triggers(&self) -> Result<Vec<Timer>, StoreError> {
        self.triggers(&TimerFilter::builder().due(self.now()).build()).await
    }

    /// Deletes a trigger and returns whether it existed. The runs that it started continue.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store fails.
    pub async fn delete_trigger(&self, id: &TriggerId) -> Result<bool, StoreError> {
        self.store().remove_timer(id).await
    }

    /// A fork waits since its origin does. It exists to try things out, so it must not take the webhook from its
    /// origin.
    async fn forks_last(&self, waiters: Vec<PendingItem>) -> Vec<PendingItem> {
        if waiters.len() < 2 {
            return waiters;
        }
        let (mut first, mut forks) = (Vec::with_capacity(waiters.len()), Vec::new());
        for waiter in waiters {
            match self.store.run(&waiter.run).await {
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

    async fn deliver_to(&self, run: &RunId, mail: &InboundWebhook) -> Result<Seq, SignalError> {
        let state = load::state(&*self.store, run).await?;
        let sent = send(&*self.store, &*self.clock, run, state, &[mail.signal()], Some(mail)).await?;
        Ok(sent.accepted.first().copied().unwrap_or_default())
    }

    /// Appends a note to a run's log, unless the log has grown since its row was read.
    pub(in crate::runner) async fn note(&self, row: &RunSummary, kind: EventKind) -> Result<(), StoreError> {
        let before = load::state(&*self.store, &row.run).await?;
        if before.next != row.next {
            return Ok(());
        }
        let at = self.clock.now().max(before.at);
        let events = stamp(vec![NewEvent::new(Path::root(), kind)], before.next, at, None);
        let after = follow(&before, &events).map_err(|error| StoreError::corrupt_log(&row.run, error))?;
        let noted = append_of(&row.run, &before, &after, Some(row), &events, Extras::default());
        match append(&*self.store, &row.run, noted).await {
            Err(StoreError::Conflict { .. }) => Ok(()),
            appended => appended,
        }
    }

    /// Returns a webhook of the mailbox that no run has received.
    pub(in crate::runner) async fn stored_webhook(&self, id: &SignalId) -> Result<Option<InboundWebhook>, StoreError> {
        Ok(self.store.mailbox_entry(id).await?.and_then(|entry| match entry.delivery {
            DeliveryState::Undelivered(mail) => Some(mail),
            DeliveryState::Delivered { .. } => None,
        }))
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Client")
    }
}
