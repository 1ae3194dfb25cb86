//! Serves the runs of a store: claims every run that has work and no live worker, and starts the triggers that are due.
//!
//! ```text
//! log grows, once a second ──▶ due ──▶ runner for the run ──▶ load, RUN_CLAIMED ──▶ the run's own task ──▶ settled
//!                               ▲                │                   │                                        │
//!                               └─ or refused ───┴───────────────────┴────────────────────────────────────────┘
//! ```
//!
//! [`Server`] has one loop and reports what it does as [`ServeEvent`]s. It claims runs concurrently. To restore an
//! open iteration it asks plugins, which may wait for a server that does not answer; this delays no other run,
//! because the permit to load (16 at once) is released first. Triggers fire one after the other.

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, join_all};
use futures::stream::{BoxStream, FuturesUnordered, StreamExt as _, unfold};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;

use super::backoffs::{TriggerBackoffs, after_claims};
use super::find_runner::FindRunner;
use super::load_permits::{LoadPermit, LoadPermits};
use super::queue::{Claims, WorkQueue};
use super::serve_event::{ClaimError, NotFired, ServeEvent};
use super::triggers::may_retry;
use crate::machine::SUSPECT;
use crate::record::{RunId, RunSummary, Timer};
use crate::runner::client::child_ends::deliver_lost_ends;
use crate::runner::client::undelivered_events::deliver_lost;
use crate::runner::config::StoreState;
use crate::runner::{Client, ConversationError, FireError, Firing, Release, ResumeError, RunHandle, Runner, Settled};
use crate::store::StoreError;

/// How often due triggers and schedules are listed.
const POLL: Duration = Duration::from_secs(1);
/// How long a server that ends may take to note the runs that it has refused.
const LAST_NOTES: Duration = Duration::from_secs(5);
/// How often every schedule is checked, instead of only those that are known to be due.
const POLL_ALL: Duration = Duration::from_mins(1);
/// How often the durable sinks get what workers that died did not deliver.
const DELIVER: Duration = Duration::from_secs(10);

/// Serves the runs of a store with the runners that a [`FindRunner`] finds.
///
/// ```no_run
/// # use positronic_core::runner::{Runner, ServeEvent, Server};
/// use futures::StreamExt as _;
///
/// # async fn example(runner: Runner) {
/// let server = Server::new(runner.client(), runner);
/// let mut events = server.events();
/// while let Some(event) = events.next().await {
///     match event {
///         ServeEvent::Claimed { run, .. } => println!("works on {run}"),
///         ServeEvent::Refused { run, error } => println!("{run}: {error}"),
///         _ => {}
///     }
/// }
/// # }
/// ```
pub struct Server<F> {
    client: Client,
    find: F,
    once: bool,
    claims: Claims,
    load_permits: LoadPermits,
    triggers: TriggerBackoffs,
    leaves: watch::Sender<bool>,
}

impl<F: FindRunner> Server<F> {
    /// Creates a server of a store's runs.
    pub fn new(client: Client, find: F) -> Self {
        let (claims, load_permits, triggers) = (Claims::default(), LoadPermits::default(), TriggerBackoffs::default());
        Self { client, find, once: false, claims, load_permits, triggers, leaves: watch::Sender::new(false) }
    }

    /// Creates the server of one runner, with which it shares the pauses of runs and triggers.
    pub(super) async fn alone(runner: &Runner, find: F) -> Self {
        let (claims, triggers) = (Claims::of(runner), runner.state.trigger_backoffs.clone());
        let server = Self { claims, triggers, ..Self::new(runner.client(), find) };
        // Runs that it claimed earlier must not count as another worker's.
        if let Err(error) = server.claims.known.add(runner).await {
            tracing::warn!(%error, "the worker's name is not known yet");
        }
        server
    }

    /// Lets the server end when no run has work, instead of waiting for more.
    #[must_use]
    pub fn once(self, once: bool) -> Self {
        Self { once, ..self }
    }

