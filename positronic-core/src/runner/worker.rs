//! The one task that drives a run.

use std::collections::{HashMap, HashSet};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;

use super::async_effects::{self, Report, Reports, panicked};
use super::clock::sleep_until;
use super::frames::Frames;
use super::link::RunLink;
use super::registry::RunGuard;
use super::shared::{Phase, Shared, Stop};
use crate::definition::{BrainDefinition, with_document_limit};
use crate::error::Error;
use crate::machine::{Effect, Outcome, RunState, end_brain, next};
use crate::record::{EndReason, Epoch, EventKind, Failure, NewEvent, Path, Status, Timestamp};
use crate::store::StoreError;

/// Drives one run.
pub(super) struct Worker {
    pub(super) shared: Arc<Shared>,
    pub(super) epoch: Epoch,
    pub(super) frames: Frames,
    pub(super) link: Arc<RunLink>,
    pub(super) reports: Reports,
    pub(super) answered: HashMap<Path, HashSet<usize>>,
    /// Effects whose intents are in the log, and which are in flight as soon as the worker comes iteration to it.
    pub(super) announced: Vec<Effect>,
    flights: HashMap<Path, Flight>,
    incoming: mpsc::UnboundedReceiver<Box<Report>>,
    held: Vec<Report>,
    /// How many outcomes are to be settled before anything begins, in lockstep.
    unsettled: usize,
    /// Whether the runner lets go of its runs.
    leaves: watch::Receiver<bool>,
    /// Until when what is in flight may end, once it does.
    leaves_at: Option<tokio::time::Instant>,
    /// Whether mail for what the run waits for may lie unread in the mailbox. Then a worker that stops does not let go of
    /// the run, so that it counts as left behind.
    pub(super) mail_unread: bool,
    _grip: RunGuard,
}

/// A task that is in flight.
struct Flight {
    task: AbortHandle,
    /// Whether lockstep waits for it; a question of a step is answered at once, since the step waits for it.
    awaited: bool,
}

/// Events that are appended together, and the effects whose intents are among them.
#[derive(Default)]
pub(super) struct Announced {
    pub(super) new_events: Vec<NewEvent>,
    pub(super) effects: Vec<Effect>,
}

impl From<Vec<NewEvent>> for Announced {
    fn from(new_events: Vec<NewEvent>) -> Self {
        Self { new_events, effects: Vec::new() }
    }
}

/// Why a worker has left its run.
pub(super) enum Left {
    /// The run has ended.
    Ended,
    /// There was nothing to do for a while, or the runner lets go of its runs.
    Released,
    /// Another worker has the run.
    Lost,
    /// Something failed.
    Failed(Stop),
}

impl Worker {
    /// Makes the worker of a run, with what its open frames need beside their state: the author's configurations run
    /// again, on the state that they saw.
    pub(super) async fn restored(
        shared: &Arc<Shared>,
        state: &RunState,
        definition: &Arc<BrainDefinition>,
        epoch: Epoch,
        grip: RunGuard,
    ) -> Result<Box<Self>, Stop> {
        let (reports, incoming) = mpsc::unbounded_channel();
        let link = Arc::new(RunLink::new(shared, reports.clone()));
        let frames = Frames::restored(&shared.run, state, definition, &link).await?;
        Ok(Box::new(Self {
            epoch,
            frames,
            link,
            reports,
            answered: HashMap::new(),
            announced: Vec::new(),
            flights: HashMap::new(),
            incoming,
            held: Vec::new(),
            unsettled: 0,
            leaves: shared.runner.in_hand.leaves(),
            leaves_at: None,
            shared: Arc::clone(shared),
            mail_unread: true,
            _grip: grip,
        }))
    }

