//! The one task that drives a run.

use std::collections::{HashMap, HashSet};
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures::FutureExt as _;
use serde_json::Value;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::AbortHandle;

use super::feed::Feed;
use super::flight::{Outcome, Report, Reports, panicked};
use super::frames::Frames;
use super::handle::Run;
use super::link::RunLink;
use super::{Runner, commit};
use crate::machine::{Effect, RunState, next};
use crate::plan::{Plan, SideOutput};
use crate::projection::Prompts;
use crate::record::{Body, BrainStart, Draft, Epoch, Path, RunId, RunSummary, Seq, Start, Status, Timestamp};
use crate::store::{Append, StoreError, Watcher};

/// What a worker and the holders of its run share.
pub(super) struct Shared {
    pub(super) runner: Runner,
    pub(super) run: RunId,
    pub(super) plan: Arc<Plan>,
    pub(super) feeds: Vec<Feed>,
    pub(super) settled: watch::Sender<(Phase, Seq)>,
    /// Rings when somebody else has appended.
    pub(super) bell: Notify,
    /// The number up to which the worker itself appends, so that it is not woken by its own events.
    pub(super) own: AtomicU64,
    state: Mutex<RunState>,
    prompts: Mutex<Prompts>,
}

/// What a worker is doing, as of an event number.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Phase {
    Working,
    Suspended,
    Ended,
    Stopped(String),
}

impl Shared {
    pub(super) fn state(&self) -> MutexGuard<'_, RunState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn prompts(&self) -> MutexGuard<'_, Prompts> {
        self.prompts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now(&self) -> Timestamp {
        self.runner.clock.now()
    }

    fn publish(&self, phase: Phase) {
        let next = self.state().next;
        self.settled.send_if_modified(|known| {
            let fresh = (phase, next);
            let changed = *known != fresh;
            *known = fresh;
            changed
        });
    }
}

impl Watcher for Shared {
    fn appended(&self, _: &RunId, next: Seq) {
        if next.0 > self.own.load(Ordering::Acquire) {
            self.bell.notify_one();
        }
    }
}

/// Drives one run.
pub(super) struct Worker {
    pub(super) shared: Arc<Shared>,
    pub(super) epoch: Epoch,
    /// What lists show of the run.
    pub(super) summary: RunSummary,
    pub(super) frames: Frames,
    pub(super) link: Arc<RunLink>,
    pub(super) reports: Reports,
    pub(super) answered: HashMap<Path, HashSet<usize>>,
    flights: HashMap<Path, Flight>,
    incoming: mpsc::UnboundedReceiver<Box<Report>>,
    held: Vec<Report>,
}

/// A task that is in flight.
struct Flight {
    task: AbortHandle,
    /// Whether lockstep waits for it; a question of a step is answered at once, since the step waits for it.
    awaited: bool,
}

/// The worker cannot go on.
pub(super) struct Stop(pub(super) String);

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Self(error.to_string())
    }
}

