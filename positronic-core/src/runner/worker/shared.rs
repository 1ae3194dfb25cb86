//! The current state of a run, shared by its worker and its handles.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use tokio::sync::{Notify, watch};

use super::append::{Extras, append, append_of, follow, index};
use super::stop_reason::ResumeError;
use crate::definition::BrainDefinition;
use crate::machine::RunState;
use crate::projection::Prompts;
use crate::record::{Event, RunId, RunSummary, Seq, Start, Timestamp};
use crate::runner::Runner;
use crate::runner::client::live::LiveRun;
use crate::runner::client::sink_feed::{Feed, Feeds};
use crate::runner::serve::backoffs::defer;
use crate::store::{Deferral, StoreError, Watcher};

/// Starts a run, for the code of another one; the error is for its author. It is passed in, since a start begins a worker.
pub(in crate::runner) type StartRun =
    fn(Runner, Arc<BrainDefinition>, Value, Start) -> BoxFuture<'static, Result<(), String>>;

pub(in crate::runner) struct Shared {
    pub(in crate::runner) runner: Runner,
    /// Starts a child of the run.
    pub(in crate::runner) start_run: StartRun,
    pub(in crate::runner) run: RunId,
    /// The brain's code; `None` for a run that was only opened.
    pub(in crate::runner) definition: Option<Arc<BrainDefinition>>,
    /// Whether a server continues the run after a wait, instead of the runner itself.
    pub(in crate::runner) served: bool,
    feeds: OnceLock<Vec<Feed>>,
    /// Receives the deltas of the run's answers.
    pub(in crate::runner) live: Arc<LiveRun>,
    pub(in crate::runner) settled: watch::Sender<(WorkerPhase, Seq)>,
    /// The last reason for which a worker stopped. `settled` has it only until the next phase, which may follow at once.
    pub(in crate::runner) stopped: watch::Sender<Option<ResumeError>>,
    /// Notified when another writer has appended, and when the last handle is dropped.
    pub(in crate::runner) bell: Arc<Notify>,
    /// The number up to which the worker itself appends, so that its own events do not wake it.
    pub(super) own: AtomicU64,
    /// The number up to which the last known snapshot goes.
    pub(super) snapshot: AtomicU64,
    state: Mutex<RunState>,
    prompts: Mutex<Prompts>,
    summary: Mutex<RunSummary>,
}

/// What a worker is doing, as of an event number.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::runner) enum WorkerPhase {
    Working,
    Suspended,
    Ended,
    Stopped(ResumeError),
}

/// A run as of an event.
pub(in crate::runner) struct Folded {
    pub(in crate::runner) state: RunState,
    pub(in crate::runner) prompts: Prompts,
    pub(in crate::runner) summary: RunSummary,
    /// The number up to which the last snapshot goes.
    pub(in crate::runner) snapshot: Seq,
}

impl Shared {
    /// Creates the shared part of a run, without feeding its sinks.
    pub(in crate::runner) fn new(
        (runner, start_run): (Runner, StartRun),
        run: RunId,
        definition: Option<Arc<BrainDefinition>>,
        served: bool,
        folded: Folded,
    ) -> Arc<Self> {
        let Folded { state, prompts, summary, snapshot } = folded;
        let shared = Arc::new(Self {
            settled: watch::Sender::new((WorkerPhase::Working, state.next)),
            stopped: watch::Sender::new(None),
            bell: Arc::new(Notify::new()),
            own: AtomicU64::new(state.next.0),
            snapshot: AtomicU64::new(snapshot.0),
            state: Mutex::new(state),
            prompts: Mutex::new(prompts),
            summary: Mutex::new(summary),
            live: runner.state.live.of(&run),
            runner,
            start_run,
            run,
            definition,
            served,
            feeds: OnceLock::new(),
        });
        shared.runner.store.watch(Some(&shared.run), Arc::downgrade(&shared) as Weak<dyn Watcher>);
        shared
    }

    /// Feeds the runner's sinks with the run's events: from their own position, else from `from`.
    pub(in crate::runner) fn feed(&self, from: Seq) {
        let (Runner { sinks, store, state, lease, .. }, over) = (&self.runner, self.state().has_ended());
        let feed = |sink: &Arc<Feeds>| sink.feed(store, (&state.live, lease), &self.run, from, over);
        self.feeds.get_or_init(|| sinks.iter().map(feed).collect());
    }

