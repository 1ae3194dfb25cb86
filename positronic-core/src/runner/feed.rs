//! Feeds a sink from the store, at the sink's own pace.
//!
//! A sink has one feed a run, whoever holds the run and however often; once nobody does, the feed ends, and it is
//! remembered how far it came. So a run that is let go of and taken up again has no gap for its sinks, and two who hold
//! it show nothing twice.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{Notify, mpsc, watch};

use crate::record::{Delta, Event, EventKind, RunId, Seq};
use crate::sink::EventSink;
use crate::store::{EventStore, Watcher};

/// How many deltas may wait for a slow sink; later ones are dropped.
const DELTAS: usize = 1024;
/// How many events are read at once.
const CHUNK: usize = 256;
/// How often a failing sink is offered an event, or a failing store asked for one, and how long after the first failure
/// that is done again; the pause doubles each time, to 12.75 s in all.
const TRIES: u32 = 9;
const PAUSE: Duration = Duration::from_millis(50);
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
    deltas: mpsc::Sender<(Seq, Delta)>,
    position: watch::Receiver<Seq>,
    bell: Arc<Bell>,
    leases: AtomicUsize,
}

struct Bell(Notify);

impl Watcher for Bell {
    fn appended(&self, _: &RunId, _: Seq) {
        self.0.notify_one();
    }
}

impl Feeds {
    pub(super) fn new(sink: Arc<dyn EventSink>) -> Arc<Self> {
        Arc::new(Self { sink, runs: Mutex::default() })
    }

    /// Feeds the sink with a run's events: from where it says that it is, else from where it was fed last, else from
    /// `from` on. `over` says whether the run was over when `from` was read.
    pub(super) fn feed(self: &Arc<Self>, store: &Arc<dyn EventStore>, run: &RunId, from: Seq, over: bool) -> Feed {
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
        let (deltas, receiver) = mpsc::channel(DELTAS);
        // Nothing counts as taken before the sink has said where it is.
        let (sender, position) = watch::channel(Seq(0));
        let bell = Arc::new(Bell(Notify::new()));
        let watcher: Arc<dyn Watcher> = Arc::clone(&bell) as Arc<dyn Watcher>;
        store.watch(Some(run), Arc::downgrade(&watcher) as Weak<dyn Watcher>);
        let line = Arc::new(Line { deltas, position, bell, leases: AtomicUsize::new(1) });
        runs.remember(run.clone(), Known::Fed(Arc::clone(&line)));
        drop(runs);
        let task = Task {
            feeds: Arc::clone(self),
            line: Arc::clone(&line),
            store: Arc::clone(store),
            run: run.clone(),
            position: sender,
            deltas: receiver,
            early: None,
            next,
            from,
            over,
        };
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
    /// Shows a piece of an answer after all events before `after`.
    pub(super) fn delta(&self, after: Seq, delta: &Delta) {
        _ = self.0.deltas.try_send((after, delta.clone()));
    }

    /// Waits until the sink has taken all events before `next`, or is given up. Says whether it has.
    pub(super) async fn reached(&self, next: Seq) -> bool {
        self.0.bell.0.notify_one();
        self.0.position.clone().wait_for(|position| *position >= next).await.is_ok()
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.0.leases.fetch_sub(1, Ordering::AcqRel);
        self.0.bell.0.notify_one();
    }
}

struct Task {
    feeds: Arc<Feeds>,
    line: Arc<Line>,
    store: Arc<dyn EventStore>,
    run: RunId,
    position: watch::Sender<Seq>,
    deltas: mpsc::Receiver<(Seq, Delta)>,
    /// A delta that came before its place in the log was reached.
    early: Option<(Seq, Delta)>,
    next: Seq,
    /// Where it begins if the log does not go as far as `next`: then the run was removed and taken in anew. Else whoever
    /// began this feed has read the log before the last events that were shown.
    from: Seq,
    over: bool,
}

/// The sink or the store failed too often.
struct GivenUp;

impl Task {
    async fn work(mut self) {
        let line = Arc::clone(&self.line);
        self.begin().await;
        while self.deliver().await.is_ok() && !self.leaves() {
            tokio::select! {
                biased;
                Some(delta) = self.deltas.recv(), if self.early.is_none() => self.early = Some(delta),
                () = line.bell.0.notified() => {}
            }
        }
    }

    /// Asks the sink where it is. `position` is author's code, so it runs here and not in the task that starts the run.
    async fn begin(&mut self) {
        if let Some(position) = self.feeds.sink.position(&self.run) {
            self.next = position;
        } else if self.from < self.next && self.store.run(&self.run).await.is_ok_and(|row| row.next < self.next) {
            self.next = self.from;
        }
        _ = self.position.send_replace(self.next);
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
            *known = Known::Until { next: self.next, over: self.over };
        }
    }

    /// Delivers all events that there are, and the deltas in their places.
    async fn deliver(&mut self) -> Result<(), GivenUp> {
        loop {
            let events = self.read().await?;
            for event in &events {
                self.show(event.seq);
                self.offer(event).await?;
                self.next = event.seq.next();
                self.over |= event.path.is_root()
                    && matches!(
                        event.kind,
                        EventKind::BrainComplete { .. } | EventKind::BrainError(_) | EventKind::BrainCancelled { .. }
                    );
                _ = self.position.send_replace(self.next);
            }
            if events.is_empty() {
                self.show(self.next);
                return Ok(());
            }
        }
    }

    /// Shows the deltas that stand before event `next`. A piece of an answer is sent before the event that holds the
    /// answer is appended, so whoever has read that event finds the piece here.
    fn show(&mut self, next: Seq) {
        while let Some((after, delta)) = self.early.take().or_else(|| self.deltas.try_recv().ok()) {
            if after > next {
                self.early = Some((after, delta));
                return;
            }
            self.feeds.sink.delta(&self.run, &delta);
        }
    }

    async fn read(&self) -> Result<Vec<Arc<Event>>, GivenUp> {
        let mut patience = Patience::default();
        loop {
            match self.store.read(&self.run, self.next, CHUNK).await {
                Ok(events) => return Ok(events),
                Err(error) => patience.pause(self, &error).await?,
            }
        }
    }

    async fn offer(&self, event: &Arc<Event>) -> Result<(), GivenUp> {
        let mut patience = Patience::default();
        while let Err(error) = self.feeds.sink.event(&self.run, event).await {
            patience.pause(self, &error).await?;
        }
        Ok(())
    }
}

/// Counts how often in a row something failed.
#[derive(Default)]
struct Patience(u32);

impl Patience {
    async fn pause(&mut self, task: &Task, error: &(dyn std::error::Error + Sync)) -> Result<(), GivenUp> {
        let (run, sink, seq) = (&task.run, task.feeds.sink.name(), task.next);
        let pause = PAUSE * 2_u32.pow(self.0);
        self.0 += 1;
        if self.0 == TRIES {
            tracing::warn!(%run, sink, %seq, %error, "the sink is given up; the run goes on");
            return Err(GivenUp);
        }
        tracing::debug!(%run, sink, %seq, %error, tried = self.0, "the sink is offered the event again");
        tokio::time::sleep(pause).await;
        Ok(())
    }
}

impl Drop for Task {
    /// Remembers how far the sink came, also where it was given up or panicked: whoever holds the run next tries again.
    fn drop(&mut self) {
        if std::thread::panicking() {
            tracing::warn!(run = %self.run, seq = %self.next, "the sink panicked and is given up; the run goes on");
        }
        let feeds = Arc::clone(&self.feeds);
        self.settle(&mut feeds.runs());
    }
}

#[cfg(test)]
mod tests;