/// Starts a run and its worker. A run of this id that the store has already is a conflict.
pub(super) async fn start(
    runner: Runner,
    run: RunId,
    plan: Arc<Plan>,
    options: Value,
    start: Start,
) -> Result<Run<Value>, StoreError> {
    let epoch = Epoch(1);
    let begin = BrainStart { start: (start != Start::default()).then_some(start), ..plan.begin(options) };
    let holder = runner.ids.signal().as_str().to_owned();
    let mut events = commit::stamp(
        vec![Draft::new(Path::root(), Body::BrainStart(Box::new(begin)))],
        Seq(0),
        runner.clock.now(),
        None,
    );
    let claim = vec![Draft::new(Path::root(), Body::RunClaimed { holder, trace: None })];
    events.extend(commit::stamp(claim, Seq(1), runner.clock.now(), Some(epoch)));
    let state = commit::follow(&RunState::default(), &events)
        .map_err(|error| StoreError::Failed { message: error.to_string() })?;
    let index = commit::index(&run, &RunState::default(), &state, None);
    let summary = index.summary.clone();
    let append =
        Append { expected: Seq(0), epoch: None, events: events.clone(), index, takes: Vec::new(), snapshot: None };
    runner.store.append(&run, append).await?;
    let mut prompts = Prompts::default();
    for event in &events {
        prompts.apply(event);
    }
    let feeds =
        runner.sinks.iter().map(|sink| Feed::start(Arc::clone(sink), Arc::clone(&runner.store), run.clone())).collect();
    let shared = Arc::new(Shared {
        settled: watch::Sender::new((Phase::Working, state.next)),
        bell: Notify::new(),
        own: AtomicU64::new(state.next.0),
        state: Mutex::new(state),
        prompts: Mutex::new(prompts),
        runner,
        run,
        plan,
        feeds,
    });
    let watcher: Arc<dyn Watcher> = Arc::clone(&shared) as Arc<dyn Watcher>;
    shared.runner.store.watch(Some(&shared.run), Arc::downgrade(&watcher) as Weak<dyn Watcher>);
    let worker = Worker::new(Arc::clone(&shared), epoch, summary);
    tokio::spawn(worker.work());
    Ok(Run::new(shared))
}

impl Worker {
    fn new(shared: Arc<Shared>, epoch: Epoch, summary: RunSummary) -> Self {
        let (reports, incoming) = mpsc::unbounded_channel();
        Self {
            epoch,
            summary,
            frames: Frames::new(&shared),
            link: Arc::new(RunLink::new(&shared, reports.clone())),
            reports,
            answered: HashMap::new(),
            flights: HashMap::new(),
            incoming,
            held: Vec::new(),
            shared,
        }
    }

    async fn work(mut self) {
        // Whoever waits for the run would wait for ever if its worker went away without a word.
        let driven = AssertUnwindSafe(self.drive()).catch_unwind().await;
        if let Err(Stop(reason)) = driven.unwrap_or_else(|panic| Err(Stop(panicked(&*panic).to_string()))) {
            tracing::error!(run = %self.shared.run, reason, "the run's worker stops");
            self.shared.publish(Phase::Stopped(reason));
        }
        for (_, flight) in self.flights.drain() {
            flight.task.abort();
        }
    }

    async fn drive(&mut self) -> Result<(), Stop> {
        loop {
            let wake = self.begin_effects().await?;
            if self.shared.state().has_ended() {
                self.shared.publish(Phase::Ended);
                return Ok(());
            }
            if self.flights.is_empty() {
                self.shared.publish(if wake.is_some() && !self.waits_for_somebody() {
                    Phase::Working
                } else {
                    Phase::Suspended
                });
            } else {
                self.shared.publish(Phase::Working);
            }
            self.wait(wake).await?;
        }
    }

    fn waits_for_somebody(&self) -> bool {
        crate::machine::status(&self.shared.state()) != Status::Running
    }

    /// Begins everything that can begin, until nothing more can, and says when to look again.
    async fn begin_effects(&mut self) -> Result<Option<Timestamp>, Stop> {
        loop {
            let next = {
                let state = self.shared.state();
                next(&state, self.shared.now().max(state.at))
            };
            let fresh: Vec<_> = next
                .effects
                .into_iter()
                .filter(|effect| effect.path().is_none_or(|path| !self.flights.contains_key(path)))
                .collect();
            if fresh.is_empty() {
                return Ok(next.wake);
            }
            self.begin(fresh).await?;
        }
    }

    /// Begins effects that can begin together: first the events that follow from the state and the intents, in one
    /// append; then what is in flight from then on; then what is done at once.
    async fn begin(&mut self, effects: Vec<Effect>) -> Result<(), Stop> {
        let mut drafts = Vec::new();
        let mut flying = Vec::new();
        let mut at_once = Vec::new();
        for effect in effects {
            match effect {
                Effect::Append(more) => drafts.extend(more),
                Effect::Step { .. } | Effect::Ask { .. } | Effect::Execute { .. } => {
                    drafts.extend(self.intent(&effect));
                    flying.push(effect);
                }
                other => at_once.push(other),
            }
        }
        if !drafts.is_empty() && !self.append(drafts).await? {
            // Somebody else was first: what can begin has to be decided again.
            return Ok(());
        }
        for effect in flying {
            self.fly(&effect);
        }
        for effect in at_once {
            if !self.perform(effect).await? {
                return Ok(());
            }
        }
        Ok(())
    }

