//! The worker of a run: the one task that drives it.

use std::collections::{HashMap, HashSet};
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;

use super::frames::Frames;
use super::lease::HeldLease;
use super::registry::{Departure, RunGuard};
use super::shared::{Phase, Shared};
use super::stop::{ResumeError, Stop, passes};
use crate::definition::{BrainDefinition, with_document_limit};
use crate::error::Error;
use crate::machine::{Effect, Outcome, RunState, end_brain, next};
use crate::record::{EndReason, Epoch, EventKind, Failure, NewEvent, Path, Status, Timestamp};
use crate::runner::catch::panicked;
use crate::runner::clock::sleep;
use crate::runner::clock::sleep_until;
use crate::runner::effects::link::RunLink;
use crate::runner::effects::report;
use crate::runner::effects::report::{Report, Reports};
use crate::runner::work::quarantine::QuarantinePermit;
use crate::store::StoreError;

/// Drives one run.
pub(in crate::runner) struct Worker {
    pub(in crate::runner) shared: Arc<Shared>,
    pub(super) epoch: Epoch,
    /// The lease of the claim.
    lease: Arc<HeldLease>,
    pub(in crate::runner) frames: Frames,
    pub(in crate::runner) link: Arc<RunLink>,
    pub(super) reports: Reports,
    pub(in crate::runner) used_answers: HashMap<Path, HashSet<usize>>,
    /// Effects whose intents are in the log and that the worker starts next.
    pub(super) announced: Vec<Effect>,
    flights: HashMap<Path, Flight>,
    /// The effect that has ended and whose outcome is being appended.
    pub(in crate::runner) unrecorded: Option<Path>,
    incoming: mpsc::UnboundedReceiver<Box<Report>>,
    held: Vec<Report>,
    /// How many outcomes must be settled before a new effect begins, in lockstep.
    unsettled: usize,
    /// Whether the runner releases its runs.
    leaves: watch::Receiver<bool>,
    /// Until when work in flight may end after that.
    leaves_at: Option<tokio::time::Instant>,
    /// Whether the mailbox may have unread webhooks for the run. A worker that stops then does not release the
    /// run, so that it counts as orphaned.
    pub(in crate::runner) mail_unread: bool,
    /// The permit to work on a suspect, until it makes progress or waits.
    pub(super) quarantined: Option<QuarantinePermit>,
    guard: RunGuard,
}

/// A task that is in flight.
struct Flight {
    task: AbortHandle,
    /// Whether lockstep waits for it. A step waits for its question, so a question is settled at once.
    awaited: bool,
}

/// Transitions that are appended together, and the effects whose intents are among them.
#[derive(Default)]
pub(in crate::runner) struct Announced {
    pub(super) new_events: Vec<NewEvent>,
    pub(super) effects: Vec<Effect>,
}

impl From<Vec<NewEvent>> for Announced {
    fn from(transition: Vec<NewEvent>) -> Self {
        Self { new_events: NewEvent::transition(transition), effects: Vec::new() }
    }
}

/// The reason why a worker has left its run.
pub(in crate::runner) enum Left {
    /// The run has ended.
    Ended,
    /// The run was idle for a while, or the runner releases its runs.
    Released,
    /// Another worker has claimed the run.
    Lost,
    /// It failed.
    Failed(Stop),
}

impl Worker {
    /// Creates the worker of a run, without the code of its open frames.
    pub(in crate::runner) fn new(
        shared: &Arc<Shared>,
        (epoch, lease): (Epoch, Arc<HeldLease>),
        guard: RunGuard,
    ) -> Box<Self> {
        let (reports, incoming) = mpsc::unbounded_channel();
        Box::new(Self {
            epoch,
            lease,
            frames: Frames::new(&shared.run, None),
            link: Arc::new(RunLink::new(shared, reports.clone())),
            reports,
            used_answers: HashMap::new(),
            announced: Vec::new(),
            flights: HashMap::new(),
            unrecorded: None,
            incoming,
            held: Vec::new(),
            unsettled: 0,
            leaves: shared.runner.registry.leaves(),
            leaves_at: None,
            shared: Arc::clone(shared),
            mail_unread: false,
            quarantined: None,
            guard,
        })
    }

