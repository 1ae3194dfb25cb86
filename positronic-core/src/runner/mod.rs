//! Performs what the machine asks for, and appends what came of it.
//!
//! ```text
//! start ─▶ worker ── next(state) ──▶ effects ──▶ author's code, models, tools
//!            ▲                                        │
//!            └── commit ◀── events ◀── settle ◀── outcomes (one channel, one committer)
//! ```
//!
//! A run has at most one worker, whose claim fences off those before it, and only the worker appends outcomes: in order of completion, or in lockstep, where
//! everything in flight is awaited and then appended in path order, so that snapshots are stable. Signals are appended
//! by whoever sends them; the worker reads them from the store. The intent of an effect is in the store before the
//! effect starts, its outcome before the next decision. A run that waits is let go of, and claimed again when there is
//! work: that is what the task of each run in `attend` does.

mod async_effects;
mod attend;
mod bill;
mod claim;
mod client;
mod clock;
mod commit;
mod conversation;
mod conversation_budget;
mod conversations;
mod due;
mod edited;
mod feed;
mod firing;
mod follow;
mod follower;
mod fork;
mod frames;
mod handle;
mod link;
mod live;
mod load;
mod mail;
mod open;
mod plugged;
mod prepare;
mod prune;
mod questions;
mod record_outcome;
mod registry;
mod restore;
mod retry_backoff;
mod serve;
mod serve_event;
mod server;
mod shared;
mod signals;
mod start;
mod state_owner;
mod structured;
mod sync_effects;
mod triggers;
mod unattended;
mod worker;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;
use tokio::sync::OnceCell;

use crate::definition::{ActionSet, BrainDefinition, LimitGuard, encode};
use crate::dsl::{Action, Runnable, usage_panic};
use crate::model::{Model, RetryPolicy};
use crate::record::{MAX_DOCUMENT_BYTES, PriceTable, Start, Tier};
use crate::sink::EventSink;
use crate::store::{EventStore, Lease, MemoryStore, StoreError};
use feed::Feeds;
use firing::TriggerBackoffs;
use live::LiveDeltas;
use registry::RunRegistry;
use retry_backoff::RetryBackoffs;
use serve::Places;
use unattended::{Started, Unattended};

pub use client::{Client, Delivered};
pub use clock::{Clock, Ids, SystemClock, UuidIds};
pub use conversation::{Conversation, ConversationError};
pub use conversations::ConversationSummary;
pub use firing::DueTrigger;
pub use follow::RunUpdate;
pub use fork::{Fork, ForkError};
pub use handle::{RunError, RunHandle, Settled};
pub use open::ResumeError;
pub use serve::Service;
pub use serve_event::{ClaimError, FindRunner, NoRunner, NotFired, ServeEvent};
pub use server::Server;
pub use signals::SignalError;
pub use start::{Difference, StartError};
pub use triggers::FireError;

pub use crate::record::Busy;

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
    model: Arc<dyn Model>,
    /// The model for loops that ask for [`Tier::High`]; the other one where it is not given.
    #[builder(default, setter(transform = |model: impl Model| Some(Arc::new(model) as Arc<dyn Model>)))]
    high: Option<Arc<dyn Model>>,
    /// What models cost: each answer is reckoned with it when it comes, for limits of money and for the log. Without it no
    /// cost is known; the table that is bundled is not taken by itself.
    #[builder(default, setter(transform = |prices: impl Into<Option<PriceTable>>| prices.into().map(Arc::new)))]
    prices: Option<Arc<PriceTable>>,
    /// Where the logs live; in memory where nothing is said.
    #[builder(
        default = Arc::new(MemoryStore::new()),
        setter(transform = |store: impl EventStore| Arc::new(store) as Arc<dyn EventStore>)
    )]
    store: Arc<dyn EventStore>,
    /// Where time comes from.
    #[builder(
        default = Arc::new(SystemClock),
        setter(transform = |clock: impl Clock| Arc::new(clock) as Arc<dyn Clock>)
    )]
    clock: Arc<dyn Clock>,
    /// Where ids come from.
    #[builder(
        default = Arc::new(UuidIds),
        setter(transform = |ids: impl Ids| Arc::new(ids) as Arc<dyn Ids>)
    )]
    ids: Arc<dyn Ids>,
    /// How often and how patiently a failed request is sent again.
    #[builder(default)]
    retry: RetryPolicy,
    /// Whether everything in flight is awaited and appended in path order.
    #[builder(default)]
    lockstep: bool,
    /// Whether tokio's clock may be paused, as in tests with `start_paused`. It then jumps to the next timer whenever all tasks are
    /// idle, also while one of them waits for real input or output. So no timer is set for a tool: its time is measured by
    /// `clock` when it has ended, and in real time until then.
    #[builder(default)]
    paused_clock: bool,
    /// How long a run that waits for an answer stays loaded; five seconds by default. After that its worker releases it, and
    /// once its handle is dropped, only its id and its brain's code are kept. When the answer comes, the runner that
    /// started it loads it again, as long as that runner or a clone of it exists; so does a worker that serves the store.
    #[builder(default = Duration::from_secs(5))]
    linger: Duration,
    /// How long [`Runner::release`] waits for what is in flight: model calls, steps and tools. After that it is abandoned, as
    /// by a crash: a model is asked again, and of a tool that may not run twice nobody knows whether it had its effect. Eight
    /// seconds by default, since a container has ten from the signal that ends it.
    #[builder(default = Duration::from_secs(8))]
    release_grace: Duration,
    /// How many bytes a JSON document may have that enters a log: a state, a tool's result, an output, an answer of a model.
    /// 8 MiB where nothing is said. What is larger is an error of the step, the tool or the model that made it, and
    /// nothing of it is written.
    #[builder(default = MAX_DOCUMENT_BYTES)]
    max_document_bytes: usize,
    #[builder(default, setter(skip))]
    owner: Arc<OnceCell<Lease>>,
    #[builder(default, setter(skip))]
    in_hand: RunRegistry,
    #[builder(default, setter(skip))]
    backoffs: RetryBackoffs,
    #[builder(default, setter(skip))]
    trigger_backoffs: TriggerBackoffs,
    #[builder(default, setter(skip))]
    places: Places,
    #[builder(default, setter(skip))]
    sinks: Vec<Arc<Feeds>>,
    #[builder(default, setter(skip))]
    live: LiveDeltas,
    #[builder(default, setter(skip))]
    brains: IndexMap<String, Arc<BrainDefinition>>,
    /// The brains that were started here, for their runs alone: `cx.brains()` does not offer them.
    #[builder(default, setter(skip))]
    started: Started,
    #[builder(default = Unattended::new(), setter(skip))]
    unattended: Unattended,
    #[builder(default, setter(skip))]
    actions: ActionSet,
}

