//! What the readers of one run share in a process: the last events that one of them has read, and how the run has settled.
//!
//! An event is read and decoded once, however many readers follow the run. Only the last [`WINDOW`] events are kept, and none
//! while the run has a single reader. A reader that is further behind reads the store by itself.
//!
//! Readers that need the same at the same time wait for one future, which each of them drives: a reader that is not polled
//! delays no other.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock, Weak};

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared, WeakShared};
use parking_lot::Mutex;

use super::settled::Settled;
use crate::record::{Event, RunId, Seq};
use crate::store::{EventStore, StoreError};

/// How many events are kept, and read at once.
pub(super) const WINDOW: usize = 256;

/// What the readers of a run share.
#[derive(Default)]
pub(super) struct SharedLog {
    /// The store of the first reader. Readers of another store read by themselves.
    store: OnceLock<Weak<dyn EventStore>>,
    window: Arc<Mutex<EventWindow>>,
    settled: Mutex<Option<(Seq, SettledQuery)>>,
}

/// Whether a run has settled, as far as its readers know.
enum SettledQuery {
    Asked(WeakQuery<SettledAt>),
    Known(SettledAt),
}

/// Whether a run has settled as of a position in its log.
#[derive(Clone)]
pub(super) enum SettledAt {
    /// It has.
    Settled(Settled),
    /// It has not; `is_final` says whether only a further event can change that.
    Not { is_final: bool },
    /// The log has unread events before this number.
    Grown(Seq),
}

impl SettledAt {
    /// Returns whether only a further event can change it.
    pub(super) const fn is_final(&self) -> bool {
        matches!(self, Self::Settled(_) | Self::Not { is_final: true })
    }
}

/// A query to the store for several readers. It ends with the last of them.
type Query<T> = Shared<BoxFuture<'static, Result<T, StoreError>>>;
type WeakQuery<T> = WeakShared<BoxFuture<'static, Result<T, StoreError>>>;
type Events = VecDeque<Arc<Event>>;

/// Events without gaps.
#[derive(Default)]
struct EventWindow {
    events: Events,
    /// The number of the next event.
    end: Seq,
    /// The events from a number on that are being read.
    reading: Option<(Seq, WeakQuery<Events>)>,
}

/// Events of a run.
pub(super) struct ReadEvents {
    pub(super) events: Events,
    /// Whether the store was asked now, and not before by another reader.
    pub(super) is_fresh: bool,
}

impl SharedLog {
    /// Returns whether readers of a store share this.
    pub(super) fn is_of(&self, store: &Arc<dyn EventStore>) -> bool {
        let first = self.store.get_or_init(|| Arc::downgrade(store));
        std::ptr::addr_eq(first.as_ptr(), Arc::as_ptr(store))
    }

    /// Reads events of a run, and keeps them for other readers.
    pub(super) async fn read(
        &self,
        store: &Arc<dyn EventStore>,
        run: &RunId,
        from: Seq,
    ) -> Result<ReadEvents, StoreError> {
        let (query, is_fresh) = {
            let mut window = self.window.lock();
            if let Some(events) = window.after(from) {
                return Ok(ReadEvents { events, is_fresh: false });
            }
            if from < window.end && !window.events.is_empty() {
                (None, true)
            } else if let Some(query) = window.reading(from) {
                (Some(query), false)
            } else {
                let query = self.ask(store, run, from);
                window.reading = query.downgrade().map(|query| (from, query));
                (Some(query), true)
            }
        };
        match query {
            Some(query) => Ok(ReadEvents { events: query.await?, is_fresh }),
            None => alone(store, run, from).await,
        }
    }

    fn ask(&self, store: &Arc<dyn EventStore>, run: &RunId, from: Seq) -> Query<Events> {
        // The window has the answer.
        let (store, run, window) = (Arc::clone(store), run.clone(), Arc::downgrade(&self.window));
        let query = async move {
            let read = alone(&store, &run, from).await;
            if let Some(window) = window.upgrade() {
                let mut window = window.lock();
                window.reading.take_if(|(at, _)| *at == from);
                if let Ok(read) = &read {
                    window.extend(from, &read.events);
                }
            }
            read.map(|read| read.events)
        };
        query.boxed().shared()
    }

    /// Drops the events and the state, for a run with a single reader.
    pub(super) fn clear(&self) {
        *self.window.lock() = EventWindow::default();
        *self.settled.lock() = None;
    }

