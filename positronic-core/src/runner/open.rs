//! Starting, opening and resuming of runs.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc;

use super::catch::panicked;
use super::effects::link::RunLink;
use super::start::{check_names, check_tags, differences};
use super::work::resume_options::Resumption;
use super::work::run_task::attend;
use super::worker::Worker;
use super::worker::append::{Extras, append, append_of, follow, stamp, worker_of};
use super::worker::claim::{NoClaim, append_alone, claim, epoch_after};
use super::worker::frames::Frames;
use super::worker::load;
use super::worker::restore::{migration, version_difference};
use super::worker::shared::{Folded, Shared};
use super::worker::stop::{ResumeError, Stop};
use super::worker::timers::fires;
use super::{Client, RunHandle, Runner, StartError};
use crate::definition::{BrainDefinition, encode};
use crate::dsl::Runnable;
use crate::machine::{IllegalEvent, RunState, has_limit_of_money};
use crate::projection::Prompts;
use crate::record::{
    BrainStart, EndReason, Epoch, EventKind, Failure, NewEvent, Path, PluginStates, RunId, RunSummary, Seq, SignalKind,
    Start, Timestamp, check_document, check_message, sha256,
};
use crate::store::StoreError;

/// How the code differs from what a run needs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CodeCheck {
    /// How its brain differs from the code that the run began with, up to its current stage.
    pub brain: Option<String>,
    /// What its open calls need and the code does not have.
    pub calls: Option<String>,
}

impl CodeCheck {
    /// Returns the difference because of which a signal must not be sent: the code could not carry out an answer to an open call,
    /// or could not continue a resumed run. The other signals, such as a rejection, need no code.
    #[must_use]
    pub fn refuses(&self, signal: &SignalKind) -> Option<&str> {
        match signal {
            SignalKind::Approve { .. }
            | SignalKind::Grant { .. }
            | SignalKind::Webhook { .. }
            | SignalKind::Reply { .. } => self.calls.as_deref(),
            SignalKind::Resume => self.brain.as_deref(),
            SignalKind::Reject { .. } | SignalKind::Message { .. } | SignalKind::Pause | SignalKind::Cancel { .. } => {
                None
            }
        }
    }
}

impl Runner {
    /// Starts a run of a brain.
    ///
    /// The handle may be dropped: the runner continues the run, even after a wait, as long as the runner or a
    /// clone of it exists. From then on [`Runner::resume`] and [`Runner::serve`] find the brain's code.
    ///
    /// # Errors
    ///
    /// [`StartError::Options`] if the options cannot be stored or do not match their own schema,
    /// [`StartError::Action`] if the brain names an action that this runner does not have,
    /// [`StartError::Started`] if the store has another run with that id, [`StartError::Store`] if the store
    /// fails.
    pub async fn start<B: Runnable>(&self, brain: B, options: B::Options) -> Result<RunHandle<B::Result>, StartError> {
        self.start_with(brain, options, Start::default()).await
    }

    /// Starts a run of a brain and records who started it. `start.id` becomes the run's id: a second start with
    /// the same id and inputs returns the same run, which this runner then attends to as well.
    ///
    /// # Errors
    ///
    /// As [`Runner::start`]; [`StartError::NoListener`] and [`StartError::Message`] if the run cannot begin with the
    /// message.
    pub async fn start_with<B: Runnable>(
        &self,
        brain: B,
        options: B::Options,
        start: Start,
    ) -> Result<RunHandle<B::Result>, StartError> {
        let definition = brain.definition();
        let options = encode(&options, self.settings.max_document_bytes)
            .map_err(|error| StartError::Options { brain: definition.title.clone(), reason: error.to_string() })?;
        Ok(self.start_definition(definition, options, start).await?.typed())
    }

    /// Starts a run of an untyped brain; its options and its result are JSON.
    ///
    /// # Errors
    ///
    /// As [`Runner::start`].
    pub async fn start_definition(
        &self,
        definition: Arc<BrainDefinition>,
        options: Value,
        start: Start,
    ) -> Result<RunHandle<Value>, StartError> {
        self.start_keeping(definition, options, start, PluginStates::default()).await
    }

