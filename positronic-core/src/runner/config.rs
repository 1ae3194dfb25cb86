//! The runner: its models, its store, its limits and the brains that it knows.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;

use super::client::feed::Feeds;
use super::client::live::LiveDeltas;
use super::conversation::histories::Histories;
use super::detached::call::ToolExecutor;
use super::work::backoffs::{ResumeBackoffs, TriggerBackoffs};
use super::work::quarantine::Quarantine;
use super::work::resume_options::Places;
use super::work::unattended::{Started, Unattended};
use super::worker::lease::{HeldLease, LeaseKeeper};
use super::worker::registry::RunRegistry;
use crate::definition::{ActionSet, BrainDefinition, encode};
use crate::dsl::{Action, Runnable, usage_panic};
use crate::model::{Model, RetryPolicy};
use crate::record::{MAX_DOCUMENT_BYTES, PriceTable, Start, Tier};
use crate::sink::EventSink;
use crate::store::{EventStore, MemoryStore, StoreError};

use super::{Clock, Ids, RunHandle, StartError, SystemClock, UuidIds};

/// Runs brains.
///
/// ```no_run
/// # use positronic_core::model::Model;
/// # async fn example(model: impl Model) -> Result<(), Box<dyn std::error::Error>> {
/// use positronic_core::prelude::*;
/// use positronic_core::runner::Runner;
///
/// let greeter = brain("Greeter").r#loop("Greet", |cx| cx.system("Greet the user in one line.").input("Hello!"));
/// let runner = Runner::builder().model(model).build();
/// let run = runner.start(&greeter, ()).await?;
/// run.result().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, typed_builder::TypedBuilder)]
pub struct Runner {
    /// The model for most work.
    #[builder(setter(transform = |model: impl Model| Arc::new(model) as Arc<dyn Model>))]
    pub(super) model: Arc<dyn Model>,
    /// The model for loops that ask for [`Tier::High`]; without it, they get the other one.
    #[builder(default, setter(transform = |model: impl Model| Some(Arc::new(model) as Arc<dyn Model>)))]
    pub(super) high: Option<Arc<dyn Model>>,
    /// What models cost, for limits of money and for the log: the cost of each answer is recorded when it
    /// arrives. Without a table no cost is known; the bundled table has to be set, too.
    #[builder(default, setter(transform = |prices: impl Into<Option<PriceTable>>| prices.into().map(Arc::new)))]
    pub(super) prices: Option<Arc<PriceTable>>,
    /// The store of the logs; in memory by default.
    #[builder(
        default = Arc::new(MemoryStore::new()),
        setter(transform = |store: impl EventStore| Arc::new(store) as Arc<dyn EventStore>)
    )]
    pub(super) store: Arc<dyn EventStore>,
    /// The source of time.
    #[builder(
        default = Arc::new(SystemClock),
        setter(transform = |clock: impl Clock| Arc::new(clock) as Arc<dyn Clock>)
    )]
    pub(super) clock: Arc<dyn Clock>,
    /// The source of ids and randomness.
    #[builder(
        default = Arc::new(UuidIds),
        setter(transform = |ids: impl Ids| Arc::new(ids) as Arc<dyn Ids>)
    )]
    pub(super) ids: Arc<dyn Ids>,
    /// How often and after which pauses a failed request is sent again.
    #[builder(default)]
    pub(super) retry: RetryPolicy,
    /// Lockstep: whether the runner awaits everything in flight and appends the outcomes in path order, so that
    /// logs are reproducible.
    #[builder(default)]
    pub(super) lockstep: bool,
    /// Whether tokio's clock may be paused, as in tests with `start_paused`. A paused clock jumps to the next
    /// timer when all tasks are idle, even if one of them waits for real input or output. Tools therefore get no
    /// timer: their time is measured by `clock` after they end, and in real time before.
    #[builder(default)]
    pub(super) paused_clock: bool,
    /// How long a waiting run stays loaded: five seconds by default. Then its worker releases it, and once its
    /// handle is dropped, the runner keeps only its id and its brain's code. When the answer arrives, the runner
    /// or a clone of it loads the run again, as does any worker that serves the store.
    #[builder(default = Duration::from_secs(5))]
    pub(super) linger: Duration,
    /// How long [`Runner::release`] waits for model calls, steps and tools in flight. Then they are abandoned as
    /// in a crash: a model is asked again, and for a tool that may not run twice the outcome stays unknown. Eight
    /// seconds by default, because a container has ten after the signal to stop.
    #[builder(default = Duration::from_secs(8))]
    pub(super) release_grace: Duration,
    /// The maximum size in bytes of a JSON document in a log: a state, a tool's result, an output, a model's
    /// answer. 8 MiB by default. A larger document is an error of the step, tool or model that produced it, and
    /// nothing of it is written.
    #[builder(default = MAX_DOCUMENT_BYTES)]
    pub(super) max_document_bytes: usize,
    #[builder(default, setter(skip))]
    pub(super) lease: LeaseKeeper,
    #[builder(default, setter(skip))]
    pub(super) registry: RunRegistry,
    #[builder(default, setter(skip))]
    pub(super) backoffs: ResumeBackoffs,
    #[builder(default, setter(skip))]
    pub(super) trigger_backoffs: TriggerBackoffs,
    #[builder(default, setter(skip))]
    pub(super) places: Places,
    #[builder(default, setter(skip))]
    pub(super) quarantine: Quarantine,
    #[builder(default, setter(skip))]
    pub(super) sinks: Vec<Arc<Feeds>>,
    #[builder(default, setter(skip))]
    pub(super) histories: Histories,
    #[builder(default, setter(skip))]
    pub(super) live: LiveDeltas,
    #[builder(default, setter(skip))]
    pub(super) brains: IndexMap<String, Arc<BrainDefinition>>,
    /// The brains that were started here, for their runs only: `cx.brains()` does not offer them.
    #[builder(default, setter(skip))]
    pub(super) started: Started,
    #[builder(default = Unattended::new(), setter(skip))]
    pub(super) unattended: Unattended,
    #[builder(default, setter(skip))]
    pub(super) actions: ActionSet,
    /// Performs tool calls apart from the workers.
    #[builder(default, setter(skip))]
    pub(super) executor: Option<Arc<dyn ToolExecutor>>,
    /// Whether the caller continues the runs after a wait, instead of this runner.
    #[builder(default, setter(skip))]
    pub(super) driven: bool,
    /// Whether a start only appends the run's first event, and other workers continue it.
    #[builder(default, setter(skip))]
    pub(super) submits: bool,
}

