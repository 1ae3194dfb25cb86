//! The runner: its models, its store, its limits and the brains that it knows.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;
use parking_lot::Mutex;

use super::client::live::LiveDeltas;
use super::client::sink_feed::Feeds;
use super::conversation::histories::Histories;
use super::detached::call::ToolExecutor;
use super::serve::backoffs::{ResumeBackoffs, TriggerBackoffs};
use super::serve::quarantine::Quarantine;
use super::serve::runs_without_handle::Unattended;
use super::worker::claimed_runs::RunRegistry;
use super::worker::lease::{HeldLease, LeaseKeeper};
use crate::definition::{ActionSet, BrainDefinition, StartOn};
use crate::dsl::{Action, ProjectWebhook, Runnable, usage_panic};
use crate::model::{Model, RetryPolicy};
use crate::prices::PriceTable;
use crate::record::{MAX_DOCUMENT_BYTES, Tier, sha256};
use crate::sink::EventSink;
use crate::store::{EventStore, MemoryStore, StoreError};

use super::{Clock, Ids, SystemClock, UuidIds};

/// Runs brains.
///
/// ```no_run
/// # use positronic_core::model::Model;
/// # async fn example(model: impl Model) -> Result<(), Box<dyn std::error::Error>> {
/// use positronic_core::prelude::*;
/// use positronic_core::runner::Runner;
///
/// let greeter = brain("Greeter").r#loop("Greet", |cx| cx.system("Greet the user in one line.").input("Hello!"));
/// let runner = Runner::new(model);
/// let run = runner.start(&greeter, ()).await?;
/// run.result().await?;
/// # Ok(())
/// # }
/// ```
///
/// Each setting is a method that returns the runner. A clone is the same runner: clones share the runs that they work on, their
/// lease and the live deltas, and a run started by one is found by the others. A clone with other settings is the same runner,
/// too, except for its store: it uses its settings for the runs that it starts or resumes, and a run keeps those under which
/// it was started or resumed. [`Runner::store`] makes another runner, which shares no runs.
#[derive(Clone)]
pub struct Runner {
    pub(super) models: Arc<Models>,
    pub(super) store: Arc<dyn EventStore>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) ids: Arc<dyn Ids>,
    pub(crate) settings: RunnerSettings,
    pub(super) code: Arc<Code>,
    pub(super) sinks: Arc<Vec<Arc<Feeds>>>,
    pub(super) state: Arc<StoreState>,
    pub(super) lease: LeaseKeeper,
    pub(super) unattended: Unattended,
}

/// The models of a runner, and what they cost.
#[derive(Clone)]
pub(super) struct Models {
    normal: Arc<dyn Model>,
    high: Option<Arc<dyn Model>>,
    pub(super) prices: Option<PriceTable>,
    pub(super) estimates: Option<PriceTable>,
}

/// How a runner works; the setters say what each means.
#[derive(Clone, Copy)]
pub(crate) struct RunnerSettings {
    pub(super) retry: RetryPolicy,
    /// Whether the outcomes of everything in flight are awaited and appended in path order; see [`testing`](crate::testing).
    pub(crate) lockstep: bool,
    pub(super) linger: Duration,
    pub(super) release_grace: Duration,
    pub(super) max_document_bytes: usize,
    pub(super) hook_timeout: Duration,
    /// Whether the caller continues the runs after a wait, instead of this runner.
    pub(super) driven: bool,
    /// Whether a start only appends the run's first event, and other workers continue it.
    pub(super) submits: bool,
}

/// The code that a runner runs.
#[derive(Clone, Default)]
pub(super) struct Code {
    pub(super) brains: IndexMap<String, Arc<BrainDefinition>>,
    pub(super) actions: ActionSet,
    /// What webhooks start, by their name.
    pub(super) starts: IndexMap<String, Arc<StartOn>>,
    /// The webhooks of the project, by their name.
    pub(super) webhooks: IndexMap<String, ProjectWebhook>,
    /// Performs tool calls apart from the workers.
    pub(super) executor: Option<Arc<dyn ToolExecutor>>,
}