    /// Serves the runs as long as the stream is polled, and yields what it does. The stream ends when the server
    /// has released its runs, or with [`Server::once`] when there is no more work. Claimed runs continue
    /// independently of the stream.
    pub fn events(&self) -> BoxStream<'_, ServeEvent> {
        // A person who lets it serve once expects to see each refusal.
        let code = if self.once { None } else { self.find.code() };
        let serving = Serving {
            server: self,
            queue: WorkQueue::new(self.client.clone(), self.claims.clone(), code, self.once),
            list_triggers: Instant::now(),
            list_schedules: Instant::now(),
            leaves: self.leaves.subscribe(),
            timers: VecDeque::new(),
            is_firing: false,
            deliver: Instant::now(),
            is_delivering: false,
            busy: HashSet::new(),
            jobs: FuturesUnordered::new(),
            events: VecDeque::new(),
        };
        unfold(serving, async |mut serving| Some((serving.next().await?, serving))).fuse().boxed()
    }

    /// Stops claiming, releases the claimed runs of each of its runners as [`Runner::release`] does, and returns the joint outcome.
    pub async fn release(&self) -> Release {
        self.leaves.send_replace(true);
        let runners = self.claims.known.all();
        let mut release = Release::default();
        join_all(runners.iter().map(Runner::release)).await.into_iter().for_each(|one| release.add(one));
        release
    }
}

impl<F> fmt::Debug for Server<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("once", &self.once).finish_non_exhaustive()
    }
}

/// The running jobs of a server.
struct Serving<'a, F> {
    server: &'a Server<F>,
    queue: WorkQueue,
    /// When the due triggers are listed again.
    list_triggers: Instant,
    /// When every schedule is checked again.
    list_schedules: Instant,
    leaves: watch::Receiver<bool>,
    /// Due triggers, in order.
    timers: VecDeque<Timer>,
    /// Whether triggers are being listed or one is being started.
    is_firing: bool,
    /// When the durable sinks are fed again, and whether they are.
    deliver: Instant,
    is_delivering: bool,
    /// The runs that are claimed or in progress.
    busy: HashSet<RunId>,
    jobs: FuturesUnordered<BoxFuture<'a, Done>>,
    events: VecDeque<ServeEvent>,
}

/// The result of a job.
enum Done {
    Listed(Result<Vec<Timer>, StoreError>),
    Claimed { row: Box<RunSummary>, claimed: Result<RunHandle<Value>, ClaimError> },
    Settled { run: RunId, settled: Settled },
    Delivered(Result<(), StoreError>),
    Fired { timer: Timer, fired: Result<RunHandle<Value>, NotFired> },
}