    pub(in crate::runner) fn feeds(&self) -> &[Feed] {
        self.feeds.get().map_or(&[], Vec::as_slice)
    }

    pub(in crate::runner) fn state(&self) -> MutexGuard<'_, RunState> {
        self.state.lock()
    }

    pub(in crate::runner) fn prompts(&self) -> MutexGuard<'_, Prompts> {
        self.prompts.lock()
    }

    pub(in crate::runner) fn summary(&self) -> MutexGuard<'_, RunSummary> {
        self.summary.lock()
    }

    pub(in crate::runner) fn now(&self) -> Timestamp {
        self.runner.clock.now()
    }

    /// Returns how long something has taken.
    pub(in crate::runner) fn since(&self, started: Timestamp) -> Duration {
        self.now().since(started)
    }

    pub(in crate::runner) fn publish(&self, phase: WorkerPhase) {
        let next = self.state().next;
        if let WorkerPhase::Stopped(reason) = &phase {
            self.stopped.send_replace(Some(reason.clone()));
        }
        self.settled.send_if_modified(|known| {
            let fresh = (phase, next);
            // A worker that keeps working is not a change, and would wake every waiter at each event.
            let news = *known != fresh && (known.0 != WorkerPhase::Working || fresh.0 != WorkerPhase::Working);
            *known = fresh;
            news
        });
    }

    /// Waits until a phase fits or a worker stops, and returns the reason of a stop, which the next phase may follow before it is read.
    pub(in crate::runner) async fn until(&self, fits: impl FnMut(&(WorkerPhase, Seq)) -> bool) -> Option<ResumeError> {
        let (mut stopped, mut phases) = (self.stopped.subscribe(), self.settled.subscribe());
        // The channels stay open, since they are parts of this.
        let is_stopped = tokio::select! {
            biased;
            _ = stopped.changed() => true,
            phase = phases.wait_for(fits) => match phase.as_deref() {
                Ok((WorkerPhase::Stopped(reason), _)) => return Some(reason.clone()),
                // Another worker may have ended the run after this one had stopped.
                _ => stopped.has_changed().unwrap_or_default(),
            },
        };
        if is_stopped { stopped.borrow().clone() } else { None }
    }

    /// Replaces the state by that after these events.
    pub(in crate::runner) fn take_over(&self, after: RunState, summary: RunSummary, events: &[Arc<Event>]) {
        // Under one lock, so that no reader sees a state without its prompts.
        let mut state = self.state();
        *state = after;
        let mut prompts = self.prompts();
        for event in events {
            prompts.apply(event);
            self.live.answers.event(event);
        }
        *self.summary() = summary;
    }

    /// Tells the store when the run is due again.
    pub(in crate::runner) async fn defer(&self, deferral: &Deferral) {
        let next = self.state().next;
        defer(&*self.runner.store, &self.run, next, deferral).await;
    }

    /// Appends the events between two states without the run's worker, and takes them over. Returns `false` if another writer was first.
    pub(in crate::runner) async fn append(
        &self,
        before: &RunState,
        after: RunState,
        events: &[Arc<Event>],
        extras: Extras,
    ) -> Result<bool, StoreError> {
        let made = append_of(&self.run, before, &after, Some(&*self.summary()), events, extras);
        let summary = made.index.summary.clone();
        match append(&*self.runner.store, &self.run, made).await {
            Ok(()) => {
                self.take_over(after, summary, events);
                Ok(true)
            }
            Err(StoreError::Conflict { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Folds in the events of other writers and returns them.
    pub(in crate::runner) async fn catch_up(&self) -> Result<Vec<Arc<Event>>, ResumeError> {
        let before = self.state().clone();
        let events = self.runner.store.read(&self.run, before.next, usize::MAX).await?;
        if !events.is_empty() {
            let after = follow(&before, &events)?;
            let summary = index(&self.run, &before, &after, Some(&*self.summary()), &events).summary;
            self.take_over(after, summary, &events);
        }
        Ok(events)
    }
}

impl Watcher for Shared {
    fn appended(&self, _: &RunId, next: Seq) {
        if next.0 > self.own.load(Ordering::Acquire) {
            self.bell.notify_one();
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // Without handles the run's task can end.
        self.bell.notify_one();
    }
}
