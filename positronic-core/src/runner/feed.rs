//! Feeds a sink from the store, at the sink's own pace.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::{Notify, mpsc, watch};

use crate::record::{Body, Delta, RunId, Seq};
use crate::sink::EventSink;
use crate::store::{EventStore, Watcher};

/// How many deltas may wait for a slow sink; later ones are dropped.
const DELTAS: usize = 1024;
/// How many events are read at once.
const CHUNK: usize = 256;
/// How often a failing sink is offered an event, and how long after the first failure it is offered again; the pause
/// doubles each time, to 25 s in all.
const TRIES: u32 = 9;
const PAUSE: Duration = Duration::from_millis(50);

/// The way to one sink of one run.
pub(super) struct Feed {
    deltas: mpsc::Sender<(Seq, Delta)>,
    position: watch::Receiver<Seq>,
    bell: Arc<Bell>,
}

struct Bell(Notify);

impl Watcher for Bell {
    fn appended(&self, _: &RunId, _: Seq) {
        self.0.notify_one();
    }
}

impl Feed {
    /// Begins to feed a sink with a run's events from a number on.
    pub(super) fn start(sink: Arc<dyn EventSink>, store: Arc<dyn EventStore>, run: RunId, from: Seq) -> Self {
        let (deltas, receiver) = mpsc::channel(DELTAS);
        let (sender, position) = watch::channel(from);
        let bell = Arc::new(Bell(Notify::new()));
        let watcher: Arc<dyn Watcher> = Arc::clone(&bell) as Arc<dyn Watcher>;
        store.watch(Some(&run), Arc::downgrade(&watcher) as Weak<dyn Watcher>);
        let (early, next, ended) = (None, from, false);
        let task = Task { sink, store, run, position: sender, deltas: receiver, early, next, ended };
        tokio::spawn(task.work(Arc::clone(&bell)));
        Self { deltas, position, bell }
    }

    /// Shows a piece of an answer after all events before `after`.
    pub(super) fn delta(&self, after: Seq, delta: &Delta) {
        _ = self.deltas.try_send((after, delta.clone()));
    }

    /// Waits until the sink has taken all events before `next`, or is given up.
    pub(super) async fn reached(&self, next: Seq) {
        self.bell.0.notify_one();
        _ = self.position.clone().wait_for(|position| *position >= next).await;
    }
}

struct Task {
    sink: Arc<dyn EventSink>,
    store: Arc<dyn EventStore>,
    run: RunId,
    position: watch::Sender<Seq>,
    deltas: mpsc::Receiver<(Seq, Delta)>,
    /// A delta that came before its place in the log was reached.
    early: Option<(Seq, Delta)>,
    next: Seq,
    ended: bool,
}

/// The sink failed too often.
struct GivenUp;

impl Task {
    async fn work(mut self, bell: Arc<Bell>) {
        while self.deliver().await.is_ok() && !self.ended {
            tokio::select! {
                biased;
                delta = self.deltas.recv(), if self.early.is_none() => match delta {
                    Some(delta) => self.early = Some(delta),
                    None => {
                        _ = self.deliver().await;
                        return;
                    }
                },
                () = bell.0.notified() => {}
            }
        }
    }

    /// Delivers all events that there are, and the deltas in their places.
    async fn deliver(&mut self) -> Result<(), GivenUp> {
        loop {
            let events = match self.store.read(&self.run, self.next, CHUNK).await {
                Ok(events) => events,
                Err(error) => {
                    tracing::warn!(run = %self.run, sink = self.sink.name(), %error, "a sink cannot be fed");
                    return Err(GivenUp);
                }
            };
            for event in &events {
                self.show(event.seq);
                self.offer(event).await?;
                self.next = event.seq.next();
                self.ended |= event.path.is_root()
                    && matches!(
                        event.body,
                        Body::BrainComplete { .. } | Body::BrainError(_) | Body::BrainCancelled { .. }
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
            self.sink.delta(&self.run, &delta);
        }
    }

    async fn offer(&self, event: &Arc<crate::record::Event>) -> Result<(), GivenUp> {
        let mut pause = PAUSE;
        for tried in 1.. {
            let Err(error) = self.sink.event(&self.run, event).await else { return Ok(()) };
            let (run, sink, seq) = (&self.run, self.sink.name(), event.seq);
            if tried == TRIES {
                tracing::warn!(%run, sink, %seq, %error, "the sink is given up; the run goes on");
                return Err(GivenUp);
            }
            tracing::debug!(%run, sink, %seq, %error, tried, "the sink is offered the event again");
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        Ok(())
    }
}