impl Runner {
    /// Adds a sink for the events of every run.
    #[must_use]
    pub fn sink(mut self, sink: impl EventSink) -> Self {
        self.sinks.push(Feeds::new(Arc::new(sink)));
        self
    }

    /// Makes a brain known by its title to `cx.brains()`.
    #[must_use]
    pub fn brain(self, brain: impl Runnable) -> Self {
        self.definition(brain.definition())
    }

    /// Makes a brain without its types known by its title to `cx.brains()`.
    #[must_use]
    pub fn definition(mut self, definition: Arc<BrainDefinition>) -> Self {
        self.brains.insert(definition.title.clone(), definition);
        self
    }

    /// Adds an action that loops choose by its name, with [`Loop::actions`](crate::dsl::Loop::actions).
    ///
    /// # Panics
    ///
    /// When the runner has an action of this name.
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

    /// Starts a run of a brain.
    ///
    /// The handle may be dropped: the runner continues the run, also after a wait, as long as the runner or a clone of it
    /// exists. The brain is known from then on, so [`Runner::resume`] and [`Runner::serve`] find its code.
    ///
    /// # Errors
    ///
    /// [`StartError::Options`] when the options cannot be stored or do not fit their own schema, [`StartError::Action`] when
    /// the brain names an action that this runner does not have, [`StartError::Started`] when the store has another run of
    /// that id, [`StartError::Store`] when the store fails.
    pub async fn start<B: Runnable>(&self, brain: B, options: B::Options) -> Result<RunHandle<B::Result>, StartError> {
        self.start_with(brain, options, Start::default()).await
    }

    /// Starts a run of a brain, and records who started it. `start.id` becomes the run's id: starting it again is the same
    /// run, which is looked after from here as well then.
    ///
    /// # Errors
    ///
    /// As [`Runner::start`].
    pub async fn start_with<B: Runnable>(
        &self,
        brain: B,
        options: B::Options,
        start: Start,
    ) -> Result<RunHandle<B::Result>, StartError> {
        let definition = brain.definition();
        let encoded = {
            let _limit = LimitGuard::enter(self.max_document_bytes);
            encode(&options)
        };
        let options = encoded
            .map_err(|error| StartError::Options { brain: definition.title.clone(), reason: error.to_string() })?;
        Ok(self.start_definition(definition, options, start).await?.typed())
    }

    /// Returns the name under which this runner and its clones claim runs, as it stands in `RUN_CLAIMED`.
    ///
    /// # Errors
    ///
    /// [`StoreError`] as the store fails.
    pub async fn worker(&self) -> Result<String, StoreError> {
        Ok(self.owner().await?.name().to_owned())
    }

    /// Returns the name that this runner's claims carry, and keeps it known as alive.
    async fn owner(&self) -> Result<&Lease, StoreError> {
        self.owner.get_or_try_init(|| self.store.acquire_lease()).await
    }

    fn plan_of(&self, title: &str) -> Option<Arc<BrainDefinition>> {
        self.brains.get(title).cloned().or_else(|| self.started.get(title))
    }

    fn model_of(&self, tier: Tier) -> &Arc<dyn Model> {
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
