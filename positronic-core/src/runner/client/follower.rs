//! Reader of a growing log with the live deltas between its events, for sinks and [`RunHandle::follow`].
//!
//! ```text
//! store ──read, 256 events at a time──▶ events ─┐    shared with the other readers of the run
//!   └─ watcher: the log has grown ─▶ bell       ├─▶ next()
//! worker ── live deltas, at most 1024 ──────────┘
//! ```
//!
//! Between reads it stores only its position, so a slow reader needs no queue of events. A worker sends the pieces of
//! an answer before it appends the event of the whole answer, so a reader of that event finds the pieces in its
//! queue, and they go first.
//!
//! [`RunHandle::follow`]: crate::runner::RunHandle::follow

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use backon::Retryable as _;
use tokio::sync::{Notify, mpsc};

use super::live::{LiveDeltas, LiveRun, NumberedDelta};
use super::shared_log::{ReadEvents, SharedLog, WINDOW, alone};
use crate::record::{Delta, Event, RunId, Seq};
use crate::runner::clock::pauses;
use crate::store::{EventStore, StoreError, Watcher};

/// The next item of a run.
pub(super) enum Followed {
    Event(Arc<Event>),
    Delta(Delta),
}

/// Wakes a reader when the log has grown.
#[derive(Default)]
pub(super) struct LogBell {
    /// The number of the log's next event, as reported by the store.
    next: AtomicU64,
    bell: Notify,
}

impl LogBell {
    /// Wakes the reader to read the events before `next`.
    pub(super) fn ring(&self, next: Seq) {
        self.next.fetch_max(next.0, Ordering::AcqRel);
        self.bell.notify_one();
    }
}

impl Watcher for LogBell {
    fn appended(&self, _: &RunId, next: Seq) {
        self.ring(next);
    }
}

/// A position in a run's log and in its live deltas.
pub(super) struct Follower {
    store: Arc<dyn EventStore>,
    run: RunId,
    /// The number of the next event.
    next: Seq,
    /// Events that were read and not yet returned.
    events: VecDeque<Arc<Event>>,
    /// Whether the last read reached the end of the log.
    is_complete: bool,
    bell: Arc<LogBell>,
    /// Whether the bell knows the end of the log: this reader has read it since the bell began to watch.
    knows_end: bool,
    live: Arc<LiveRun>,
    deltas: mpsc::Receiver<NumberedDelta>,
    /// A delta that must wait for the events before it.
    early: Option<NumberedDelta>,
}

impl Follower {
    /// Reads a run from an event's number on, with the deltas from now on.
    pub(super) fn new(store: &Arc<dyn EventStore>, live: &LiveDeltas, run: &RunId, next: Seq) -> Self {
        let bell = Arc::<LogBell>::default();
        store.watch(Some(run), Arc::downgrade(&bell) as Weak<dyn Watcher>);
        let live = live.of(run);
        Self {
            store: Arc::clone(store),
            run: run.clone(),
            next,
            events: VecDeque::new(),
            is_complete: false,
            bell,
            knows_end: false,
            deltas: live.subscribe(),
            live,
            early: None,
        }
    }

    /// Returns the number of the next event.
    pub(super) const fn position(&self) -> Seq {
        self.next
    }

    /// Continues at another event.
    pub(super) fn seek(&mut self, next: Seq) {
        self.next = next;
        self.events.clear();
        self.is_complete = false;
    }

    pub(super) const fn bell(&self) -> &Arc<LogBell> {
        &self.bell
    }

    /// Returns the next item; `None` at the end of the log. A failed read is retried after each of the
    /// [`pauses`].
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store fails; the next call reads the same events again.
    pub(super) async fn next(&mut self) -> Result<Option<Followed>, StoreError> {
        loop {
            if let Some(delta) = self.delta() {
                return Ok(Some(Followed::Delta(delta)));
            }
            if let Some(event) = self.events.pop_front() {
                self.next = event.seq.next();
                return Ok(Some(Followed::Event(event)));
            }
            if self.is_complete && self.bell.next.load(Ordering::Acquire) <= self.next.0 {
                return Ok(None);
            }
            let ReadEvents { events, is_fresh } = self.read().await?;
            // The bell says whether there are more events than those that another reader has read.
            self.is_complete = !is_fresh || events.len() < WINDOW;
            self.knows_end |= self.is_complete;
            self.events = events;
            // An empty answer that another reader got may be older than the last append.
            if self.events.is_empty() && is_fresh {
                return Ok(None);
            }
        }
    }

    /// Waits until there may be more. Cancel-safe.
    pub(super) async fn more(&mut self) {
        tokio::select! {
            biased;
            Some(early) = self.deltas.recv(), if self.early.is_none() => self.early = Some(early),
            () = self.bell.bell.notified() => {}
        }
    }

    /// Returns the next delta that precedes the next event.
    fn delta(&mut self) -> Option<Delta> {
        let (after, delta) = self.early.take().or_else(|| self.deltas.try_recv().ok())?;
        if after > self.next {
            self.early = Some((after, delta));
            return None;
        }
        Some(delta)
    }

    /// Returns what the readers of the run share, if there are several.
    pub(super) fn shared(&self) -> Option<&SharedLog> {
        self.live.shared().filter(|shared| shared.is_of(&self.store))
    }

    async fn read(&self) -> Result<ReadEvents, StoreError> {
        (|| self.read_once())
            .retry(pauses())
            .when(|error| matches!(error, StoreError::Failed { .. }))
            .notify(|error, _| tracing::debug!(run = %self.run, seq = %self.next, %error, "reading the log again"))
            .await
    }

    async fn read_once(&self) -> Result<ReadEvents, StoreError> {
        let Some(shared) = self.shared() else { return alone(&self.store, &self.run, self.next).await };
        let read = shared.read(&self.store, &self.run, self.next).await?;
        if read.is_fresh || self.knows_end {
            return Ok(read);
        }
        let end = self.store.run(&self.run).await?.next;
        self.bell.next.fetch_max(end.0, Ordering::AcqRel);
        // A run that was removed and imported again has another log.
        if read.events.back().is_some_and(|last| last.seq >= end) {
            return alone(&self.store, &self.run, self.next).await;
        }
        Ok(read)
    }
}