impl Code {
    /// Returns a hash of the brains' code, on which refusals of runs depend.
    pub(super) fn name(&self) -> String {
        let brains = self.brains.values().map(|brain| format!("{} {}", brain.title, brain.fingerprint()));
        let mut brains: Vec<_> = brains.collect();
        brains.sort();
        sha256(brains.join("\n").as_bytes())
    }
}

/// What a runner knows of the runs of its store. Each part is a handle, which a server can share between several runners.
#[derive(Clone, Default)]
pub(super) struct StoreState {
    pub(super) registry: RunRegistry,
    pub(super) backoffs: ResumeBackoffs,
    pub(super) trigger_backoffs: TriggerBackoffs,
    pub(super) quarantine: Quarantine,
    pub(super) histories: Histories,
    pub(super) live: LiveDeltas,
    /// The brains that were started here, for their runs only: `cx.brains()` does not offer them.
    pub(super) started: Started,
}

/// The brains that a runner has started, by title. Clones share them.
#[derive(Clone, Default)]
pub(super) struct Started(Arc<Mutex<HashMap<String, Arc<BrainDefinition>>>>);

impl Started {
    /// Adds a brain, replacing an earlier one with its title.
    pub(super) fn insert(&self, definition: &Arc<BrainDefinition>) {
        let mut all = self.0.lock();
        if all.get(&definition.title).is_none_or(|known| !Arc::ptr_eq(known, definition)) {
            all.insert(definition.title.clone(), Arc::clone(definition));
        }
    }

    pub(super) fn get(&self, title: &str) -> Option<Arc<BrainDefinition>> {
        self.0.lock().get(title).cloned()
    }
}

impl Default for RunnerSettings {
    fn default() -> Self {
        Self {
            retry: RetryPolicy::default(),
            lockstep: false,
            linger: Duration::from_secs(5),
            release_grace: Duration::from_secs(8),
            max_document_bytes: MAX_DOCUMENT_BYTES,
            hook_timeout: Duration::from_mins(10),
            driven: false,
            submits: false,
        }
    }
}

impl Runner {
    /// Creates a runner with a model and a store in memory.
    pub fn new(model: impl Model) -> Self {
        Self {
            models: Arc::new(Models { normal: Arc::new(model), high: None, prices: None, estimates: None }),
            store: Arc::new(MemoryStore::new()),
            clock: Arc::new(SystemClock),
            ids: Arc::new(UuidIds),
            settings: RunnerSettings::default(),
            code: Arc::default(),
            sinks: Arc::default(),
            state: Arc::default(),
            lease: LeaseKeeper::default(),
            unattended: Unattended::new(),
        }
    }

    /// Sets the model for loops that ask for [`Tier::High`]. Without it they get the other model.
    #[must_use]
    pub fn high(mut self, model: impl Model) -> Self {
        Arc::make_mut(&mut self.models).high = Some(Arc::new(model));
        self
    }

    /// Sets what models cost, for limits of money and for the log: the cost of each answer is recorded when it arrives. By
    /// default no cost is known; the bundled table has to be set, too.
    #[must_use]
    pub fn prices(mut self, prices: impl Into<Option<PriceTable>>) -> Self {
        Arc::make_mut(&mut self.models).prices = prices.into();
        self
    }

    /// Sets prices for the costs that the log records where [`Runner::prices`] has set none, such as the bundled ones. They are
    /// estimates: a limit of money needs prices.
    #[must_use]
    pub fn estimates(mut self, estimates: impl Into<Option<PriceTable>>) -> Self {
        Arc::make_mut(&mut self.models).estimates = estimates.into();
        self
    }

    /// Sets the store of the logs, by default a new [`MemoryStore`]. The runner shares no runs with the clones that have
    /// another store: it has its own lease, and feeds its sinks from the start. Where [`Runner::stream_to`] streams to stays.
    #[must_use]
    pub fn store(self, store: impl EventStore) -> Self {
        Self {
            store: Arc::new(store),
            sinks: Arc::new(self.sinks.iter().map(|feeds| feeds.for_another_store()).collect()),
            state: Arc::new(StoreState { live: self.state.live.clone(), ..StoreState::default() }),
            lease: LeaseKeeper::default(),
            unattended: Unattended::new(),
            ..self
        }
    }