    /// Returns whether the run has settled at a position, for which one of the readers there asks.
    pub(super) async fn settled<F>(&self, at: Seq, ask: impl FnOnce() -> F + Send) -> Result<SettledAt, StoreError>
    where
        F: Future<Output = Result<SettledAt, StoreError>> + Send + 'static,
    {
        let query = {
            let mut settled = self.settled.lock();
            match &*settled {
                Some((known, SettledQuery::Known(answer))) if *known == at => return Ok(answer.clone()),
                Some((known, SettledQuery::Asked(query))) if *known == at => query.upgrade(),
                _ => None,
            }
            .unwrap_or_else(|| {
                let query = ask().boxed().shared();
                *settled = query.downgrade().map(|query| (at, SettledQuery::Asked(query)));
                query
            })
        };
        let answer = query.await;
        let mut settled = self.settled.lock();
        match &answer {
            Ok(answer) if answer.is_final() => *settled = Some((at, SettledQuery::Known(answer.clone()))),
            // Another reader may not have taken this answer yet, and must not keep it for the next query.
            _ => drop(settled.take_if(|(known, query)| *known == at && matches!(query, SettledQuery::Asked(_)))),
        }
        drop(settled);
        answer
    }
}

impl EventWindow {
    /// Returns the query for the events from a number on, while a reader waits for it.
    fn reading(&self, from: Seq) -> Option<Query<Events>> {
        self.reading.as_ref().filter(|(at, _)| *at == from)?.1.upgrade()
    }

    /// Returns the events from a number on, if there are any and none is missing.
    fn after(&self, from: Seq) -> Option<Events> {
        let first = self.events.front()?.seq;
        let skipped = Seq(from.0.checked_sub(first.0)?).index();
        (from < self.end).then(|| self.events.iter().skip(skipped).cloned().collect())
    }

    /// Adds events that were read from a number on.
    fn extend(&mut self, from: Seq, events: &Events) {
        if from < self.end && !self.events.is_empty() {
            return;
        }
        if from != self.end {
            self.events.clear();
        }
        self.end = Seq(from.0.saturating_add(events.len() as u64));
        self.events.extend(events.iter().cloned());
        let surplus = self.events.len().saturating_sub(WINDOW);
        self.events.drain(..surplus);
    }
}

/// Reads events for one reader.
pub(super) async fn alone(store: &Arc<dyn EventStore>, run: &RunId, from: Seq) -> Result<ReadEvents, StoreError> {
    Ok(ReadEvents { events: store.read(run, from, WINDOW).await?.into(), is_fresh: true })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{EventKind, Path, Timestamp};

    fn events(range: std::ops::Range<u64>) -> Events {
        let event = |seq| Event {
            seq: Seq(seq),
            at: Timestamp(0),
            epoch: None,
            clock: None,
            with_next: false,
            path: Path::root(),
            kind: EventKind::BrainComplete { result: seq.into() },
        };
        range.map(|seq| Arc::new(event(seq))).collect()
    }

    fn numbers(events: Option<Events>) -> Option<(u64, u64)> {
        let events = events?;
        Some((events.front()?.seq.0, events.back()?.seq.0))
    }

    #[tokio::test]
    async fn query_ends_with_its_last_reader() {
        let log = SharedLog::default();
        let (sender, mut ended) = tokio::sync::oneshot::channel::<()>();
        let never = || async move {
            let _sender = sender;
            std::future::pending().await
        };
        let mut reader = Box::pin(log.settled(Seq(3), never));
        assert!(futures::poll!(&mut reader).is_pending());
        let other = log.settled(Seq(3), || async { unreachable!("the query is shared") });
        let mut other = Box::pin(other);
        assert!(futures::poll!(&mut other).is_pending());

        drop(reader);
        assert!(
            matches!(ended.try_recv(), Err(tokio::sync::oneshot::error::TryRecvError::Empty)),
            "the other reader waits for it"
        );
        drop(other);
        assert!(matches!(ended.try_recv(), Err(tokio::sync::oneshot::error::TryRecvError::Closed)));
        let again = log.settled(Seq(3), || async { Ok(SettledAt::Not { is_final: true }) }).await;
        assert!(again.is_ok_and(|answer| answer.is_final()));
    }

    #[test]
    fn window_keeps_the_last_events_without_gaps() {
        let mut window = EventWindow::default();
        assert_eq!(numbers(window.after(Seq(0))), None);
        window.extend(Seq(0), &events(0..200));
        window.extend(Seq(200), &events(200..300));
        window.extend(Seq(200), &events(200..210));

        assert_eq!(numbers(window.after(Seq(43))), None, "too old");
        assert_eq!(numbers(window.after(Seq(44))), Some((44, 299)));
        assert_eq!(numbers(window.after(Seq(299))), Some((299, 299)));
        assert_eq!(numbers(window.after(Seq(300))), None, "not read yet");
        window.extend(Seq(500), &events(500..501));
        assert_eq!(numbers(window.after(Seq(299))), None, "older than the gap");
        assert_eq!(numbers(window.after(Seq(500))), Some((500, 500)));
    }
}