    pub(super) fn launch(&mut self, path: Path, awaited: bool, work: impl Future<Output = Outcome> + Send + 'static) {
        let reports = self.reports.clone();
        let at = path.clone();
        let task = tokio::spawn(async move {
            let outcome = work.await;
            // The worker is gone when the run was stopped; then nobody wants the outcome.
            _ = reports.send(Box::new(Report::Done { path: at, outcome }));
        });
        self.flights.insert(path, Flight { task: task.abort_handle(), awaited });
    }

    /// Waits for a report, for somebody else's append, or for the time to look again.
    async fn wait(&mut self, wake: Option<Timestamp>) -> Result<(), Stop> {
        let pause = wake.map_or(Duration::MAX, |wake| wake.since(self.shared.now()).max(Duration::from_micros(1)));
        let shared = Arc::clone(&self.shared);
        tokio::select! {
            biased;
            Some(report) = self.incoming.recv() => self.take(*report).await?,
            () = shared.bell.notified() => {
                self.catch_up().await?;
            }
            () = sleep(pause) => {}
        }
        if self.shared.state().has_ended() {
            for (_, flight) in self.flights.drain() {
                flight.task.abort();
            }
        }
        Ok(())
    }

    async fn take(&mut self, report: Report) -> Result<(), Stop> {
        if !self.shared.runner.lockstep {
            return self.settle(report).await;
        }
        let at_once = match &report {
            Report::Question { .. } | Report::Retry { .. } => true,
            Report::Done { path, .. } => self.flights.get(path).is_some_and(|flight| !flight.awaited),
            Report::Output { .. } => false,
        };
        if at_once {
            return self.settle(report).await;
        }
        self.held.push(report);
        let done = |held: &[Report], path: &Path| {
            held.iter().any(|report| matches!(report, Report::Done { path: done, .. } if done == path))
        };
        if self.flights.iter().all(|(path, flight)| !flight.awaited || done(&self.held, path)) {
            let mut held = std::mem::take(&mut self.held);
            held.sort_by_key(|report| order(report.path()));
            for report in held {
                self.settle(report).await?;
            }
        }
        Ok(())
    }

    async fn settle(&mut self, report: Report) -> Result<(), Stop> {
        match report {
            Report::Output { path, id, output } => {
                let (file, widget) = match output {
                    SideOutput::File(file) => (Some(file), None),
                    SideOutput::Widget(widget) => (None, Some(widget)),
                };
                let drafts = vec![Draft::new(path.clone(), Body::LoopOutput { id, file, widget })];
                self.append_outcome(&path, drafts).await?;
            }
            Report::Question { path, question, reply } => self.question(path, question, reply).await?,
            Report::Retry { path, attempt, error, due } => {
                let drafts = vec![Draft::new(path.clone(), Body::LoopModelRetry { attempt, error, due })];
                self.append_outcome(&path, drafts).await?;
            }
            Report::Done { path, outcome } => {
                self.settle_outcome(&path, outcome).await?;
                self.flights.remove(&path);
                self.answered.remove(&path);
                self.link.forget(&path);
            }
        }
        Ok(())
    }
}

/// Orders paths as a person counts: call 2 before call 10.
fn order(path: &Path) -> Vec<(u8, u32, u32, String)> {
    use crate::record::Segment;
    path.segments()
        .map(|segment| match segment {
            Segment::Round(round) => (0, round, 0, String::new()),
            Segment::Call(round, index) => (1, round, index, String::new()),
            Segment::Stage(name) => (2, 0, 0, name.to_owned()),
        })
        .collect()
}

async fn sleep(pause: Duration) {
    if pause == Duration::MAX { std::future::pending().await } else { tokio::time::sleep(pause).await }
}
