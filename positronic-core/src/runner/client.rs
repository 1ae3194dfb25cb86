//! What people and machines do with runs, from any process that opens the store: no brain's code is needed.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use super::claim::worker_of;
use super::commit::{Extras, append_of, follow, stamp};
use super::live::LiveDeltas;
use super::signals::{SignalError, recordable, send};
use super::{Clock, Ids, SystemClock, UuidIds, load};
use crate::machine::{Refusal, RunState, hears_mail};
use crate::projection::{Prompts, RunFile, files};
use crate::record::{
    Actor, Amounts, Event, EventKind, MAX_DOCUMENT_BYTES, NewEvent, Path, RunId, RunSummary, Seq, Signal, SignalId,
    SignalKind, Status, Timestamp, check_document,
};
use crate::store::{
    DeliveryState, EventStore, InboundWebhook, PendingFilter, PendingItem, PostOutcome, StoreError, swept_before,
};

/// Decides, delivers and looks, in any run of a store.
///
/// A decision is appended to the run's log at once, whether a worker of the run is alive or not; one that is alive
/// reads it, in the same process at once and in another one within a second.
///
/// ```
/// # use positronic_core::runner::{Client, SignalError};
/// # use positronic_core::record::{Actor, RunId, SignalKind};
/// # use positronic_core::store::{EventStore, PendingFilter};
/// # async fn example(store: impl EventStore) -> Result<(), SignalError> {
/// let client = Client::new(store);
/// let ann = Actor::builder().by("ann").channel("cli").build();
/// for waiter in client.store().pending(&PendingFilter::builder().person(true).build()).await? {
///     client.approve(&waiter.run, &waiter.pending.call, ann.clone()).await?;
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

/// What became of a webhook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Delivered {
    /// A run has it, now or since an earlier delivery of the same signal.
    To {
        /// The run.
        run: RunId,
        /// The event that says so.
        seq: Seq,
    },
    /// Nobody waits for it yet; it is kept.
    Kept,
}

impl Client {
    /// How long a webhook is kept that nobody waits for yet, and remembered after somebody has it: seven days.
    pub const KEEP: Duration = Duration::from_hours(7 * 24);

    /// Makes the control of a store's runs.
    pub fn new(store: impl EventStore) -> Self {
        Self::with(Arc::new(store), Arc::new(SystemClock), Arc::new(UuidIds), LiveDeltas::default())
    }

    pub(super) fn with(store: Arc<dyn EventStore>, clock: Arc<dyn Clock>, ids: Arc<dyn Ids>, live: LiveDeltas) -> Self {
        Self { store, clock, ids, live, max_document_bytes: MAX_DOCUMENT_BYTES }
    }

    pub(super) fn shared_store(&self) -> Arc<dyn EventStore> {
        Arc::clone(&self.store)
    }

    pub(super) const fn live(&self) -> &LiveDeltas {
        &self.live
    }

    /// Sets how many bytes a payload, edited arguments or a message may have; as
    /// [`Runner::builder`](super::Runner::builder) does for what code makes.
    #[must_use]
    pub fn max_document_bytes(self, max_document_bytes: usize) -> Self {
        Self { max_document_bytes, ..self }
    }

    /// Returns the store, for lists and logs.
    #[must_use]
    pub fn store(&self) -> &dyn EventStore {
        &*self.store
    }

