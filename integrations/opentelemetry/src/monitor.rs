//! The event sink that folds runs into spans for its observers.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use positronic_core::record::{Event, Path, RunId, Seq};
use positronic_core::sink::{EventSink, SinkError};
use positronic_core::store::EventStore;
use tokio::sync::Notify;

use crate::spans::{RunSpans, Segment, Span, SpanId};

/// How many runs are cached. A run that is not cached is read from the store again, so this is only a matter of speed.
const HELD: usize = 4096;

/// How many events are read at once.
const CHUNK: usize = 256;

/// How long the author's code waits until its span has begun here.
const PATIENCE: Duration = Duration::from_secs(1);

/// Receives the spans of runs as they end.
pub trait Observer: Send + Sync + 'static {
    /// Receives a span that has ended. It must not block. After a crash it can get a span again, with the same id.
    fn ended(&self, span: &Span);
}

impl<T: Observer + ?Sized> Observer for Arc<T> {
    fn ended(&self, span: &Span) {
        T::ended(self, span);
    }
}

/// A durable sink that folds the events of runs into spans. Clones share them. A runner has one, with all observers: the store
/// knows it by its name.
///
/// The store keeps its position in each run, so each span gets to the observers of one process, also what ended between
/// two workers, or with a worker that died. What it needs of a run that another process has worked on, it reads from the
/// store.
#[derive(Clone)]
pub struct Monitor {
    store: Arc<dyn EventStore>,
    observers: Vec<Arc<dyn Observer>>,
    runs: Arc<Mutex<OpenRuns>>,
    changed: Arc<Notify>,
}

/// The open runs, and when each was used.
#[derive(Default)]
struct OpenRuns {
    open: HashMap<RunId, (RunSpans, u64)>,
    used: u64,
}

impl Monitor {
    /// Creates a monitor of the runs of a store: the one of the runner that gets it as a sink.
    pub fn new(store: impl EventStore) -> Self {
        let (runs, changed) = (Arc::default(), Arc::default());
        Self { store: Arc::new(store), observers: Vec::new(), runs, changed }
    }

    /// Adds an observer.
    #[must_use]
    pub fn observer(mut self, observer: impl Observer) -> Self {
        self.observers.push(Arc::new(observer));
        self
    }

    /// Returns the span in which the author's code at a path runs, with its segment. It waits until the monitor has read the
    /// event that begins the span; `None` if this process does not work on the run.
    pub async fn current(&self, run: &RunId, path: &Path) -> Option<(Arc<Segment>, SpanId)> {
        let found = async {
            loop {
                let mut changed = std::pin::pin!(self.changed.notified());
                changed.as_mut().enable();
                let spans = self.runs.lock().open.get(run).and_then(|(spans, _)| spans.current(path));
                if spans.is_some() {
                    return spans;
                }
                changed.await;
            }
        };
        tokio::time::timeout(PATIENCE, found).await.ok().flatten()
    }

    /// Folds the log before an event.
    async fn read(&self, run: &RunId, before: Seq) -> Result<RunSpans, SinkError> {
        let mut spans = RunSpans::new(run.clone());
        while spans.next() < before {
            let left = usize::try_from(before.0 - spans.next().0).unwrap_or(CHUNK);
            let events = self.store.read(run, spans.next(), CHUNK.min(left)).await;
            let events = events.map_err(|error| SinkError(format!("cannot read the events before: {error}")))?;
            if events.is_empty() {
                return Err(SinkError(format!("the log ends before event {before}")));
            }
            events.iter().for_each(|event| drop(spans.apply(event)));
        }
        Ok(spans)
    }

    async fn follow(&self, run: &RunId, event: &Event) -> Result<(), SinkError> {
        let cached = self.runs.lock().open.remove(run).map(|(spans, _)| spans);
        let mut spans = match cached {
            // It was delivered before.
            Some(spans) if spans.next() > event.seq => {
                self.runs.lock().hold(run, spans);
                return Ok(());
            }
            Some(spans) if spans.next() == event.seq => spans,
            _ => self.read(run, event.seq).await?,
        };
        for span in spans.apply(event) {
            self.observers.iter().for_each(|observer| observer.ended(&span));
        }
        if !spans.is_over() {
            self.runs.lock().hold(run, spans);
        }
        self.changed.notify_waiters();
        Ok(())
    }
}

impl OpenRuns {
    fn hold(&mut self, run: &RunId, spans: RunSpans) {
        self.used += 1;
        self.open.insert(run.clone(), (spans, self.used));
        if self.open.len() > HELD {
            let mut used: Vec<_> = self.open.values().map(|(_, used)| *used).collect();
            let (_, oldest, _) = used.select_nth_unstable(HELD / 4);
            let oldest = *oldest;
            self.open.retain(|_, (_, used)| *used > oldest);
        }
    }
}

impl EventSink for Monitor {
    fn name(&self) -> &'static str {
        "positronic-monitor"
    }

    fn is_durable(&self) -> bool {
        true
    }

    fn event<'a>(&'a self, run: &'a RunId, event: &'a Arc<Event>) -> BoxFuture<'a, Result<(), SinkError>> {
        Box::pin(self.follow(run, event))
    }
}

impl fmt::Debug for Monitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Monitor").field("runs", &self.runs.lock().open.len()).finish_non_exhaustive()
    }
}