    /// Works on the run until it ends, or there is nothing to do for a while.
    pub(super) async fn work(mut self: Box<Self>) -> Left {
        // Whoever waits for the run would wait for ever if its worker went away without a word.
        let driven = AssertUnwindSafe(self.drive()).catch_unwind().await;
        for (_, flight) in self.flights.drain() {
            flight.task.abort();
        }
        let stop = match driven.unwrap_or_else(|panic| Err(Stop::Panicked(panicked(&*panic).to_string()))) {
            Ok(left) => return left,
            Err(Stop::Lost) => {
                tracing::warn!(run = %self.shared.run, "another worker has taken over the run");
                return Left::Lost;
            }
            Err(stop) => stop,
        };
        if let Stop::Store(refused @ StoreError::Unrecordable { .. }) = &stop
            && self.fail(refused).await
        {
            return Left::Ended;
        }
        tracing::error!(run = %self.shared.run, reason = %stop, "the run's worker stops");
        let next = self.shared.state().next;
        // Before whoever hears of the release looks for it.
        self.shared.runner.backoffs.add(&self.shared.run, next, Some(stop.clone().into()));
        let mut free = self.mail_unread || self.shared.state().has_ended();
        while !free {
            // If the store takes it, another worker need not wait until this process ends.
            free = self.release(stop.to_string()).await.unwrap_or(true) || self.shared.state().has_ended();
        }
        Left::Failed(stop)
    }

    /// Ends the run in failure, since what comes next in it cannot be recorded, now or ever. Answers `false` where that could
    /// not be written.
    async fn fail(&mut self, refused: &StoreError) -> bool {
        loop {
            let failure = Failure {
                code: EndReason::State,
                message: format!("the run cannot go on: {refused}"),
                retryable: false,
            };
            let new_events =
                self.shared.state().root.as_ref().map(|root| end_brain(root, &failure)).unwrap_or_default();
            match self.append_last(new_events).await {
                Ok(false) if !self.shared.state().has_ended() => {}
                ended => return ended.is_ok(),
            }
        }
    }

    async fn release(&mut self, reason: String) -> Result<bool, Stop> {
        self.append_last(vec![NewEvent::new(Path::root(), EventKind::RunReleased { reason })]).await
    }

    async fn drive(&mut self) -> Result<Left, Stop> {
        self.end_broken().await?;
        self.take_mail().await?;
        loop {
            let leaves = self.leaves();
            self.spawn_announced();
            if leaves {
                self.give_up_iterations().await?;
            }
            let wake = if leaves { None } else { self.begin_effects().await? };
            if self.shared.state().has_ended() {
                return Ok(Left::Ended);
            }
            if leaves && self.flights.is_empty() {
                if self.release("its worker releases its runs".to_owned()).await? {
                    return Ok(Left::Released);
                }
                continue;
            }
            let idle = self.flights.is_empty() && self.waits_for_somebody();
            self.shared.publish(if idle { Phase::Suspended } else { Phase::Working });
            let patience = match (leaves, idle) {
                (true, _) => self.grace(),
                (false, true) => self.shared.runner.linger,
                (false, false) => Duration::MAX,
            };
            if self.wait(wake, patience).await? {
                continue;
            }
            if leaves {
                self.abandon().await?;
            } else if self.release("nothing to do".to_owned()).await? {
                return Ok(Left::Released);
            }
        }
    }

    /// Ends the loops whose configuration failed during the restore, as when it fails the first time.
    async fn end_broken(&mut self) -> Result<(), Stop> {
        let broken = std::mem::take(&mut self.frames.broken);
        loop {
            let is_open = |path: &Path| self.shared.state().loop_at(path).is_some_and(|frame| frame.path == *path);
            let open = broken.iter().filter(|(path, _)| is_open(path));
            let ends = |(path, error): &(Path, String)| self.settled(path, Outcome::NotConfigured(Error::new(error)));
            let new_events: Vec<NewEvent> = open.flat_map(ends).collect();
            if new_events.is_empty() || self.append(new_events).await? {
                return Ok(());
            }
        }
    }

    fn leaves(&self) -> bool {
        *self.leaves.borrow()
    }

    fn waits_for_somebody(&self) -> bool {
        crate::machine::status(&self.shared.state()) != Status::Running
    }