    /// Sets the source of time, by default the system's clock.
    #[must_use]
    pub fn clock(self, clock: impl Clock) -> Self {
        Self { clock: Arc::new(clock), ..self }
    }

    /// Sets the source of ids and randomness, by default random UUIDs.
    #[must_use]
    pub fn ids(self, ids: impl Ids) -> Self {
        Self { ids: Arc::new(ids), ..self }
    }

    /// Sets how often and after which pauses a failed request is sent again; by default [`RetryPolicy::default`].
    #[must_use]
    pub fn retry_policy(mut self, retry: RetryPolicy) -> Self {
        self.settings.retry = retry;
        self
    }

    /// Sets how long a waiting run stays loaded, by default five seconds. Then its worker releases it, and once its handle is
    /// dropped, the runner keeps only its id and its brain's code. When the answer arrives, the runner or a clone of it loads
    /// the run again, as does any worker that serves the store.
    #[must_use]
    pub fn linger(mut self, linger: Duration) -> Self {
        self.settings.linger = linger;
        self
    }

    /// Sets how long [`Runner::release`] waits for model calls, steps and tools in flight. Then they are abandoned as in a
    /// crash: a model is asked again, and for a tool that may not run twice the outcome stays unknown. Eight seconds by
    /// default, because a container has ten after the signal to stop.
    #[must_use]
    pub fn release_grace(mut self, release_grace: Duration) -> Self {
        self.settings.release_grace = release_grace;
        self
    }

    /// Sets the maximum size in bytes of a JSON document in a log: a state, a tool's result, an output, a model's answer; by
    /// default 8 MiB. A larger document is an error of the step, tool or model that produced it, and nothing of it is written.
    #[must_use]
    pub fn max_document_bytes(mut self, max_document_bytes: usize) -> Self {
        self.settings.max_document_bytes = max_document_bytes;
        self
    }

    /// Sets how long a guard of a loop, or a hook of a plugin, may take without asking a model; by default ten minutes, more than the plugin of MCP
    /// servers waits for one. One that takes longer is dropped where it waits: a guard then stops its loop with the code `guard`, and a plugin's
    /// `prepare` or `request` with the code `timeout`. A hook around a call has the time of the tool. Around a call that
    /// runs apart from the worker, it has this time before the call and again after it, and the call is an error if it takes longer, also
    /// one that has had its effect.
    #[must_use]
    pub fn hook_timeout(mut self, hook_timeout: Duration) -> Self {
        self.settings.hook_timeout = hook_timeout;
        self
    }

    /// Adds a sink for the events of every run.
    #[must_use]
    pub fn sink(mut self, sink: impl EventSink) -> Self {
        Arc::make_mut(&mut self.sinks).push(Feeds::new(Arc::new(sink)));
        self
    }

    /// Lets an executor perform the tool calls that it takes, apart from the workers of their runs; see
    /// [`detached`](super::detached).
    #[must_use]
    pub fn tool_executor(mut self, executor: impl ToolExecutor) -> Self {
        Arc::make_mut(&mut self.code).executor = Some(Arc::new(executor));
        self
    }

    /// Registers a brain by its title, for its runs and for `cx.brains()`.
    ///
    /// # Panics
    ///
    /// If the runner has another brain with this title.
    #[must_use]
    #[track_caller]
    pub fn brain(self, brain: impl Runnable) -> Self {
        self.definition(brain.definition())
    }

    /// Registers brains by their titles, such as those of a project that [`brains!`](crate::brains) lists.
    ///
    /// # Panics
    ///
    /// If the runner has another brain with one of these titles.
    #[must_use]
    #[track_caller]
    pub fn brains<B: Runnable>(mut self, brains: impl IntoIterator<Item = B>) -> Self {
        for brain in brains {
            self = self.brain(brain);
        }
        self
    }

