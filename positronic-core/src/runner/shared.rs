//! What a run's worker and the leases of the run share: the run as of now, folded from its log.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use tokio::sync::{Notify, watch};

use super::Runner;
use super::commit::{follow, index};
use super::feed::Feed;
use super::live::LiveRun;
use super::open::ResumeError;
use super::registry::LEAVES;
use crate::definition::BrainDefinition;
use crate::machine::{IllegalEvent, RunState};
use crate::projection::Prompts;
use crate::record::{Event, RunId, RunSummary, Seq, Timestamp};
use crate::store::{StoreError, Watcher};

pub(super) struct Shared {
    pub(super) runner: Runner,
    pub(super) run: RunId,
    /// The brain's code; none where the run is only looked at.
    pub(super) definition: Option<Arc<BrainDefinition>>,
    /// Whether a server of the store continues the run after a wait, and not the runner by itself.
    pub(super) served: bool,
    feeds: OnceLock<Vec<Feed>>,
    /// Takes the deltas of the run's answers.
    pub(super) live: Arc<LiveRun>,
    pub(super) settled: watch::Sender<(Phase, Seq)>,
    /// Rings when somebody else has appended, and when nobody holds the run any more.
    pub(super) bell: Arc<Notify>,
    /// The number up to which the worker itself appends, so that it is not woken by its own events.
    pub(super) own: AtomicU64,
    /// The number up to which the last snapshot goes that is known here.
    pub(super) snapshot: AtomicU64,
    state: Mutex<RunState>,
    prompts: Mutex<Prompts>,
    summary: Mutex<RunSummary>,
}

/// What a worker is doing, as of an event number.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Phase {
    Working,
    Suspended,
    Ended,
    Stopped(ResumeError),
}

/// Why a worker cannot go on, or does not begin.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(super) enum Stop {
    /// Another worker has the run.
    #[error("another worker has the run")]
    Lost,
    /// The store failed.
    #[error(transparent)]
    Store(StoreError),
    /// The log holds an event that cannot be there, or was to get one.
    #[error(transparent)]
    Illegal(#[from] IllegalEvent),
    /// The brain's code is another one than the run's.
    #[error("{0}")]
    Changed(String),
    /// The runner lets go of all its runs, and takes none any more.
    #[error("{LEAVES}")]
    Leaves,
    /// A due effect led to no event.
    #[error("the run makes no progress: a due effect led to no event; this is a bug in positronic, please report it")]
    Nothing,
    /// Code that the engine calls has panicked.
    #[error("{0}")]
    Panicked(String),
    /// The services of the brain cannot be provided now.
    #[error("cannot provide the services of the brain: {0}")]
    Services(String),
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Fenced { .. } => Self::Lost,
            other => Self::Store(other),
        }
    }
}

/// A run as of an event.
pub(super) struct Folded {
    pub(super) state: RunState,
    pub(super) prompts: Prompts,
    pub(super) summary: RunSummary,
    /// Up to where the last snapshot goes.
    pub(super) snapshot: Seq,
}

impl Shared {
    /// Makes the shared part of a run, whose sinks are not fed yet.
    pub(super) fn new(
        runner: Runner,
        run: RunId,
        definition: Option<Arc<BrainDefinition>>,
        served: bool,
        folded: Folded,
    ) -> Arc<Self> {
        let Folded { state, prompts, summary, snapshot } = folded;
        let shared = Arc::new(Self {
            settled: watch::Sender::new((Phase::Working, state.next)),
            bell: Arc::new(Notify::new()),
            own: AtomicU64::new(state.next.0),
            snapshot: AtomicU64::new(snapshot.0),
            state: Mutex::new(state),
            prompts: Mutex::new(prompts),
            summary: Mutex::new(summary),
            live: runner.live.of(&run),
            runner,
            run,
            definition,
            served,
            feeds: OnceLock::new(),
        });
        let watcher: Arc<dyn Watcher> = Arc::clone(&shared) as Arc<dyn Watcher>;
        shared.runner.store.watch(Some(&shared.run), Arc::downgrade(&watcher) as Weak<dyn Watcher>);
        shared
    }

    /// Feeds the runner's sinks with the run's events: from `from` on those that have seen nothing of the run and do not
    /// say where they are.
    pub(super) fn feed(&self, from: Seq) {
        let (Runner { sinks, store, live, .. }, over) = (&self.runner, self.state().has_ended());
        self.feeds.get_or_init(|| sinks.iter().map(|sink| sink.feed(store, live, &self.run, from, over)).collect());
    }

    pub(super) fn feeds(&self) -> &[Feed] {
        self.feeds.get().map_or(&[], Vec::as_slice)
    }

    pub(super) fn state(&self) -> MutexGuard<'_, RunState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn prompts(&self) -> MutexGuard<'_, Prompts> {
        self.prompts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn summary(&self) -> MutexGuard<'_, RunSummary> {
        self.summary.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now(&self) -> Timestamp {
        self.runner.clock.now()
    }

    pub(super) fn publish(&self, phase: Phase) {
        let next = self.state().next;
        self.settled.send_if_modified(|known| {
            let fresh = (phase, next);
            // That it goes on working is no news, and whoever waits for the run would be woken at every event.
            let news = *known != fresh && (known.0 != Phase::Working || fresh.0 != Phase::Working);
            *known = fresh;
            news
        });
    }

    /// Takes over what events come to.
    pub(super) fn take_over(&self, after: RunState, summary: RunSummary, events: &[Arc<Event>]) {
        // In one go, so that nobody sees a state without its records.
        let mut state = self.state();
        *state = after;
        let mut prompts = self.prompts();
        for event in events {
            prompts.apply(event);
        }
        *self.summary() = summary;
    }

    /// Folds in what others have appended, and returns it.
    pub(super) async fn catch_up(&self) -> Result<Vec<Arc<Event>>, Stop> {
        let before = self.state().clone();
        let events = self.runner.store.read(&self.run, before.next, usize::MAX).await?;
        if !events.is_empty() {
            let after = follow(&before, &events)?;
            let summary = index(&self.run, &before, &after, Some(&*self.summary())).summary;
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
        // Whoever attends to the run for its leases can go.
        self.bell.notify_one();
    }
}