impl<'a, F: FindRunner> Serving<'a, F> {
    async fn next(&mut self) -> Option<ServeEvent> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
            let leaves = *self.leaves.borrow_and_update();
            if leaves && self.jobs.is_empty() {
                // A slow store does not delay the end.
                _ = tokio::time::timeout(LAST_NOTES, self.queue.note_refusals(Duration::ZERO)).await;
                return None;
            }
            tokio::select! {
                Some(done) = self.jobs.next() => {
                    self.note(done).await;
                    if leaves || !self.server.once || !self.jobs.is_empty() {
                        continue;
                    }
                }
                // The server has the sender.
                _ = self.leaves.changed() => continue,
                () = self.queue.wait(), if !leaves => {}
            }
            self.poll().await;
            if self.server.once && self.jobs.is_empty() && self.events.is_empty() {
                return None;
            }
        }
    }

    /// Polls for work and begins it.
    async fn poll(&mut self) {
        if !self.is_firing && self.timers.is_empty() && Instant::now() >= self.list_triggers {
            let server = self.server;
            self.list_triggers = Instant::now() + POLL;
            self.is_firing = true;
            let all = Instant::now() >= self.list_schedules;
            if all {
                self.list_schedules = Instant::now() + POLL_ALL;
            }
            self.jobs.push(Box::pin(async move {
                Done::Listed(server.due(all).await.map(|due| server.triggers.ready(due)))
            }));
        }
        if !self.is_delivering && Instant::now() >= self.deliver {
            let server = self.server;
            self.deliver = Instant::now() + DELIVER;
            self.is_delivering = true;
            self.jobs.push(Box::pin(async { Done::Delivered(server.deliver_lost().await) }));
        }
        // A run is reserved only if it can be loaded now.
        let mut permits: Vec<_> = std::iter::from_fn(|| self.server.load_permits.try_take()).collect();
        match self.queue.take(permits.len(), |run| self.busy.contains(run)).await {
            Ok(rows) => rows.into_iter().for_each(|row| self.claim(row, permits.pop())),
            Err(error) => self.events.push_back(ServeEvent::Failed(error)),
        }
    }

    fn claim(&mut self, row: RunSummary, permit: Option<LoadPermit>) {
        let server = self.server;
        self.busy.insert(row.run.clone());
        self.jobs.push(Box::pin(async move {
            let claimed = async {
                let runner = server.runner(server.find.for_run(&row).await?).await.map_err(ResumeError::Store)?;
                Ok(runner.resume_with(&row.run, permit, None).await?)
            };
            let claimed = claimed.await;
            Done::Claimed { row: Box::new(row), claimed }
        }));
    }

    /// Starts the next due trigger, unless one is being started.
    fn fire_next(&mut self) {
        if self.is_firing || *self.leaves.borrow() {
            return;
        }
        let Some(timer) = self.timers.pop_front() else { return };
        let server = self.server;
        self.is_firing = true;
        self.jobs.push(Box::pin(async move {
            let fired = async {
                let found = server.find.for_trigger(&timer).await;
                #[cfg(feature = "schedules")]
                if let Err(none) = &found {
                    server.note_broken(&timer, none).await;
                }
                let found = found?;
                let runner = server.runner(found).await.map_err(|error| not_started(&timer, error))?;
                Ok(runner.fire(&timer).await?)
            };
            let fired = fired.await;
            Done::Fired { timer, fired }
        }));
    }

    /// Waits for a run to settle, concurrently.
    fn wait_for(&mut self, run: RunHandle<Value>) {
        self.busy.insert(run.id().clone());
        self.jobs.push(Box::pin(async move {
            let settled = run.settled().await;
            Done::Settled { run: run.id().clone(), settled }
        }));
    }

    async fn note(&mut self, done: Done) {
        match done {
            Done::Listed(listed) => {
                self.is_firing = false;
                match listed {
                    Ok(timers) => self.timers.extend(timers),
                    Err(error) => self.events.push_back(ServeEvent::Failed(error)),
                }
                self.fire_next();
            }
            Done::Claimed { row, claimed: Ok(run) } => {
                self.events.push_back(ServeEvent::Claimed { run: row.run.clone(), from: row.next });
                if let Some(crashes) = run.state().crashes().filter(|crashes| crashes.count >= SUSPECT) {
                    self.events.push_back(ServeEvent::Suspect { run: row.run, crashes });
                }
                self.wait_for(run);
            }
            Done::Claimed { row, claimed: Err(error) } => {
                self.busy.remove(&row.run);
                self.refused(&row, error).await;
            }
            Done::Settled { run, settled } => {
                self.busy.remove(&run);
                if !matches!(settled, Settled::Stopped(_)) {
                    self.queue.again(&run);
                } else if *self.leaves.borrow() {
                    return self.events.push_back(ServeEvent::Released { run });
                }
                self.events.push_back(ServeEvent::Settled { run, settled });
            }
            Done::Delivered(delivered) => {
                self.is_delivering = false;
                self.events.extend(delivered.err().map(ServeEvent::Failed));
            }
            Done::Fired { timer, fired } => {
                self.is_firing = false;
                match fired {
                    Ok(run) => {
                        let (timer, id) = (Box::new(timer), run.id().clone());
                        if !self.busy.contains(&id) {
                            self.wait_for(run);
                        }
                        self.events.push_back(ServeEvent::Fired { timer, run: id });
                    }
                    Err(NotFired::Fire(FireError::Busy { .. } | FireError::Gone { .. })) => {}
                    Err(error) => {
                        match &error {
                            NotFired::NoRunner(_) => self.server.triggers.refuse(&timer),
                            NotFired::Fire(error) => self.server.triggers.note(&timer, may_retry(error)),
                        }
                        self.events.push_back(ServeEvent::NotFired { timer: Box::new(timer), error });
                    }
                }
                self.fire_next();
            }
        }
    }

    async fn refused(&mut self, row: &RunSummary, error: ClaimError) {
        if let ClaimError::Resume(ResumeError::Quarantined { .. }) = error {
            return self.queue.postpone(row).await;
        }
        let is_elsewhere = matches!(
            error,
            ClaimError::Resume(ResumeError::Claimed { .. } | ResumeError::Over { .. } | ResumeError::Leaves)
        );
        if is_elsewhere {
            return self.queue.release(row).await;
        }
        // The claim itself may have been recorded.
        let row = &RunSummary { next: after_claims(self.server.client.store(), row).await, ..row.clone() };
        match (error.refusal(), &error) {
            (Some(reason), _) => self.queue.refuse(row, reason, &error.to_string()).await,
            (None, ClaimError::Resume(error)) => self.queue.pause(row, Some(error.clone())).await,
            (None, ClaimError::NoRunner(_)) => self.queue.pause(row, None).await,
        }
        self.events.push_back(ServeEvent::Refused { run: row.run.clone(), error });
    }
}