impl Runner {
    /// Adds a sink for the events of every run.
    #[must_use]
    pub fn sink(mut self, sink: impl EventSink) -> Self {
        self.sinks.push(Feeds::new(Arc::new(sink)));
        self
    }

    /// Lets an executor perform the tool calls that it takes, apart from the workers of their runs; see
    /// [`detached`](super::detached).
    #[must_use]
    pub fn tool_executor(self, executor: impl ToolExecutor) -> Self {
        Self { executor: Some(Arc::new(executor)), ..self }
    }

    /// Registers a brain by its title, for its runs and for `cx.brains()`.
    ///
    /// # Panics
    ///
    /// If the runner has another brain with this title, or the brain has no stages.
    #[must_use]
    #[track_caller]
    pub fn brain(self, brain: impl Runnable) -> Self {
        self.definition(brain.definition())
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
        if self.brains.get(title).is_some_and(|known| !Arc::ptr_eq(known, &definition)) {
            usage_panic(&format!("the runner has two brains named `{title}`; give one of them another title"));
        }
        self.replacing(definition)
    }

    /// Registers a brain in place of the one with its title.
    #[must_use]
    pub(super) fn replacing(mut self, definition: Arc<BrainDefinition>) -> Self {
        self.brains.insert(definition.title.clone(), definition);
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
        if self.actions.get(id.as_str()).is_some() {
            usage_panic(&format!("the runner has two actions named `{id}`; give one of them another name"));
        }
        self.actions.insert(action);
        self
    }

    /// Sets all actions that loops choose by name.
    #[must_use]
    pub fn actions(self, actions: ActionSet) -> Self {
        Self { actions, ..self }
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
    pub fn submit_only(self) -> Self {
        Self { submits: true, ..self }
    }

    /// Iterates over the registered brains, in the order of registration.
    pub fn definitions(&self) -> impl Iterator<Item = &Arc<BrainDefinition>> {
        self.brains.values()
    }

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
        let options = encode(&options, self.max_document_bytes)
            .map_err(|error| StartError::Options { brain: definition.title.clone(), reason: error.to_string() })?;
        Ok(self.start_definition(definition, options, start).await?.typed())
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

    pub(super) fn definition_of(&self, title: &str) -> Option<Arc<BrainDefinition>> {
        self.brains.get(title).cloned().or_else(|| self.started.get(title))
    }

    pub(super) fn model_of(&self, tier: Tier) -> &Arc<dyn Model> {
        match tier {
            Tier::Normal => &self.model,
            Tier::High => self.high.as_ref().unwrap_or(&self.model),
        }
    }
}

impl fmt::Debug for Runner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runner")
            .field("model", &self.model)
            .field("brains", &self.brains.keys())
            .finish_non_exhaustive()
    }
}