    /// Starts a run whose plugins begin with these states.
    pub(super) async fn start_keeping(
        &self,
        definition: Arc<BrainDefinition>,
        options: Value,
        start: Start,
        plugins: PluginStates,
    ) -> Result<RunHandle<Value>, StartError> {
        self.code.actions.check(&definition)?;
        if let Some(opening) = &start.message {
            check_message(&opening.text, &opening.files, self.settings.max_document_bytes)
                .map_err(StartError::Message)?;
        }
        if start.message.is_some() && !definition.stages.iter().any(|stage| stage.body.as_loop().is_some()) {
            return Err(StartError::NoListener { brain: definition.title.clone() });
        }
        check_names(&start)?;
        check_tags(&start.tags)?;
        let misfit = |reason| StartError::Options { brain: definition.title.clone(), reason };
        check_document(&options, self.settings.max_document_bytes).map_err(|error| misfit(error.to_string()))?;
        let read = (definition.read_options)(&options, self.settings.max_document_bytes);
        let options = read.map_err(|error| misfit(error.to_string()))?;
        let run = match &start.id {
            Some(id) => RunId::new(id.as_str()),
            None => self.ids.run(),
        };
        let given = start.clone();
        let start = (start != Start::default()).then_some(start);
        let begin = BrainStart { start, plugins, ..definition.begin(options.clone()) };
        let (runner, id, code) = (self.clone(), run.clone(), Arc::clone(&definition));
        self.state.started.insert(&definition);
        let begun = async move { runner.begin(&id, code, begin).await };
        match apart(begun).await.unwrap_or_else(|panic| std::panic::resume_unwind(panic)) {
            Err(StartError::Store(StoreError::Conflict { .. })) => {}
            begun => return begun,
        }
        // A repeated start returns the same run; another run with that id is refused.
        let known = load::whole(&*self.store, &run, &self.state.histories).await?;
        let differs = differences(&known.state, &definition, &options, &given);
        if differs.is_empty() {
            Ok(self.attended(run, Some(definition).filter(|_| !self.settings.submits), known))
        } else {
            Err(StartError::Started { run, differs })
        }
    }

    async fn begin(
        &self,
        run: &RunId,
        definition: Arc<BrainDefinition>,
        begin: BrainStart,
    ) -> Result<RunHandle<Value>, StartError> {
        if self.settings.submits {
            return self.submit(run, begin).await;
        }
        // Registered before another process can find it. If it is registered already, the store refuses the
        // append.
        let guard = self.state.registry.guard(run);
        if self.state.registry.is_leaving() {
            return Err(StartError::Leaves);
        }
        let epoch = Epoch(1);
        let lease = self.lease().await?;
        let owner = lease.owner().to_owned();
        let trace = begin.start.as_ref().and_then(|start| start.actor.trace.clone());
        let before = begin.start.as_ref().and_then(|start| start.after.clone());
        let now = self.time_after(before.as_ref()).await?;
        let mut prompts = match before {
            Some(before) => Prompts::after(load::history(&*self.store, &before, &self.state.histories).await?),
            None => Prompts::default(),
        }
        .in_run(run);
        let begin = vec![NewEvent::new(Path::root(), EventKind::BrainStart(Box::new(begin)))];
        let claim = vec![NewEvent::new(Path::root(), EventKind::RunClaimed { owner, trace })];
        let mut events = stamp(begin, Seq(0), now, None);
        events.extend(stamp(claim, Seq(1), now, Some(epoch)));
        let none = RunState::default();
        let state = follow(&none, &events).map_err(|error| StoreError::corrupt_log(run, error))?;
        // One append begins the run and fires the trigger.
        let timers = fires(&state.start, now).into_iter().collect();
        let extras = Extras { timers, sinks: self.durable_sinks(), ..Extras::default() };
        let begun = append_of(run, &none, &state, None, &events, extras);
        let summary = begun.index.summary.clone();
        append(&*self.store, run, begun).await?;
        for event in &events {
            prompts.apply(event);
        }
        let folded = Folded { state, prompts, summary, snapshot: Seq(0) };
        let start = &folded.state.start;
        let served = self.settings.driven || start.fired.is_some() || start.scheduled.is_some();
        let shared = Shared::new(self.clone(), run.clone(), Some(Arc::clone(&definition)), served, folded);
        shared.feed(Seq(0));
        let begun = shared.state().clone();
        let made = match guard {
            Some(guard) => {
                let mut worker = Worker::new(&shared, (epoch, lease), guard);
                let frames = Frames::restored(run, &begun, &definition, &worker.link).await;
                frames.map(|frames| {
                    worker.frames = frames;
                    Some(worker)
                })
            }
            None => Ok(None),
        };
        let worker = match made {
            Ok(worker) => worker,
            Err(stop) => {
                let failure = Failure { code: EndReason::Config, message: stop.to_string(), retryable: false };
                // If this append fails, the run's task comes to the same result.
                _ = append_alone(&shared, epoch, EventKind::BrainError(failure)).await;
                None
            }
        };
        tokio::spawn(attend(Arc::clone(&shared), worker));
        Ok(RunHandle::new(shared))
    }