fn not_started(timer: &Timer, error: StoreError) -> FireError {
    FireError::Start { firing: Firing::of(timer), reason: Box::new(ConversationError::Store(error)) }
}

impl<F> Server<F> {
    /// Delivers what processes that died did not: events to the durable sinks of its runners, and the ends of child runs.
    async fn deliver_lost(&self) -> Result<(), StoreError> {
        for runner in self.claims.known.all() {
            deliver_lost(&runner).await?;
        }
        deliver_lost_ends(&self.client).await
    }

    /// Lists the due triggers, and the ticks of schedules whose runs are to be started.
    async fn due(&self, all: bool) -> Result<Vec<Timer>, StoreError> {
        let due = self.client.due_triggers().await?;
        #[cfg(feature = "schedules")]
        let due = {
            let schedules = self.client.schedules();
            let ticks = if all { Box::pin(schedules.due_of_all()).await? } else { Box::pin(schedules.due()).await? };
            [due, ticks].concat()
        };
        #[cfg(not(feature = "schedules"))]
        let _ = all;
        Ok(due)
    }

    /// Notes in a schedule that no runner can ever start its tick here.
    #[cfg(feature = "schedules")]
    async fn note_broken(&self, timer: &Timer, none: &super::find_runner::NoRunner) {
        if let (Some(tick), Some(_)) = (&timer.scheduled, none.refusal)
            && let Err(error) = self.client.schedules().note_broken(tick, &none.message).await
        {
            tracing::warn!(%error, "cannot mark the schedule as broken");
        }
    }

    /// Makes a runner one of this server's, which share their pauses and suspects and leave it to the server to continue their runs.
    async fn runner(&self, runner: Runner) -> Result<Runner, StoreError> {
        let (backoffs, quarantine) = (self.claims.backoffs.clone(), self.claims.quarantine.clone());
        let state = StoreState { backoffs, quarantine, ..(*runner.state).clone() };
        let runner = Runner { state: Arc::new(state), ..runner.driven() };
        self.claims.known.add(&runner).await?;
        if *self.leaves.borrow() {
            runner.release().await;
        }
        Ok(runner)
    }
}