    /// Returns the worker that has a run in hand, if it is alive.
    ///
    /// # Errors
    ///
    /// As the store fails.
    pub async fn worker(&self, row: &RunSummary) -> Result<Option<String>, StoreError> {
        Ok(worker_of(&*self.store, row.claim.as_ref()).await?.map(str::to_owned))
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(super) fn new_run(&self) -> RunId {
        self.ids.run()
    }

    /// Sends signals to a run, all or none, and returns the number of the event that accepts each. One that was
    /// accepted before gets the number it had then.
    ///
    /// # Errors
    ///
    /// [`SignalError::Refused`] when one does not fit the state that the run has after those before it,
    /// [`SignalError::Store`] when there is no such run or the store fails. Nothing is changed then.
    pub async fn send(&self, run: &RunId, signals: &[Signal]) -> Result<Vec<Seq>, SignalError> {
        for signal in signals {
            recordable(signal, self.max_document_bytes)?;
        }
        let state = load::state(&*self.store, run).await?;
        Ok(send(&*self.store, &*self.clock, run, state, signals, &[]).await?.accepted)
    }

    /// Sends a signal under a new id.
    ///
    /// # Errors
    ///
    /// As [`Client::send`].
    pub async fn signal(&self, run: &RunId, kind: SignalKind, actor: Actor) -> Result<Seq, SignalError> {
        let signal = Signal { id: self.ids.signal(), actor, kind };
        Ok(self.send(run, &[signal]).await?.first().copied().unwrap_or_default())
    }

    /// Lets a pending call run.
    ///
    /// # Errors
    ///
    /// As [`Client::send`].
    pub async fn approve(&self, run: &RunId, call: &Path, actor: Actor) -> Result<Seq, SignalError> {
        self.signal(run, SignalKind::Approve { call: call.clone(), arguments: None }, actor).await
    }

    /// Grants a loop or a brain more that has reached a limit and asks for it; the path of the run's own brain is empty.
    ///
    /// # Errors
    ///
    /// As [`Client::send`].
    pub async fn grant(&self, run: &RunId, to: &Path, more: Amounts, actor: Actor) -> Result<Seq, SignalError> {
        self.signal(run, SignalKind::Grant { to: to.clone(), more }, actor).await
    }

    /// Refuses a pending call, or more for a loop or a brain that asks for it.
    ///
    /// # Errors
    ///
    /// As [`Client::send`].
    pub async fn reject(&self, run: &RunId, call: &Path, reason: &str, actor: Actor) -> Result<Seq, SignalError> {
        self.signal(run, SignalKind::Reject { call: call.clone(), reason: Some(reason.to_owned()) }, actor).await
    }

    /// Delivers a webhook to whichever run waits for it, or keeps it until one does. The same id twice counts once. Of
    /// several that wait for the same, the one that began to wait first gets it, and a fork only what no other run takes.
    ///
    /// # Errors
    ///
    /// [`SignalError::Refused`] when the payload does not fit what a run waits for and none takes it; then it is not kept,
    /// unless it was before. [`SignalError::Store`] when the store fails; then sending it again under the same id is safe.
    pub async fn deliver(
        &self,
        id: SignalId,
        webhook: &str,
        identifier: &str,
        payload: Value,
        actor: Actor,
    ) -> Result<Delivered, SignalError> {
        check_document(&payload, self.max_document_bytes).map_err(|error| {
            let what = format!("the payload of the webhook `{webhook}` cannot be kept");
            Refusal::Misfit { what, reason: error.to_string() }
        })?;
        let at = self.clock.now();
        let (webhook, identifier) = (webhook.to_owned(), identifier.to_owned());
        let mail = InboundWebhook { id, webhook, identifier, payload, actor, at, expires: at.after(Self::KEEP) };
        // It is in the mailbox before anybody looks who waits: whoever begins to wait meanwhile finds it there.
        let posted = self.store.post(&mail).await?;
        let mail = match posted {
            PostOutcome::Delivered { run, seq } => return Ok(Delivered::To { run, seq }),
            PostOutcome::New => mail,
            // What came first counts, whatever the second says.
            PostOutcome::Duplicate => self.kept(&mail.id).await?.unwrap_or(mail),
        };
        let waits = PendingFilter::builder().webhook((mail.webhook.clone(), mail.identifier.clone())).build();
        let (mut misfit, mut failed) = (None, None);
        for waiter in self.forks_last(self.store.pending(&waits).await?).await {
            match self.deliver_to(&waiter.run, &mail).await {
                Ok(seq) => return Ok(Delivered::To { run: waiter.run, seq }),
                // A run that waited for the same has just taken it from the mailbox.
                Err(SignalError::Store(StoreError::Taken { run, seq, .. })) => return Ok(Delivered::To { run, seq }),
                Err(SignalError::Refused(refusal @ Refusal::Misfit { .. })) => misfit = Some(refusal),
                // It has its answer, or is over: perhaps another one waits.
                Err(SignalError::Refused(_)) => {}
                // One that cannot be read now does not stand between the others and their answer.
                Err(SignalError::Store(error)) => failed = Some(error),
            }
        }
        if let Some(error) = failed {
            // It is in the mailbox: whoever sends it again, under the same id, has it delivered.
            return Err(error.into());
        }
        // Whoever has taken it since it was posted does not wait any more, and was not among those who do.
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

    /// A fork waits since its origin does, for the same; it is there to try things out, and takes nothing from its origin.
    async fn forks_last(&self, waiters: Vec<PendingItem>) -> Vec<PendingItem> {
        if waiters.len() < 2 {
            return waiters;
        }
        let (mut first, mut forks) = (Vec::with_capacity(waiters.len()), Vec::new());
        for waiter in waiters {
            match self.store.run(&waiter.run).await {
                Ok(row) if row.forked_from.is_some() => forks.push(waiter),
                // It was removed just now.
                Err(StoreError::NoSuchRun { .. }) => {}
                // What is wrong with it is told where it is delivered to.
                Ok(_) | Err(_) => first.push(waiter),
            }
        }
        first.append(&mut forks);
        first
    }

    async fn deliver_to(&self, run: &RunId, mail: &InboundWebhook) -> Result<Seq, SignalError> {
        let state = load::state(&*self.store, run).await?;
        let takes = std::slice::from_ref(&mail.id);
        let sent = send(&*self.store, &*self.clock, run, state, &[mail.signal()], takes).await?;
        Ok(sent.accepted.first().copied().unwrap_or_default())
    }

    /// Appends a note about a run to its log, unless something was appended since its row was read.
    pub(super) async fn note(&self, row: &RunSummary, kind: EventKind) -> Result<(), StoreError> {
        let before = load::state(&*self.store, &row.run).await?;
        if before.next != row.next {
            return Ok(());
        }
        let at = self.clock.now().max(before.at);
        let events = stamp(vec![NewEvent::new(Path::root(), kind)], before.next, at, None);
        let after = follow(&before, &events).map_err(|error| StoreError::corrupt_log(&row.run, error))?;
        let append = append_of(&row.run, &before, &after, Some(row), &events, Extras::default());
        match self.store.append(&row.run, append).await {
            Err(StoreError::Conflict { .. }) => Ok(()),
            appended => appended,
        }
    }

    async fn kept(&self, id: &SignalId) -> Result<Option<InboundWebhook>, StoreError> {
        Ok(self.store.mailbox_entry(id).await?.and_then(|entry| match entry.delivery {
            DeliveryState::Undelivered(mail) => Some(mail),
            DeliveryState::Delivered { .. } => None,
        }))
    }

    /// Reads a run's events from a number on.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoSuchRun`] when there is no such run, or as the store fails.
    pub async fn events(&self, run: &RunId, from: Seq) -> Result<Vec<Arc<Event>>, StoreError> {
        self.store.read(run, from, usize::MAX).await
    }

    /// Puts a run into the store whose events were read elsewhere.
    ///
    /// # Errors
    ///
    /// [`StoreError::Conflict`] when the store has the run, [`StoreError::NoRunBefore`] when it does not have the one before
    /// it in its conversation, [`StoreError::Corrupt`] when the events are not the log of a run from its begin on.
    pub async fn import(&self, run: &RunId, events: &[Arc<Event>]) -> Result<(), StoreError> {
        let none = RunState::default();
        let state = follow(&none, events).map_err(|error| StoreError::corrupt_log(run, error))?;
        if state.root.is_none() {
            return Err(StoreError::corrupt_log(run, "it does not begin with the start of the run"));
        }
        let mut append = append_of(run, &none, &state, None, events, Extras::default());
        // What it waits for may lie in this store's mailbox, where nobody has looked.
        append.index.summary.mail = append.index.summary.status == Status::Waiting && hears_mail(&state);
        self.store.append(run, append).await
    }

    /// Returns the bytes of a file of a run, by their SHA-256 in hexadecimal digits; none where the store does not keep
    /// them.
    ///
    /// ```
    /// # use positronic_core::runner::Client;
    /// # use positronic_core::record::RunId;
    /// # async fn example(client: Client, run: RunId) -> Result<(), positronic_core::store::StoreError> {
    /// for file in client.files(&run).await? {
    ///     if let Some(bytes) = client.blob(&file.file.sha256).await? {
    ///         println!("{} has {} bytes", file.file.name, bytes.len());
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`StoreError::Damaged`] when they have another hash by now, or as the store fails.
    pub async fn blob(&self, sha256: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.store.blob(sha256).await
    }

    /// Keeps bytes that an event is to refer to within an hour, as those of a run that is taken in, and returns their
    /// SHA-256.
    ///
    /// # Errors
    ///
    /// [`StoreError::TooLarge`], or as the store fails.
    pub async fn put_blob(&self, bytes: Vec<u8>) -> Result<String, StoreError> {
        self.store.put_blob(bytes, self.clock.now()).await
    }

    /// Lists the files of a run in the order in which its tools made them.
    ///
    /// # Errors
    ///
    /// As [`Client::events`].
    pub async fn files(&self, run: &RunId) -> Result<Vec<RunFile>, StoreError> {
        Ok(files(self.events(run, Seq(0)).await?.iter().map(|event| &**event)))
    }

    /// Removes the bytes of files to which no run refers any more, and that nobody has kept within the last hour. Returns
    /// how many files that were.
    ///
    /// # Errors
    ///
    /// As the store fails.
    pub async fn sweep(&self) -> Result<usize, StoreError> {
        self.store.sweep_blobs(swept_before(self.clock.now())).await
    }

    /// Returns the state of a run as of now.
    ///
    /// # Errors
    ///
    /// As [`Client::events`].
    pub async fn state(&self, run: &RunId) -> Result<RunState, StoreError> {
        load::state(&*self.store, run).await
    }

    /// Returns the state of a run and the records of its loops as they were after event `at`.
    ///
    /// # Errors
    ///
    /// As [`Client::events`].
    pub async fn state_at(&self, run: &RunId, at: Seq) -> Result<(RunState, Prompts), StoreError> {
        let events = self.store.read(run, Seq(0), at.next().index()).await?;
        let events = events.iter().map(|event| &**event);
        let state = RunState::replay(events.clone()).map_err(|error| StoreError::corrupt_log(run, error))?;
        Ok((state, Prompts::default().in_run(run).with(events)))
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Client")
    }
}