    /// Appends the first event of a run, and leaves the work to another worker.
    async fn submit(&self, run: &RunId, begin: BrainStart) -> Result<RunHandle<Value>, StartError> {
        let before = begin.start.as_ref().and_then(|start| start.after.as_ref());
        let now = self.time_after(before).await?;
        let events =
            stamp(vec![NewEvent::new(Path::root(), EventKind::BrainStart(Box::new(begin)))], Seq(0), now, None);
        let none = RunState::default();
        let state = follow(&none, &events).map_err(|error| StoreError::corrupt_log(run, error))?;
        let extras = Extras { timers: fires(&state.start, now).into_iter().collect(), ..Extras::default() };
        append(&*self.store, run, append_of(run, &none, &state, None, &events, extras)).await?;
        Ok(self.open(run).await?)
    }

    /// Returns the time at which a run starts after another one of its conversation. Lists are ordered by time, and a
    /// clock may stand still or go back.
    async fn time_after(&self, before: Option<&RunId>) -> Result<Timestamp, StoreError> {
        let now = self.clock.now();
        Ok(match before {
            Some(before) => now.max(self.store.run(before).await?.at.after(Duration::from_micros(1))),
            None => now,
        })
    }

    fn attended(&self, run: RunId, definition: Option<Arc<BrainDefinition>>, folded: Folded) -> RunHandle<Value> {
        let next = folded.state.next;
        let shared = Shared::new(self.clone(), run, definition, self.settings.driven, folded);
        shared.feed(next);
        tokio::spawn(attend(Arc::clone(&shared), None));
        RunHandle::new(shared)
    }

    /// Opens a run to read it, to wait for it and to send signals. The runner does not claim it.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoSuchRun`] if there is no such run; other variants if the store fails.
    pub async fn open(&self, run: &RunId) -> Result<RunHandle<Value>, StoreError> {
        let folded = load::whole(&*self.store, run, &self.state.histories).await?;
        Ok(self.attended(run.clone(), None, folded))
    }

    /// Claims a run that no worker has claimed, and works on it from then on.
    ///
    /// # Errors
    ///
    /// [`ResumeError`]; the run is unchanged then, except for [`ResumeError::Store`], where the log has what
    /// could be written.
    pub async fn resume(&self, run: &RunId) -> Result<RunHandle<Value>, ResumeError> {
        self.resume_as(run, Resumption::default()).await
    }

    pub(super) async fn resume_as(&self, run: &RunId, how: Resumption) -> Result<RunHandle<Value>, ResumeError> {
        let (runner, run) = (self.clone(), run.clone());
        let resumed = async move { runner.resume_here(&run, how).await };
        let resumed = apart(resumed).await;
        resumed.unwrap_or_else(|panic| Err(ResumeError::Panicked { reason: panicked(&*panic).to_string() }))
    }

    /// Returns how the code differs from what a run needs ([`Runner::check_code`]).
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store fails.
    pub async fn changed(&self, run: &RunId) -> Result<Option<String>, StoreError> {
        let CodeCheck { brain, calls } = self.check_code(run).await?;
        Ok(brain.or(calls))
    }

    /// Compares the code with what a run needs. It finds nothing if the code matches or a migration leads to it, if the run has ended,
    /// and if this runner does not know the brain. It changes nothing.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store fails.
    pub async fn check_code(&self, run: &RunId) -> Result<CodeCheck, StoreError> {
        let folded = load::whole(&*self.store, run, &self.state.histories).await?;
        let definition = self.definition_of(&folded.summary.brain).filter(|_| !folded.state.has_ended());
        let Some((definition, root)) = definition.zip(folded.state.root.as_deref()) else {
            return Ok(CodeCheck::default());
        };
        let migrated = match migration(root, &definition, self.settings.max_document_bytes) {
            Ok(migrated) => migrated,
            Err(difference) => return Ok(CodeCheck { brain: Some(difference), calls: None }),
        };
        let claimed = would_claim(&folded.state, migrated).map_err(|error| StoreError::corrupt_log(run, error))?;
        let shared = Shared::new(self.clone(), run.clone(), Some(Arc::clone(&definition)), true, folded);
        let (reports, _unread) = mpsc::unbounded_channel();
        let link = Arc::new(RunLink::new(&shared, reports));
        let restored = Frames::restored(run, &claimed, &definition, &link);
        let calls = match restored.await {
            Err(Stop::Changed(difference)) => Some(difference),
            Ok(frames) => frames.missing_tool(&claimed),
            Err(_) => None,
        };
        Ok(CodeCheck { brain: None, calls })
    }

