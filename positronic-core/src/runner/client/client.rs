//! Client of a store's runs: decisions, webhooks and reads, from any process and without a brain's code.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::child_ends::after_end;
use super::live::LiveDeltas;
use super::signals::{Sent, SignalError, recordable, send};
use crate::machine::RunState;
use crate::record::{
    Actor, EventKind, MAX_DOCUMENT_BYTES, NewEvent, Path, RunId, RunSummary, Seq, Signal, SignalKind, Timer, Timestamp,
    TriggerId,
};
use crate::runner::worker::append::{Extras, append, append_of, follow, stamp, worker_of};
use crate::runner::worker::load;
use crate::runner::{Clock, Ids, SystemClock, UuidIds};
use crate::store::{EventStore, StoreError, TimerFilter};

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
    pub(super) clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
    live: LiveDeltas,
    pub(super) max_document_bytes: usize,
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
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Client")
    }
}