    /// Begins everything that can begin, until nothing more can, and says when to look again.
    async fn begin_effects(&mut self) -> Result<Option<Timestamp>, Stop> {
        loop {
            self.spawn_announced();
            let next = {
                let state = self.shared.state();
                next(&state, self.shared.now().max(state.at))
            };
            let fresh = self.fresh(next.effects);
            if fresh.is_empty() {
                return Ok(next.wake);
            }
            self.begin(fresh).await?;
        }
    }

    fn fresh(&self, mut effects: Vec<Effect>) -> Vec<Effect> {
        effects.retain(|effect| effect.path().is_none_or(|path| !self.flights.contains_key(path)));
        effects
    }

    /// Begins effects that can begin together: first the events that follow from the state and the intents, in one
    /// append; then what is in flight from then on; then what is done at once.
    async fn begin(&mut self, mut effects: Vec<Effect>) -> Result<(), Stop> {
        let decided = self.shared.state().next;
        let now = self.announce(&self.shared.state(), &mut effects);
        if !now.new_events.is_empty() {
            if !self.append(now).await? {
                // Somebody else was first: what can begin has to be decided again.
                return Ok(());
            }
            self.spawn_announced();
        }
        for effect in effects {
            // What follows from the appends since then may have ended what this one is about.
            let stale = self.shared.state().next != decided && !self.is_due(&effect);
            if stale || !self.perform(effect).await? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Names the events that follow from a state at once: those that follow from it alone, and the intents of effects.
    /// What is left of the effects is done by the worker itself.
    fn announce(&self, state: &RunState, effects: &mut Vec<Effect>) -> Announced {
        let mut now = Announced::default();
        for effect in std::mem::take(effects) {
            match effect {
                Effect::Append(new_events) => now.new_events.extend(new_events),
                effect => match (self.given_up(state, &effect), self.intent(state, &effect)) {
                    (Some(result), _) => now.new_events.push(result),
                    (None, Some(intent)) => {
                        now.new_events.push(intent);
                        now.effects.push(effect);
                    }
                    (None, None) => effects.push(effect),
                },
            }
        }
        now
    }

    /// Names what can begin in a state that the worker is about to make true, so that it is announced in the same append.
    pub(super) fn follows(&self, state: &RunState) -> Announced {
        if self.unsettled > 0 || self.leaves() {
            return Announced::default();
        }
        let mut effects = self.fresh(next(state, state.at).effects);
        self.announce(state, &mut effects)
    }

    /// Starts the effects whose intents are in the log.
    pub(super) fn spawn_announced(&mut self) {
        for effect in std::mem::take(&mut self.announced) {
            self.fly(&effect);
        }
    }

    /// Says whether something is in flight at a path.
    pub(super) fn flies(&self, path: &Path) -> bool {
        self.flights.contains_key(path)
    }

    pub(super) fn launch(
        &mut self,
        path: Path,
        awaited: bool,
        work: impl Future<Output = async_effects::Outcome> + Send + 'static,
    ) {
        let reports = self.reports.clone();
        let at = path.clone();
        let max_bytes = self.shared.runner.max_document_bytes;
        let task = tokio::spawn(async move {
            let outcome = with_document_limit(max_bytes, work).await;
            // The worker is gone when the run was stopped; then nobody wants the outcome.
            _ = reports.send(Box::new(Report::Done { path: at, outcome }));
        });
        self.flights.insert(path, Flight { task: task.abort_handle(), awaited });
    }

    /// Stops what is in flight at a path; nobody wants its outcome.
    pub(super) fn drop_flight(&mut self, path: &Path) {
        if let Some(flight) = self.flights.remove(path) {
            flight.task.abort();
        }
        self.link.forget(path);
    }

    /// Gives up the iterations that plugins prepare, which may take as long as they like: nothing of it is in the log. Only the
    /// answer to a plugin's question is waited for.
    async fn give_up_iterations(&mut self) -> Result<(), Stop> {
        let is_idle =
            |path: &&Path| self.preparing(path).is_some_and(|iteration| !self.flies(&path.iteration(iteration)));
        let paths: Vec<Path> = self.flights.keys().filter(is_idle).cloned().collect();
        for path in &paths {
            self.drop_flight(path);
        }
        self.record_held().await
    }

    /// Sets how long effects in flight may still take when the runner releases its runs.
    fn grace(&mut self) -> Duration {
        let now = tokio::time::Instant::now();
        let grace = self.shared.runner.release_grace;
        // Without an end where the time has none.
        let Some(end) = self.leaves_at.or_else(|| now.checked_add(grace)) else { return Duration::MAX };
        self.leaves_at = Some(end);
        end.saturating_duration_since(now)
    }

    /// Gives up what is in flight, as a crash does; what has ended is recorded.
    async fn abandon(&mut self) -> Result<(), Stop> {
        for (path, flight) in self.flights.drain() {
            tracing::warn!(run = %self.shared.run, %path, "abandoned, since it did not end in time");
            flight.task.abort();
        }
        self.record_held().await
    }

    /// Waits for a report, for somebody else's append, or for the time to look again. Answers `false` when nothing
    /// came for as long as the worker has patience.
    async fn wait(&mut self, wake: Option<Timestamp>, linger: Duration) -> Result<bool, Stop> {
        let shared = Arc::clone(&self.shared);
        tokio::select! {
            biased;
            Some(report) = self.incoming.recv() => self.take(*report).await?,
            () = shared.bell.notified() => self.catch_up().await?,
            Ok(()) = self.leaves.changed() => {}
            () = sleep_until(&*shared.runner.clock, wake) => {}
            () = sleep(linger) => return Ok(false),
        }
        if self.shared.state().has_ended() {
            for (_, flight) in self.flights.drain() {
                flight.task.abort();
            }
        }
        Ok(true)
    }

    async fn take(&mut self, report: Report) -> Result<(), Stop> {
        if !self.shared.runner.lockstep {
            return self.record(report).await;
        }
        let at_once = match &report {
            Report::Question { .. } | Report::Value { .. } => true,
            Report::Done { path, .. } => self.flights.get(path).is_some_and(|flight| !flight.awaited),
            Report::Output { .. } => false,
        };
        // What was settled at once may have stopped the last one that was waited for.
        if at_once {
            self.record(report).await?;
        } else {
            self.held.push(report);
        }
        self.record_held().await
    }

    /// Settles what is held back in lockstep, once nothing is in flight that it waits for.
    async fn record_held(&mut self) -> Result<(), Stop> {
        let done = |held: &[Report], path: &Path| {
            held.iter().any(|report| matches!(report, Report::Done { path: done, .. } if done == path))
        };
        if self.flights.iter().all(|(path, flight)| !flight.awaited || done(&self.held, path)) {
            let mut held = std::mem::take(&mut self.held);
            held.sort_by_key(|report| order(report.path()));
            self.unsettled = held.len();
            for report in held {
                self.unsettled -= 1;
                self.record(report).await?;
            }
        }
        Ok(())
    }

    async fn record(&mut self, report: Report) -> Result<(), Stop> {
        match report {
            Report::Output { path, id, output } => {
                let new_events = vec![NewEvent::new(path.clone(), EventKind::LoopOutput { id, output })];
                self.append_outcome(&path, new_events).await?;
            }
            Report::Question { path, question, reply, turn } => self.question(path, question, reply, turn).await?,
            Report::Value { path, name, value, reply, turn } => {
                self.keep_value(&path, name, value, reply).await?;
                drop(turn);
            }
            Report::Done { path, outcome } => {
                self.flights.remove(&path);
                self.record_outcome(&path, outcome).await?;
                // A question that is sent again is in flight under the same path.
                if !self.flies(&path) {
                    self.answered.remove(&path);
                    self.link.forget(&path);
                }
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
            Segment::Iteration(iteration) => (0, iteration, 0, String::new()),
            Segment::Call(iteration, index) => (1, iteration, index, String::new()),
            Segment::Stage(name) => (2, 0, 0, name.to_owned()),
        })
        .collect()
}

pub(super) async fn sleep(pause: Duration) {
    if pause == Duration::MAX { std::future::pending().await } else { tokio::time::sleep(pause).await }
}
