//! Feeds a sink with a run's events from the store, at the sink's own pace.
//!
//! A sink has one feed per run, shared by all handles of the run. When the last handle is dropped, the feed ends and
//! its position is stored, so a run that is released and claimed again shows its sinks every event once and without
//! gaps. The position of a durable sink is also in the store: at most once a second, and when the feed ends. What a worker
//! that died did not deliver is found there ([`SinkStore::take_sink`](crate::store::SinkStore::take_sink)).

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use backon::Retryable as _;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use super::follower::{Followed, Follower, LogBell};
use super::live::LiveDeltas;
use crate::record::{Event, EventKind, RunId, Seq};
use crate::runner::clock::pauses;
use crate::runner::worker::lease::LeaseKeeper;
use crate::sink::EventSink;
use crate::store::EventStore;

/// How often the position of a durable sink is stored.
const SAVE: Duration = Duration::from_secs(1);

/// The minimum number of ended runs whose positions are stored.
const REMEMBERED: usize = 1024;

/// The feeds of one sink. Clones of a runner share them.
pub(in crate::runner) struct Feeds {
    sink: Arc<dyn EventSink>,
    runs: Mutex<FeedRuns>,
}

#[derive(Default)]
struct FeedRuns {
    known: HashMap<RunId, FeedState>,
    /// The number of runs at which the positions of ended runs are removed.
    full: usize,
}

/// The feed of a run.
enum FeedState {
    /// It is active.
    Fed(Arc<FeedLine>),
    /// It ended before this event.
    Until { next: Seq, over: bool },
}

/// The connection to the task of a feed.
struct FeedLine {
    position: watch::Receiver<Seq>,
    bell: Arc<LogBell>,
    leases: AtomicUsize,
}

impl Feeds {
    pub(in crate::runner) fn new(sink: Arc<dyn EventSink>) -> Arc<Self> {
        Arc::new(Self { sink, runs: Mutex::default() })
    }

    /// Returns feeds of the same sink for the runs of another store.
    pub(in crate::runner) fn for_another_store(&self) -> Arc<Self> {
        Self::new(Arc::clone(&self.sink))
    }

    /// Returns the name of a durable sink.
    pub(in crate::runner) fn durable(&self) -> Option<&str> {
        self.sink.is_durable().then(|| self.sink.name())
    }

    /// Feeds the sink with a run's events: from its own position, else from the stored one, else from `from`.
    /// `over` says whether the run had ended when `from` was read.
    pub(in crate::runner) fn feed(
        self: &Arc<Self>,
        store: &Arc<dyn EventStore>,
        (live, lease): (&LiveDeltas, &LeaseKeeper),
        run: &RunId,
        from: Seq,
        over: bool,
    ) -> Feed {
        let mut runs = self.runs.lock();
        let (next, over, is_known) = match runs.known.get(run) {
            Some(FeedState::Fed(line)) => {
                line.leases.fetch_add(1, Ordering::AcqRel);
                return Feed(Arc::clone(line));
            }
            // A new run with the id of a removed one.
            _ if from == Seq(0) => (from, over, false),
            Some(FeedState::Until { next, over }) => (*next, *over, true),
            None => (from, over, false),
        };
        // No event counts as delivered before the sink has returned its position.
        let (sender, position) = watch::channel(Seq(0));
        let follower = Follower::new(store, live, run, next);
        let line = Arc::new(FeedLine { position, bell: Arc::clone(follower.bell()), leases: AtomicUsize::new(1) });
        runs.remember(run.clone(), FeedState::Fed(Arc::clone(&line)));
        drop(runs);
        let (feeds, store) = (Arc::clone(self), Arc::clone(store));
        let task = FeedTask {
            feeds,
            line: Arc::clone(&line),
            store,
            lease: lease.clone(),
            run: run.clone(),
            position: sender,
            follower,
            from,
            over,
            is_known,
            saved: None,
        };
        tokio::spawn(task.work());
        Feed(line)
    }
}

impl FeedRuns {
    fn remember(&mut self, run: RunId, known: FeedState) {
        self.known.insert(run, known);
        if self.known.len() > self.full {
            self.known.retain(|_, known| !matches!(known, FeedState::Until { over: true, .. }));
            self.full = (2 * self.known.len()).max(REMEMBERED);
        }
    }
}

/// A run's share of the feed of a sink.
pub(in crate::runner) struct Feed(Arc<FeedLine>);

impl Feed {
    /// Waits until the sink has taken all events before `next`, or was given up. Returns whether it has taken
    /// them.
    pub(super) async fn reached(&self, next: Seq) -> bool {
        self.0.bell.ring(next);
        self.0.position.clone().wait_for(|position| *position >= next).await.is_ok()
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.0.leases.fetch_sub(1, Ordering::AcqRel);
        self.0.bell.ring(Seq(0));
    }
}

