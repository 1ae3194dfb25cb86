//! Runs begin here, and runs that exist are found again: opened, or taken over after a crash.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::async_effects::panicked;
use super::attend::attend;
use super::claim::{NoClaim, append_alone, claim, worker_of};
use super::commit::{Extras, append_of, follow, stamp};
use super::registry::LEAVES;
use super::restore::migration;
use super::serve::Place;
use super::shared::{Folded, Shared, Stop};
use super::start::differences;
use super::triggers::fires;
use super::worker::Worker;
use super::{Client, RunHandle, Runner, StartError, load};
use crate::definition::{BrainDefinition, LimitGuard, StageBody, with_document_limit};
use crate::machine::{IllegalEvent, RunState, has_limit_of_money};
use crate::projection::Prompts;
use crate::record::{
    BrainStart, ClaimRefusal, EndReason, Epoch, EventKind, Failure, NewEvent, Path, PluginStates, RunId, RunSummary,
    Seq, Start, check_document,
};
use crate::store::StoreError;

/// Says why a run is not gone on with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResumeError {
    /// Another worker has it.
    #[error("the worker `{by}` has the run in hand; it goes on there")]
    Claimed {
        /// The worker.
        by: String,
    },
    /// The run is over.
    #[error("the run `{run}` is over")]
    Over {
        /// The run.
        run: RunId,
    },
    /// The runner does not know the run's brain.
    #[error("the run is of the brain `{brain}`, which this runner does not know; add it with `.brain(…)`")]
    NoBrain {
        /// The brain's title.
        brain: String,
    },
    /// The brain's code is another one than the run has begun with.
    #[error(
        "the code has changed since the run began: {difference}; go on with the old code, or fork the run where the \
         new code fits"
    )]
    Changed {
        /// What differs.
        difference: String,
    },
    /// The run has a limit of money, and the runner has not the prices to keep it with.
    #[error("the run has a limit of money: {what}; go on with the prices that it began with")]
    Prices {
        /// What is wrong with the runner's prices.
        what: String,
    },
    /// The runner lets go of all its runs, and takes none any more: [`Runner::release`].
    #[error("{LEAVES}")]
    Leaves,
    /// The log does not hold together.
    #[error(transparent)]
    Illegal(#[from] IllegalEvent),
    /// Code that has to run before the work begins has panicked.
    #[error("the run cannot be gone on with: {reason}")]
    Panicked {
        /// What panicked, and what it said.
        reason: String,
    },
    /// The services of the brain cannot be provided now.
    #[error("cannot provide the services of the brain: {reason}")]
    Services {
        /// Why, as their provider says it; or what it said where it panicked.
        reason: String,
    },
    /// A due effect led to no event.
    #[error("the run makes no progress: a due effect led to no event; this is a bug in positronic, please report it")]
    NoProgress,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ResumeError {
    /// Returns why a worker like this one can never claim the run as it is; none where another try may go well.
    #[must_use]
    pub const fn refusal(&self) -> Option<ClaimRefusal> {
        match self {
            Self::NoBrain { .. } => Some(ClaimRefusal::NoBrain),
            Self::Changed { .. } => Some(ClaimRefusal::Changed),
            Self::Prices { .. } => Some(ClaimRefusal::Prices),
            _ => None,
        }
    }
}

impl From<Stop> for ResumeError {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Lost => Self::Claimed { by: "another worker".to_owned() },
            Stop::Store(error) => Self::Store(error),
            Stop::Illegal(error) => Self::Illegal(error),
            Stop::Changed(difference) => Self::Changed { difference },
            Stop::Panicked(reason) => Self::Panicked { reason },
            Stop::Services(reason) => Self::Services { reason },
            Stop::Leaves => Self::Leaves,
            Stop::Nothing => Self::NoProgress,
        }
    }
}

impl Runner {
    /// Starts a run of a brain without its types; its options and its result are JSON.
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