    async fn resume_here(&self, run: &RunId, how: Resumption) -> Result<RunHandle<Value>, ResumeError> {
        let Resumption { place, definition, served } = how;
        // The row names the worker that has claimed the run, so the log of a claimed run is not loaded.
        let row = self.store.run(run).await?;
        if row.has_work(self.clock.now())
            && let Some(by) = self.claimed_by(&row).await?
        {
            return Err(ResumeError::Claimed { by });
        }
        if row.status.is_over() {
            return Err(ResumeError::Over { run: run.clone() });
        }
        let title = Arc::clone(&row.brain);
        let Some(definition) = definition.or_else(|| self.definition_of(&title)) else {
            return Err(ResumeError::NoBrain { brain: title.to_string() });
        };
        if let Some(difference) = version_difference(&title, row.version, &definition) {
            return Err(ResumeError::Changed { difference });
        }
        let folded = load::whole(&*self.store, run, &self.state.histories).await?;
        drop(place);
        if folded.state.has_ended() {
            return Err(ResumeError::Over { run: run.clone() });
        }
        if let Some(root) = &folded.state.root {
            migration(root, &definition, self.settings.max_document_bytes)
                .map_err(|difference| ResumeError::Changed { difference })?;
        }
        self.can_pay(&folded.state)?;
        self.state.backoffs.end(run);
        let next = folded.state.next;
        let shared = Shared::new(self.clone(), run.clone(), Some(definition), served, folded);
        let begun = match claim(&shared).await {
            Ok(worker) => Some(worker),
            Err(NoClaim::Idle | NoClaim::NoCode) => None,
            Err(NoClaim::Claimed { by }) => return Err(ResumeError::Claimed { by }),
            Err(NoClaim::Quarantined { crashes }) => return Err(ResumeError::Quarantined { crashes }),
            Err(NoClaim::Stopped(stop)) => return Err(stop.into()),
        };
        // Only after the claim: the sinks here do not get the events of another worker's run.
        shared.feed(next);
        tokio::spawn(attend(Arc::clone(&shared), begun));
        Ok(RunHandle::new(shared))
    }

    /// Refuses a run with a limit of money that this runner's prices cannot enforce.
    fn can_pay(&self, state: &RunState) -> Result<(), ResumeError> {
        let counted = state.currency.as_deref();
        let own = self.models.prices.as_ref().map(|prices| prices.currency.as_str());
        let fits = own.is_some_and(|own| counted.is_none_or(|counted| counted == own));
        if fits || !has_limit_of_money(state) {
            return Ok(());
        }
        let what = match (own, counted) {
            (Some(own), Some(counted)) => format!("it counts in {counted}, and this runner's prices are in {own}"),
            _ => "this runner has no prices".to_owned(),
        };
        Err(ResumeError::Prices { what })
    }

    /// Returns a hash of the brains' code, on which refusals of runs depend.
    pub(super) fn code_name(&self) -> String {
        let brains = self.code.brains.values().map(|brain| format!("{} {}", brain.title, brain.fingerprint()));
        let mut brains: Vec<_> = brains.collect();
        brains.sort();
        sha256(brains.join("\n").as_bytes())
    }

    /// Returns a client of the store: lists, decisions, webhooks.
    #[must_use]
    pub fn client(&self) -> Client {
        let (store, clock, ids) = (Arc::clone(&self.store), Arc::clone(&self.clock), Arc::clone(&self.ids));
        Client::with(store, clock, ids, self.state.live.clone()).max_document_bytes(self.settings.max_document_bytes)
    }

    /// Returns the live worker that has claimed a run, from its row.
    pub(super) async fn claimed_by(&self, row: &RunSummary) -> Result<Option<String>, StoreError> {
        let worker = worker_of(&*self.store, row.claim.as_ref()).await?.map(str::to_owned);
        let own = self.lease().await?;
        // A worker of this runner that is not registered has left the run without releasing it.
        Ok(worker.filter(|worker| worker != own.owner() || self.state.registry.has(&row.run)))
    }
}

/// Returns the state after a claim by a worker with this code.
fn would_claim(state: &RunState, migrated: Option<EventKind>) -> Result<RunState, IllegalEvent> {
    let claimed = EventKind::RunClaimed { owner: String::new(), trace: None };
    let new_events = [claimed].into_iter().chain(migrated).map(|kind| NewEvent::new(Path::root(), kind)).collect();
    follow(state, &stamp(new_events, state.next, state.at, Some(epoch_after(state))))
}

/// Runs work to its end even if the caller is dropped: a claimed run must have a task. Returns the panic, if there
/// was one.
async fn apart<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, Box<dyn std::any::Any + Send>> {
    match tokio::spawn(work).await {
        Ok(done) => Ok(done),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => Err(panic),
            // The runtime is shutting down.
            Err(_) => std::future::pending().await,
        },
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Shared").field(&self.run).finish()
    }
}
