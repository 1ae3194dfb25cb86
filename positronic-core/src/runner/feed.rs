//! Feeds a sink from the store, at the sink's own pace.
//!
//! A sink has one feed a run, whoever holds the run and however often; once nobody does, the feed ends, and it is
//! remembered how far it came. So a run that is let go of and taken up again has no gap for its sinks, and two who hold
//! it show nothing twice.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::follower::{Followed, Follower, LogBell, pauses};
use super::live::LiveDeltas;
use crate::record::{Event, EventKind, RunId, Seq};
use crate::sink::EventSink;
use crate::store::EventStore;

/// How many runs are remembered at least before those that are over are forgotten.
const REMEMBERED: usize = 1024;

/// The feeds of one sink. Clones of a runner share them.
pub(super) struct Feeds {
    sink: Arc<dyn EventSink>,
    runs: Mutex<Runs>,
}

#[derive(Default)]
struct Runs {
    known: HashMap<RunId, Known>,
    /// At how many runs those that are over are forgotten.
    full: usize,
}

/// What is known of a run.
enum Known {
    /// It is fed.
    Fed(Arc<Line>),
    /// It was fed up to there.
    Until { next: Seq, over: bool },
}

/// The way to the task of a feed.
struct Line {
    position: watch::Receiver<Seq>,
    bell: Arc<LogBell>,
    leases: AtomicUsize,
}

impl Feeds {
    pub(super) fn new(sink: Arc<dyn EventSink>) -> Arc<Self> {
        Arc::new(Self { sink, runs: Mutex::default() })
    }

    /// Feeds the sink with a run's events: from where it says that it is, else from where it was fed last, else from
    /// `from` on. `over` says whether the run was over when `from` was read.
    pub(super) fn feed(
        self: &Arc<Self>,
        store: &Arc<dyn EventStore>,
        live: &LiveDeltas,
        run: &RunId,
        from: Seq,
        over: bool,
    ) -> Feed {
        let mut runs = self.runs();
        let (next, over) = match runs.known.get(run) {
            Some(Known::Fed(line)) => {
                line.leases.fetch_add(1, Ordering::AcqRel);
                return Feed(Arc::clone(line));
            }
            // What begins now has the id of a run that was removed.
            _ if from == Seq(0) => (from, over),
            Some(Known::Until { next, over }) => (*next, *over),
            None => (from, over),
        };
        // Nothing counts as taken before the sink has said where it is.
        let (sender, position) = watch::channel(Seq(0));
        let follower = Follower::new(store, live, run, next);
        let line = Arc::new(Line { position, bell: Arc::clone(follower.bell()), leases: AtomicUsize::new(1) });
        runs.remember(run.clone(), Known::Fed(Arc::clone(&line)));
        drop(runs);
        let (feeds, store) = (Arc::clone(self), Arc::clone(store));
        let task =
            Task { feeds, line: Arc::clone(&line), store, run: run.clone(), position: sender, follower, from, over };
        tokio::spawn(task.work());
        Feed(line)
    }

    fn runs(&self) -> MutexGuard<'_, Runs> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Runs {
    fn remember(&mut self, run: RunId, known: Known) {
        self.known.insert(run, known);
        if self.known.len() > self.full {
            self.known.retain(|_, known| !matches!(known, Known::Until { over: true, .. }));
            self.full = (2 * self.known.len()).max(REMEMBERED);
        }
    }
}

/// A run's hold on the feed of one sink.
pub(super) struct Feed(Arc<Line>);

impl Feed {
    /// Waits until the sink has taken all events before `next`, or is given up. Says whether it has.
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

struct Task {
    feeds: Arc<Feeds>,
    line: Arc<Line>,
    store: Arc<dyn EventStore>,
    run: RunId,
    position: watch::Sender<Seq>,
    follower: Follower,
    /// Where it begins if the log does not go as far as the sink was fed: then the run was removed and taken in anew. Else whoever
    /// began this feed has read the log before the last events that were shown.
    from: Seq,
    over: bool,
}

/// The sink or the store failed too often.
struct GivenUp;

impl Task {
    async fn work(mut self) {
        self.begin().await;
        while self.deliver().await.is_ok() && !self.leaves() {
            self.follower.more().await;
        }
    }

    /// Asks the sink where it is. `position` is author's code, so it runs here and not in the task that starts the run.
    async fn begin(&mut self) {
        let next = self.follower.position();
        if let Some(position) = self.feeds.sink.position(&self.run) {
            self.follower.seek(position);
        } else if self.from < next && self.store.run(&self.run).await.is_ok_and(|row| row.next < next) {
            self.follower.seek(self.from);
        }
        _ = self.position.send_replace(self.follower.position());
    }

    /// Ends the feed where nobody holds it: from then on, whoever does begins a new one.
    fn leaves(&self) -> bool {
        let mut runs = self.feeds.runs();
        let leaves = self.line.leases.load(Ordering::Acquire) == 0;
        if leaves {
            self.settle(&mut runs);
        }
        leaves
    }

    fn settle(&self, runs: &mut Runs) {
        if let Some(known) = runs.known.get_mut(&self.run)
            && matches!(known, Known::Fed(line) if Arc::ptr_eq(line, &self.line))
        {
            *known = Known::Until { next: self.taken(), over: self.over };
        }
    }

    /// Returns the number of the next event for the sink.
    fn taken(&self) -> Seq {
        *self.position.borrow()
    }

    /// Delivers all events that there are, and the deltas in their places.
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
        let mut pauses = pauses();
        while let Err(error) = self.feeds.sink.event(&self.run, event).await {
            let Some(pause) = pauses.next() else { return Err(self.give_up(&error)) };
            let (run, sink, seq) = (&self.run, self.feeds.sink.name(), event.seq);
            tracing::debug!(%run, sink, %seq, %error, "the sink is offered the event again");
            tokio::time::sleep(pause).await;
        }
        Ok(())
    }

    fn give_up(&self, error: &(dyn std::error::Error + Sync)) -> GivenUp {
        let (run, sink, seq) = (&self.run, self.feeds.sink.name(), self.taken());
        tracing::warn!(%run, sink, %seq, %error, "the sink is given up; the run goes on");
        GivenUp
    }
}

impl Drop for Task {
    /// Remembers how far the sink came, also where it was given up or panicked: whoever holds the run next tries again.
    fn drop(&mut self) {
        if std::thread::panicking() {
            tracing::warn!(run = %self.run, seq = %self.taken(), "the sink panicked and is given up; the run goes on");
        }
        let feeds = Arc::clone(&self.feeds);
        self.settle(&mut feeds.runs());
    }
}

#[cfg(test)]
mod tests;