struct FeedTask {
    feeds: Arc<Feeds>,
    line: Arc<FeedLine>,
    store: Arc<dyn EventStore>,
    lease: LeaseKeeper,
    run: RunId,
    position: watch::Sender<Seq>,
    follower: Follower,
    /// The first event if the log is shorter than the feed's position: then the run was removed and imported
    /// again. Otherwise the reader of this feed knows the log before the last delivered events.
    from: Seq,
    over: bool,
    /// Whether the feed begins after the last delivered event.
    is_known: bool,
    /// The last stored position, and when it was stored.
    saved: Option<(Seq, Instant)>,
}

/// The sink or the store failed too often.
struct GivenUp;

impl FeedTask {
    async fn work(mut self) {
        self.begin().await;
        while self.deliver().await.is_ok() {
            let is_last = self.line.leases.load(Ordering::Acquire) == 0;
            self.save(is_last).await;
            if !is_last {
                self.follower.more().await;
            } else if self.leaves() {
                return;
            }
        }
    }

    /// Stores the position of a durable sink, from time to time and at the end.
    async fn save(&mut self, is_last: bool) {
        let Some(sink) = self.feeds.durable() else { return };
        let (next, now) = (self.taken(), Instant::now());
        let is_early = self.saved.is_some_and(|(saved, at)| saved == next || now.duration_since(at) < SAVE);
        if is_early && !is_last {
            return;
        }
        let owner = self.lease.owner().filter(|_| is_last);
        if let Err(error) = self.store.set_sink_position(&self.run, sink, next, owner.as_deref()).await {
            tracing::warn!(run = %self.run, sink, %error, "the sink's position was not stored; it may get events again");
        }
        self.saved = Some((next, now));
    }

    /// Returns the stored position of a durable sink.
    async fn stored(&self) -> Option<Seq> {
        let sink = self.feeds.durable()?;
        let read = || self.store.sink_position(&self.run, sink);
        read.retry(pauses()).await.ok().flatten()
    }

    /// Asks the sink for its position. `position` is the author's code, so it does not run in the task that
    /// starts the run.
    async fn begin(&mut self) {
        let next = self.follower.position();
        if let Some(position) = self.feeds.sink.position(&self.run) {
            self.follower.seek(position);
        } else if let Some(stored) = self.stored().await {
            self.follower.seek(if self.is_known { stored.max(next) } else { stored });
        } else if self.from < next && self.store.run(&self.run).await.is_ok_and(|row| row.next < next) {
            self.follower.seek(self.from);
        }
        _ = self.position.send_replace(self.follower.position());
    }

    /// Ends the feed if no handle shares it; the next handle begins a new one.
    fn leaves(&self) -> bool {
        let mut runs = self.feeds.runs.lock();
        let leaves = self.line.leases.load(Ordering::Acquire) == 0;
        if leaves {
            self.settle(&mut runs);
        }
        leaves
    }

    fn settle(&self, runs: &mut FeedRuns) {
        if let Some(known) = runs.known.get_mut(&self.run)
            && matches!(known, FeedState::Fed(line) if Arc::ptr_eq(line, &self.line))
        {
            *known = FeedState::Until { next: self.taken(), over: self.over };
        }
    }

    /// Returns the number of the next event for the sink.
    fn taken(&self) -> Seq {
        *self.position.borrow()
    }

    /// Delivers all available events, and the deltas between them.
    async fn deliver(&mut self) -> Result<(), GivenUp> {
        loop {
            match self.follower.next().await {
                Ok(Some(Followed::Delta(delta))) => self.feeds.sink.delta(&self.run, &delta),
                Ok(Some(Followed::Event(event))) => {
                    self.offer(&event).await?;
                    self.over |= event.path.is_root()
                        && matches!(
                            event.kind,
                            EventKind::BrainComplete { .. }
                                | EventKind::BrainError(_)
                                | EventKind::BrainCancelled { .. }
                        );
                    _ = self.position.send_replace(event.seq.next());
                }
                Ok(None) => return Ok(()),
                Err(error) => return Err(self.give_up(&error)),
            }
        }
    }

    async fn offer(&self, event: &Arc<Event>) -> Result<(), GivenUp> {
        let (run, sink, seq) = (&self.run, &self.feeds.sink, event.seq);
        (|| sink.event(run, event))
            .retry(pauses())
            .notify(|error, _| tracing::debug!(%run, sink = sink.name(), %seq, %error, "retrying the event"))
            .await
            .map_err(|error| self.give_up(&error))
    }

    fn give_up(&self, error: &(dyn std::error::Error + Sync)) -> GivenUp {
        let (run, sink, seq) = (&self.run, self.feeds.sink.name(), self.taken());
        tracing::warn!(%run, sink, %seq, %error, "gave up the sink; the run continues");
        GivenUp
    }
}

impl Drop for FeedTask {
    /// Stores the position, even if the sink was given up or panicked: the next handle tries again.
    fn drop(&mut self) {
        if std::thread::panicking() {
            tracing::warn!(run = %self.run, seq = %self.taken(), "the sink panicked; gave it up, the run continues");
        }
        let feeds = Arc::clone(&self.feeds);
        self.settle(&mut feeds.runs.lock());
    }
}

#[cfg(test)]
mod tests;