    /// Registers an untyped brain by its title, for its runs and for `cx.brains()`.
    ///
    /// # Panics
    ///
    /// If the runner has another brain with this title.
    #[must_use]
    #[track_caller]
    pub fn definition(self, definition: Arc<BrainDefinition>) -> Self {
        let title = &definition.title;
        if self.code.brains.get(title).is_some_and(|known| !Arc::ptr_eq(known, &definition)) {
            usage_panic(&format!("the runner has two brains named `{title}`; give one of them another title"));
        }
        self.replacing(definition)
    }

    /// Returns the same runner, except that the caller continues the runs after a wait.
    pub(super) fn driven(&self) -> Self {
        Self { settings: RunnerSettings { driven: true, ..self.settings }, ..self.clone() }
    }

    /// Registers a brain in place of the one with its title.
    #[must_use]
    pub(super) fn replacing(mut self, definition: Arc<BrainDefinition>) -> Self {
        Arc::make_mut(&mut self.code).brains.insert(definition.title.clone(), definition);
        self
    }

    /// Adds an action that loops choose by its name, with [`Loop::actions`](crate::dsl::Loop::actions).
    ///
    /// # Panics
    ///
    /// If the runner has an action with this name.
    #[must_use]
    #[track_caller]
    pub fn action(mut self, action: Action) -> Self {
        let id = &action.decl().id;
        if self.code.actions.get(id.as_str()).is_some() {
            usage_panic(&format!("the runner has two actions named `{id}`; give one of them another name"));
        }
        Arc::make_mut(&mut self.code).actions.insert(action);
        self
    }

    /// Sets all actions that loops choose by name.
    #[must_use]
    pub fn actions(mut self, actions: ActionSet) -> Self {
        Arc::make_mut(&mut self.code).actions = actions;
        self
    }

    /// Returns a runner that starts runs and does not work on them: a start appends only the run's first event, and a
    /// worker that serves the store continues the run. Its handles follow the run.
    ///
    /// ```
    /// # use positronic_core::prelude::*;
    /// # use positronic_core::runner::Runner;
    /// # async fn example(runner: Runner) -> Result<(), Box<dyn std::error::Error>> {
    /// let greeter = brain("Greeter").r#loop("Greet", |cx| cx.system("Greet the user.").input("Hello!"));
    /// let run = runner.submit_only().start(&greeter, ()).await?;
    /// println!("{} waits for a worker", run.id());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn submit_only(mut self) -> Self {
        self.settings.submits = true;
        self
    }

    /// Iterates over the registered brains, in the order of registration.
    pub fn definitions(&self) -> impl Iterator<Item = &Arc<BrainDefinition>> {
        self.code.brains.values()
    }

    /// Returns the name under which this runner and its clones claim runs now, as in `RUN_CLAIMED`. After the loss of a
    /// lease they get another one.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store fails.
    pub async fn worker(&self) -> Result<String, StoreError> {
        Ok(self.lease().await?.owner().to_owned())
    }

    /// Returns the lease under which this runner claims runs. It is renewed as long as the runner exists.
    pub(super) async fn lease(&self) -> Result<Arc<HeldLease>, StoreError> {
        self.lease.get(&self.store).await
    }

    /// Returns the names of its durable sinks, for the append of a claim.
    pub(super) fn durable_sinks(&self) -> Vec<String> {
        self.sinks.iter().filter_map(|sink| sink.durable()).map(str::to_owned).collect()
    }

    pub(super) fn definition_of(&self, title: &str) -> Option<Arc<BrainDefinition>> {
        self.code.brains.get(title).cloned().or_else(|| self.state.started.get(title))
    }

    pub(super) fn model_of(&self, tier: Tier) -> &Arc<dyn Model> {
        match tier {
            Tier::Normal => &self.models.normal,
            Tier::High => self.models.high.as_ref().unwrap_or(&self.models.normal),
        }
    }
}

impl fmt::Debug for Runner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runner")
            .field("model", &self.models.normal)
            .field("brains", &self.code.brains.keys())
            .finish_non_exhaustive()
    }
}