    /// Starts a run whose plugins keep what they kept before.
    pub(super) async fn start_keeping(
        &self,
        definition: Arc<BrainDefinition>,
        options: Value,
        start: Start,
        plugins: PluginStates,
    ) -> Result<RunHandle<Value>, StartError> {
        self.actions.check(&definition)?;
        if start.message.is_some() && !definition.stages.iter().any(|stage| matches!(stage.body, StageBody::Loop(_))) {
            return Err(StartError::NoListener { brain: definition.title.clone() });
        }
        let misfit = |reason| StartError::Options { brain: definition.title.clone(), reason };
        check_document(&options, self.max_document_bytes).map_err(|error| misfit(error.to_string()))?;
        let read = {
            let _limit = LimitGuard::enter(self.max_document_bytes);
            (definition.read_options)(&options)
        };
        let options = read.map_err(|error| misfit(error.to_string()))?;
        let run = match &start.id {
            Some(id) => RunId::new(id.as_str()),
            None => self.ids.run(),
        };
        let given = start.clone();
        let start = (start != Start::default()).then_some(start);
        let begin = BrainStart { start, plugins, ..definition.begin(options.clone()) };
        let (runner, id, code) = (self.clone(), run.clone(), Arc::clone(&definition));
        self.started.insert(&definition);
        let begun = async move { runner.begin(&id, code, begin).await };
        let begun = apart(with_document_limit(self.max_document_bytes, begun));
        match begun.await.unwrap_or_else(|panic| std::panic::resume_unwind(panic)) {
            Err(StartError::Store(StoreError::Conflict { .. })) => {}
            begun => return begun,
        }
        // The same start again is the same run, but nobody gets hold of another one's by its id.
        let known = load::whole(&*self.store, &run).await?;
        let differs = differences(&known.state, &definition, &options, &given);
        if differs.is_empty() {
            Ok(self.attended(run, Some(definition), known))
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
        // In hand before anybody else can find it. Where it is in hand already, the store says so once it is there.
        let grip = self.in_hand.grip(run);
        if self.in_hand.is_leaving() {
            return Err(StartError::Leaves);
        }
        let epoch = Epoch(1);
        let mut now = self.clock.now();
        let owner = self.owner().await?.name().to_owned();
        let trace = begin.start.as_ref().and_then(|start| start.actor.trace.clone());
        let before = begin.start.as_ref().and_then(|start| start.after.clone());
        let mut prompts = match before {
            Some(before) => {
                // Lists go by time, and a clock may stand still, or go back.
                now = now.max(self.store.run(&before).await?.at.after(Duration::from_micros(1)));
                Prompts::after(load::history(&*self.store, &before).await?)
            }
            None => Prompts::default(),
        }
        .in_run(run);
        let begin = vec![NewEvent::new(Path::root(), EventKind::BrainStart(Box::new(begin)))];
        let claim = vec![NewEvent::new(Path::root(), EventKind::RunClaimed { owner, trace })];
        let mut events = stamp(begin, Seq(0), now, None);
        events.extend(stamp(claim, Seq(1), now, Some(epoch)));
        let none = RunState::default();
        let state = follow(&none, &events).map_err(|error| StoreError::corrupt_log(run, error))?;
        // The run is there and the trigger has fired, or neither.
        let timers = fires(&state.start, now).into_iter().collect();
        let append = append_of(run, &none, &state, None, &events, Extras { timers, ..Extras::default() });
        let summary = append.index.summary.clone();
        self.store.append(run, append).await?;
        for event in &events {
            prompts.apply(event);
        }
        let folded = Folded { state, prompts, summary, snapshot: Seq(0) };
        let served = folded.state.start.fired.is_some();
        let shared = Shared::new(self.clone(), run.clone(), Some(Arc::clone(&definition)), served, folded);
        shared.feed(Seq(0));
        let begun = shared.state().clone();
        let made = match grip {
            Some(grip) => Worker::restored(&shared, &begun, &definition, epoch, grip).await.map(Some),
            None => Ok(None),
        };
        let worker = match made {
            Ok(worker) => worker,
            Err(stop) => {
                let failure = Failure { code: EndReason::Config, message: stop.to_string(), retryable: false };
                // Where that cannot be written, whoever attends to the run comes to the same.
                _ = append_alone(&shared, epoch, EventKind::BrainError(failure)).await;
                None
            }
        };
        tokio::spawn(attend(Arc::clone(&shared), worker));
        Ok(RunHandle::new(shared))
    }

    fn attended(&self, run: RunId, definition: Option<Arc<BrainDefinition>>, folded: Folded) -> RunHandle<Value> {
        let next = folded.state.next;
        let shared = Shared::new(self.clone(), run, definition, false, folded);
        shared.feed(next);
        tokio::spawn(attend(Arc::clone(&shared), None));
        RunHandle::new(shared)
    }

    /// Opens a run to look at it, to wait for it and to send it signals. The work is done elsewhere.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoSuchRun`] when there is no such run, or as the store fails.
    pub async fn open(&self, run: &RunId) -> Result<RunHandle<Value>, StoreError> {
        let folded = load::whole(&*self.store, run).await?;
        Ok(self.attended(run.clone(), None, folded))
    }

    /// Goes on with a run that no worker has in hand, and from then on does whatever work there is in it.
    ///
    /// # Errors
    ///
    /// [`ResumeError`]; the run is as before then, but for [`ResumeError::Store`], where the log holds whatever could be
    /// written.
    pub async fn resume(&self, run: &RunId) -> Result<RunHandle<Value>, ResumeError> {
        self.resume_as(run, Resumption::default()).await
    }

    pub(super) async fn resume_as(&self, run: &RunId, how: Resumption) -> Result<RunHandle<Value>, ResumeError> {
        let (runner, run) = (self.clone(), run.clone());
        let resumed = async move { runner.resume_here(&run, how).await };
        let resumed = apart(with_document_limit(self.max_document_bytes, resumed)).await;
        resumed.unwrap_or_else(|panic| Err(ResumeError::Panicked { reason: panicked(&*panic).to_string() }))
    }

    /// Says how the code of a run's brain differs from what the run began with, up to the stage that it is at. It does nothing
    /// but look: none where the code fits or a migration takes the run over to it, where the run is over, and where this
    /// runner does not know the brain. Arguments of open calls are not looked at, which [`Runner::resume`] does.
    ///
    /// # Errors
    ///
    /// [`StoreError`] as the store fails.
    pub async fn changed(&self, run: &RunId) -> Result<Option<String>, StoreError> {
        let folded = load::whole(&*self.store, run).await?;
        let definition = self.plan_of(&folded.summary.brain);
        let open = folded.state.root.as_deref().filter(|_| !folded.state.has_ended());
        Ok(definition.zip(open).and_then(|(definition, root)| migration(root, &definition).err()))
    }

    async fn resume_here(&self, run: &RunId, how: Resumption) -> Result<RunHandle<Value>, ResumeError> {
        let Resumption { place, definition, served } = how;
        // The row says which worker has claimed the run; the log is loaded only where none has.
        let row = self.store.run(run).await?;
        if row.has_work(self.clock.now())
            && let Some(by) = self.claimed_by(&row).await?
        {
            return Err(ResumeError::Claimed { by });
        }
        let folded = load::whole(&*self.store, run).await?;
        drop(place);
        if folded.state.has_ended() {
            return Err(ResumeError::Over { run: run.clone() });
        }
        let title = Arc::clone(&folded.summary.brain);
        let Some(definition) = definition.or_else(|| self.plan_of(&title)) else {
            return Err(ResumeError::NoBrain { brain: title.to_string() });
        };
        if let Some(root) = &folded.state.root {
            migration(root, &definition).map_err(|difference| ResumeError::Changed { difference })?;
        }
        self.can_pay(&folded.state)?;
        self.backoffs.end(run);
        let next = folded.state.next;
        let shared = Shared::new(self.clone(), run.clone(), Some(definition), served, folded);
        let begun = match claim(&shared).await {
            Ok(worker) => Some(worker),
            Err(NoClaim::Idle | NoClaim::NoCode) => None,
            Err(NoClaim::Claimed { by }) => return Err(ResumeError::Claimed { by }),
            Err(NoClaim::Stopped(stop)) => return Err(stop.into()),
        };
        // Not before: where another worker has the run, its events are no business of the sinks here.
        shared.feed(next);
        tokio::spawn(attend(Arc::clone(&shared), begun));
        Ok(RunHandle::new(shared))
    }

    /// Refuses a run with a limit of money that this runner's prices cannot keep: it waits for a runner that can.
    fn can_pay(&self, state: &RunState) -> Result<(), ResumeError> {
        let counted = state.currency.as_deref();
        let own = self.prices.as_ref().map(|prices| prices.currency.as_str());
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

    /// Returns the control of the store's runs: lists, decisions, webhooks.
    #[must_use]
    pub fn client(&self) -> Client {
        let (store, clock, ids) = (Arc::clone(&self.store), Arc::clone(&self.clock), Arc::clone(&self.ids));
        Client::with(store, clock, ids, self.live.clone()).max_document_bytes(self.max_document_bytes)
    }

    /// Returns the live worker that has claimed a run, if one has. The row is enough to know it.
    pub(super) async fn claimed_by(&self, row: &RunSummary) -> Result<Option<String>, StoreError> {
        let worker = worker_of(&*self.store, row.claim.as_ref()).await?.map(str::to_owned);
        let own = self.owner().await?.name();
        // A worker of this runner that is not at work has left the run without being able to say so.
        Ok(worker.filter(|worker| worker != own || self.in_hand.has(&row.run)))
    }
}

/// How a run is resumed.
#[derive(Default)]
pub(super) struct Resumption {
    /// The place among the runs that are loaded at once, which is free once this one is.
    pub(super) place: Option<Place>,
    /// The brain's code, where it need not be looked up.
    pub(super) definition: Option<Arc<BrainDefinition>>,
    /// Whether a server of the store resumes it, which finds it again after a wait.
    pub(super) served: bool,
}

/// Does work that must not be left half done where whoever asked for it does not wait for it any more: a run that was
/// claimed has to be attended to. Answers with a panic where there was one.
async fn apart<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, Box<dyn std::any::Any + Send>> {
    match tokio::spawn(work).await {
        Ok(done) => Ok(done),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => Err(panic),
            // The runtime is shutting down, and so is whoever waits.
            Err(_) => std::future::pending().await,
        },
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Shared").field(&self.run).finish()
    }
}