    /// Restores the code of the open frames: the author's configurations rerun on the state that they saw. Plugins may take any
    /// time for that, so it is abandoned when the runner releases its runs. Returns `false` if another writer ended or
    /// paused the run meanwhile.
    pub(super) async fn restore(&mut self, state: &RunState, definition: &Arc<BrainDefinition>) -> Result<bool, Stop> {
        let (shared, link) = (Arc::clone(&self.shared), Arc::clone(&self.link));
        let mut restored = pin!(Frames::restored(&shared.run, state, definition, &link));
        loop {
            tokio::select! {
                biased;
                frames = &mut restored => {
                    self.frames = frames?;
                    self.frames.forget_closed(&shared.state());
                    return Ok(true);
                }
                () = shared.runner.registry.left() => return Err(Stop::Leaves),
                () = shared.bell.notified() => {
                    self.catch_up().await?;
                    let state = shared.state();
                    if state.has_ended() || state.paused.is_some() {
                        return Ok(false);
                    }
                }
            }
        }
    }

    /// Works on the run until it ends or has been idle for a while.
    pub(in crate::runner) async fn work(mut self: Box<Self>) -> Left {
        // A panic must not leave the handle's waiters without an answer.
        let driven = AssertUnwindSafe(self.drive()).catch_unwind().await;
        let unrecorded = self.flights.keys().chain(&self.unrecorded);
        let mut in_flight: Vec<_> = unrecorded.filter(|path| !self.is_detached(path)).cloned().collect();
        in_flight.sort_by_key(order);
        for (_, flight) in self.flights.drain() {
            flight.task.abort();
        }
        let stop = match driven.unwrap_or_else(|panic| Err(Stop::Panicked(panicked(&*panic).to_string()))) {
            Ok(left) => {
                if matches!(left, Left::Released) {
                    self.guard.departs(Departure::Released);
                }
                return left;
            }
            Err(Stop::Lost) if in_flight.is_empty() || self.lease.ttl().is_none() => {
                tracing::warn!(run = %self.shared.run, ?in_flight, "another worker has claimed the run");
                return Left::Lost;
            }
            // Another worker may claim the run from now on, so this one writes nothing more. If one has, then the lease has
            // lapsed, although this worker's clock has not shown it yet.
            Err(Stop::LeaseLost { .. } | Stop::Lost) => {
                let stop = Stop::LeaseLost { owner: self.lease.owner().to_owned(), in_flight };
                tracing::error!(run = %self.shared.run, reason = %stop, "the run's worker stops");
                return Left::Failed(stop);
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
        // Before the release wakes other tasks of this runner.
        let paused = self.shared.runner.backoffs.add(&self.shared.run, next, Some(stop.clone().into()));
        self.give_up(&stop).await;
        self.shared.defer(&paused).await;
        Left::Failed(stop)
    }

    /// Fails the run because its next event can never be recorded. Returns `false` if that could not be written.
    async fn fail(&mut self, refused: &StoreError) -> bool {
        loop {
            let failure = Failure {
                code: EndReason::State,
                message: format!("the run cannot continue: {refused}"),
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

    /// Releases the run after a failure, so that another worker need not wait until this process ends. If the store has
    /// failed, this is tried once: appends were retried for long already.
    pub(super) async fn give_up(&mut self, stop: &Stop) {
        let error = ResumeError::from(stop.clone());
        let refused = error.refusal().map(|reason| {
            let owner = self.lease.owner().to_owned();
            EventKind::RunNotClaimed { owner, reason, message: error.to_string() }
        });
        let released = EventKind::RunReleased { reason: stop.to_string() };
        let kinds: Vec<_> = [released].into_iter().chain(refused).collect();
        self.guard.departs(Departure::Kept);
        let mut is_done = self.mail_unread;
        while !is_done && !self.shared.state().has_ended() {
            let new_events = kinds.iter().map(|kind| NewEvent::new(Path::root(), kind.clone())).collect();
            let released =
                if passes(stop) { self.append_once(new_events).await } else { self.append_last(new_events).await };
            if matches!(released, Ok(true)) {
                self.guard.departs(Departure::Released);
            }
            is_done = released.unwrap_or(true);
        }
        if self.shared.state().has_ended() {
            self.guard.departs(Departure::Unclaimed);
        }
    }

    pub(super) async fn release(&mut self, reason: String) -> Result<bool, Stop> {
        self.append_last(vec![NewEvent::new(Path::root(), EventKind::RunReleased { reason })]).await
    }

    async fn drive(&mut self) -> Result<Left, Stop> {
        self.end_broken().await?;
        self.attach_detached();
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
            let idle = self.flights.is_empty() && self.waits_for_outside();
            self.shared.publish(if idle { Phase::Suspended } else { Phase::Working });
            let patience = match (leaves, idle) {
                (true, _) => self.grace(),
                // Other suspects may work while this one waits.
                (false, true) if self.quarantined.is_some() => Duration::ZERO,
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

    fn waits_for_outside(&self) -> bool {
        crate::machine::status(&self.shared.state()) != Status::Running
    }

    /// Begins all due effects and returns the time of the next one.
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

    /// Begins effects together: first one append with the events that follow from the state and the intents, then
    /// the effects in flight, then those that are performed at once.
    async fn begin(&mut self, mut effects: Vec<Effect>) -> Result<(), Stop> {
        let decided = self.shared.state().next;
        let now = self.announce(&self.shared.state(), &mut effects);
        if !now.new_events.is_empty() {
            if !self.append(now).await? {
                // Another writer was first: decide again.
                return Ok(());
            }
            self.spawn_announced();
        }
        for effect in effects {
            // The appends since then may have made this effect obsolete.
            let stale = self.shared.state().next != decided && !self.is_due(&effect);
            if stale || !self.perform(effect).await? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Returns the events that follow from a state alone and the intents of effects. The remaining effects are
    /// performed by the worker itself.
    fn announce(&self, state: &RunState, effects: &mut Vec<Effect>) -> Announced {
        let mut now = Announced::default();
        for effect in std::mem::take(effects) {
            match effect {
                Effect::Append(transition) => now.new_events.extend(NewEvent::transition(transition)),
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

    /// Returns what can begin in the state after an append, so that its intents are part of the same append.
    pub(super) fn follows(&self, state: &RunState) -> Announced {
        if self.unsettled > 0 || self.leaves() {
            return Announced::default();
        }
        let mut effects = self.fresh(next(state, state.at).effects);
        self.announce(state, &mut effects)
    }

    /// Starts the effects whose intents are in the log.
    pub(in crate::runner) fn spawn_announced(&mut self) {
        for effect in std::mem::take(&mut self.announced) {
            self.start_effect(&effect);
        }
    }

    /// Returns whether an append is tried again after a pause: with nothing in flight, a runner that releases its runs waits
    /// for a store that fails less than a second.
    pub(super) fn retries(&self, pause: Duration) -> bool {
        !self.leaves() || !self.flights.is_empty() || pause < Duration::from_millis(500)
    }

    /// Sleeps before a retry, unless the lease is lost first.
    pub(super) async fn pause(&mut self, pause: Duration) -> Result<(), Stop> {
        self.until_lost(tokio::time::sleep(pause)).await
    }

    /// Runs work, and stops it when the lease is lost.
    pub(super) async fn until_lost<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Stop> {
        let lease = Arc::clone(&self.lease);
        tokio::select! {
            biased;
            done = work => Ok(done),
            () = lease.lost() => Err(lost(&lease)),
        }
    }

    /// Returns whether an effect is in flight at a path.
    pub(in crate::runner) fn is_in_flight(&self, path: &Path) -> bool {
        self.flights.contains_key(path)
    }

    pub(in crate::runner) fn launch(
        &mut self,
        path: Path,
        awaited: bool,
        work: impl Future<Output = report::Outcome> + Send + 'static,
    ) {
        let reports = self.reports.clone();
        let at = path.clone();
        let max_bytes = self.shared.runner.max_document_bytes;
        let task = tokio::spawn(async move {
            let outcome = with_document_limit(max_bytes, work).await;
            // The worker is gone when the run was stopped.
            _ = reports.send(Box::new(Report::Done { path: at, outcome }));
        });
        self.flights.insert(path, Flight { task: task.abort_handle(), awaited });
    }

    /// Aborts the effect in flight at a path.
    pub(in crate::runner) fn drop_flight(&mut self, path: &Path) {
        if let Some(flight) = self.flights.remove(path) {
            flight.task.abort();
        }
        self.link.forget(path);
    }

    /// Aborts the preparation of iterations by plugins, which may take any time and are not in the log. Only the
    /// answer to a plugin's question is awaited.
    async fn give_up_iterations(&mut self) -> Result<(), Stop> {
        let is_idle =
            |path: &&Path| self.preparing(path).is_some_and(|iteration| !self.is_in_flight(&path.iteration(iteration)));
        let paths: Vec<Path> = self.flights.keys().filter(is_idle).cloned().collect();
        for path in &paths {
            self.drop_flight(path);
        }
        self.record_held().await
    }

    /// Returns how long effects in flight may still take when the runner releases its runs.
    fn grace(&mut self) -> Duration {
        let now = tokio::time::Instant::now();
        let grace = self.shared.runner.release_grace;
        // `None` stands for a time beyond the clock's range.
        let Some(end) = self.leaves_at.or_else(|| now.checked_add(grace)) else { return Duration::MAX };
        self.leaves_at = Some(end);
        end.saturating_duration_since(now)
    }

    /// Aborts the effects in flight, as a crash does; outcomes that have arrived are recorded.
    async fn abandon(&mut self) -> Result<(), Stop> {
        for (path, flight) in self.flights.drain() {
            tracing::warn!(run = %self.shared.run, %path, "abandoned: it did not end in time");
            flight.task.abort();
        }
        self.record_held().await
    }

    /// Waits for a report, for another writer's append, or for the next due time. Returns `false` after `linger`
    /// without any.
    async fn wait(&mut self, wake: Option<Timestamp>, linger: Duration) -> Result<bool, Stop> {
        let (shared, lease) = (Arc::clone(&self.shared), Arc::clone(&self.lease));
        tokio::select! {
            biased;
            Some(report) = self.incoming.recv() => self.take(*report).await?,
            () = lease.lost() => return Err(lost(&lease)),
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
        // A settled question may have stopped the last effect that lockstep waits for.
        if at_once {
            self.record(report).await?;
        } else {
            self.held.push(report);
        }
        self.record_held().await
    }

    /// Settles the outcomes held back in lockstep, once no awaited effect is in flight.
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
                self.unrecorded = Some(path.clone());
                self.record_outcome(&path, outcome).await?;
                self.unrecorded = None;
                // A question that is sent again is in flight under the same path.
                if !self.is_in_flight(&path) {
                    self.used_answers.remove(&path);
                    self.link.forget(&path);
                }
            }
        }
        Ok(())
    }
}

fn lost(lease: &HeldLease) -> Stop {
    Stop::LeaseLost { owner: lease.owner().to_owned(), in_flight: Vec::new() }
}

/// Orders paths numerically: call 2 before call 10.
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
