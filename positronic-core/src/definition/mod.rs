//! Untyped form of an author's brain: stages that are called by path.
//!
//! The builders of [`dsl`](crate::dsl) know the author's types; this module has erased them. Values go in and out as JSON,
//! and the typed closure in between is called by the [`runner`](crate::runner) through the function types and traits of this
//! module. A closure that returns a state has encoded it within the limits of a document, so it is recorded as it is.

mod argument_repair;
mod guard;
mod loop_check;
mod loop_stage;
mod plugin;
mod project_actions;
mod scope;
mod stage;
mod start_on;
mod state_value;
mod structure;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use derive_where::derive_where;
use futures::future::BoxFuture;
use indexmap::IndexMap;
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::record::{
    BrainStart, Budget, ContentHash, ContextItem, Dialogue, Gate, Limits, LoopOutcome, ModelResponse, PluginStates,
    Settings, Shape, ToolDecl, ToolId, ToolSet, TriggerChange, UserMessage,
};
use crate::tools::Schema;

pub use guard::{CheckFn, CheckedAnswer, CheckedInput, CheckedValue, LoopGuard, LoopGuardCheck, Verdict};
pub(crate) use loop_stage::two_plugins;
pub use loop_stage::{ConfigureFn, LoopStage};
pub use plugin::{AnyPlugin, Hook, Inspected, Invocation, NextCall, PluginName, StateOwner};
pub use project_actions::{ActionSet, UnknownAction};
pub use scope::{AnyServices, Link, NewChild, Scope};
pub use stage::{
    ArmBody, ArmDefinition, BeginGroupFn, BeginWaitFn, BranchStage, ChooseFn, FinishGroupFn, FinishWaitFn, GroupBrains,
    GroupResults, GroupStage, GuardFn, IsDoneFn, RepeatStage, RetriedFn, StageBody, StageDefinition, StepFn, Tries,
    WaitStage,
};
pub(crate) use start_on::RunInput;
pub use start_on::StartOn;
pub use state_value::StateValue;
pub(crate) use state_value::{decode, encode, encode_state, read_value, recordable};
pub use structure::{ArmStructure, StageStructure, Structure, ToolStructure};

/// An untyped brain.
#[derive(Clone)]
#[derive_where(Debug)]
pub struct BrainDefinition {
    /// The brain's title.
    pub title: String,
    /// Its description, for people and models.
    pub description: String,
    /// The version set by the author.
    pub version: u32,
    /// The schema of its options.
    pub options: Arc<Schema>,
    /// Validates options and adds their defaults.
    #[derive_where(skip)]
    pub read_options: OptionsFn,
    /// The initial state.
    pub initial: Arc<Value>,
    /// Checks a state that the next run of a conversation begins with; `None` if each run begins with the initial one.
    #[derive_where(skip)]
    pub keeps: Option<KeepsFn>,
    /// Its stages, in order.
    pub stages: Vec<StageDefinition>,
    /// The project's actions that its loops may use, by name.
    pub actions: Vec<String>,
    /// Computes the result from the final state.
    #[derive_where(skip)]
    pub result: Option<StateFn>,
    /// The schema of the result, if the author describes it.
    pub result_schema: Option<Arc<Schema>>,
    /// Computes the result from the reason of a guard that did not pass; the size limit is in bytes.
    #[derive_where(skip)]
    pub otherwise: Option<OtherwiseFn>,
    /// Computes the public view of the state.
    #[derive_where(skip)]
    pub public: Option<StateFn>,
    /// Computes its services from those of the outer brain.
    #[derive_where(skip)]
    pub provide: Option<Provide>,
    /// The budget of the brain and everything below it.
    pub budget: Option<Budget>,
    /// Migrations of a state from an earlier version.
    #[derive_where(skip)]
    pub migrations: BTreeMap<u32, MigrateFn>,
}

/// Migrates a state from an earlier version.
pub type MigrateFn = Arc<dyn Fn(&Value) -> Result<Value> + Send + Sync>;

/// Checks that a state can be the first one of a run; the second argument is the size limit of documents in bytes.
pub type KeepsFn = Arc<dyn Fn(&Value, usize) -> Result<()> + Send + Sync>;

/// Computes the services of a brain from those of the outer brain.
pub type Provide = Arc<dyn Fn(AnyServices) -> AnyServices + Send + Sync>;

/// Validates options and adds their defaults; the second argument is the size limit of documents in bytes.
pub type OptionsFn = Arc<dyn Fn(&Value, usize) -> Result<Value> + Send + Sync>;

/// Computes a nested brain's options from the outer state and a call's arguments.
pub type InputFn = Arc<dyn Fn(&StateValue, &Value) -> Result<Value> + Send + Sync>;

/// Calls a tool's function with its arguments.
pub type ToolFn = Arc<dyn Fn(Arc<Value>, Scope) -> BoxFuture<'static, Result<UntypedReply>> + Send + Sync>;

/// Computes a brain's result from the reason of a guard that did not pass; the second argument is the size limit of documents.
pub type OtherwiseFn = Arc<dyn Fn(&Value, usize) -> Result<Value> + Send + Sync>;

/// Computes a JSON value from a state value.
pub type StateFn = Arc<dyn Fn(&StateValue) -> Result<Value> + Send + Sync>;

/// A nested brain, with the maps of its input and output.
#[derive(Clone)]
#[derive_where(Debug)]
pub struct NestedDefinition {
    /// The brain.
    pub definition: Arc<BrainDefinition>,
    /// Computes its options from the outer state and, for a tool, the arguments.
    #[derive_where(skip)]
    pub input: InputFn,
    /// Computes the next outer state from that state and the result; `None` keeps the state.
    #[derive_where(skip)]
    pub output: Option<OutputFn>,
}

/// Computes the next state from a state and an external value.
pub type OutputFn = Arc<dyn Fn(&StateValue, &Value) -> Result<Value> + Send + Sync>;

/// The settings of a loop's closure for one iteration.
#[derive(Default)]
#[derive_where(Debug)]
pub struct LoopDefinition {
    /// The system prompt.
    pub system: Arc<str>,
    /// The opening user message; only used in the first iteration.
    pub input: Option<UserMessage>,
    /// Whether the loop's record is hidden from people; only used in the first iteration.
    pub hidden: bool,
    /// Additional context, in order.
    pub context: Vec<ContextItem>,
    /// The tools, in order.
    pub tools: IndexMap<ToolId, Arc<ToolDefinition>>,
    /// The names of additional exit tools; [`LoopDefinition::mark_exits`] marks them after the plugins have added their tools.
    pub exit_on: Vec<String>,
    /// Tools that plugins may offer in later iterations. A name that ends in `*` matches by prefix.
    pub later: Vec<String>,
    /// The earlier loop of the brain whose dialogue it continues; only used in the first iteration.
    pub continue_from: Option<(String, Dialogue)>,
    /// Whether a text answer never ends the loop, even without an exit tool.
    pub require_exit: bool,
    /// Whether a text answer ends the loop in any iteration without an exit tool.
    pub text_exits: bool,
    /// The limits.
    pub limits: Limits,
    /// The model settings.
    pub settings: Settings,
    /// The recorded tools of an iteration that is resumed; `None` for a new one.
    pub begun: Option<Arc<ToolSet>>,
    /// The plugins, by name, in the order of registration.
    #[derive_where(skip)]
    pub plugins: IndexMap<PluginName, Arc<dyn AnyPlugin>>,
    /// The guards, in the order of registration.
    pub guards: Vec<LoopGuard>,
    /// A replacement of older messages from this iteration on; `None` changes nothing.
    pub compaction: Option<CompactionChange>,
    /// A predefined answer of this iteration, instead of a model's.
    pub answer: Option<ModelResponse>,
    /// Whether that answer is the call with which the conversation was handed over for good.
    pub stays: bool,
    /// Computes the next state when the loop ends.
    #[derive_where(skip)]
    pub on_exit: Option<ExitFn>,
}

/// A replacement of older messages of a loop.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CompactionChange {
    /// How many of the latest messages stay unchanged.
    pub keep: u64,
    /// The replacement of those before them. `None` restores all messages.
    pub summary: Option<String>,
}

/// Computes the next state from a state, the outcome of a loop, and the output of the exit tool that ended it.
pub type ExitFn = Arc<dyn Fn(&StateValue, &LoopOutcome, Option<&Value>) -> Result<Value> + Send + Sync>;

/// An untyped tool.
#[derive(Clone)]
#[derive_where(Debug)]
pub struct ToolDefinition {
    /// The declaration for models and people.
    pub decl: ToolDecl,
    /// The schema of its arguments.
    pub schema: Arc<Schema>,
    /// Whether the schema comes from another program, such as an MCP server, and not from the author's code: a resumed call then keeps
    /// its checked arguments, and that program decides whether they are still valid.
    pub foreign: bool,
    /// The timeout of one try.
    pub timeout: Duration,
    /// How often a call is retried after a transient failure, and after the process ended during it.
    pub retries: u32,
    /// Decodes arguments as its code does, so that a call that cannot be decoded neither waits for a person nor runs.
    #[derive_where(skip)]
    pub decodes: DecodesFn,
    /// The plugin whose state it sees and changes; `None` for a tool of the brain.
    pub owner: Option<StateOwner>,
    /// Decides whether a call needs an approval.
    #[derive_where(skip)]
    pub gate: Option<GateFn>,
    /// Decides whether a call of an exit tool ends the loop; `None` means always.
    #[derive_where(skip)]
    pub exits: Option<ExitsFn>,
    /// How much of the loop's dialogue the brain of a handoff continues.
    pub dialogue: Dialogue,
    /// The tool's work.
    pub body: ToolBody,
}

/// Decodes arguments, and drops the result.
pub type DecodesFn = Arc<dyn Fn(&Value) -> Result<()> + Send + Sync>;

/// Decides whether a call with these arguments needs an approval.
pub type GateFn = Arc<dyn Fn(Arc<Value>, Scope) -> BoxFuture<'static, Result<Option<Gate>>> + Send + Sync>;

/// Decides whether a call with these arguments ends the loop.
pub type ExitsFn = Arc<dyn Fn(&Arc<Value>) -> Result<bool> + Send + Sync>;

/// Computes the waits of a call from its arguments.
pub type WaitsFn = Arc<dyn Fn(&Arc<Value>, &Scope) -> Result<Vec<WaitDefinition>> + Send + Sync>;

/// The work of a tool.
#[derive(Clone)]
#[derive_where(Debug)]
pub enum ToolBody {
    /// Calls a function.
    Function {
        /// The function. Its reply also contains the waits.
        #[derive_where(skip)]
        execute: ToolFn,
        /// Computes the waits again when one of them is answered, to find its handler.
        #[derive_where(skip)]
        waits: Option<WaitsFn>,
    },
    /// Runs a brain.
    Brain(NestedDefinition),
}

/// The return value of a tool's function.
#[derive(Default)]
#[derive_where(Debug)]
pub struct UntypedReply {
    /// The result.
    pub output: Value,
    /// A shorter text for the model.
    pub brief: Option<String>,
    /// The state updates, in order.
    #[derive_where(skip)]
    pub updates: Vec<Update>,
    /// The updates of plugin states that took part in the call, in order.
    #[derive_where(skip)]
    pub plugin_updates: Vec<(StateOwner, Update)>,
    /// What the call waits for before it has a result.
    pub waits: Vec<WaitDefinition>,
    /// The changes of triggers, in order.
    pub triggers: Vec<TriggerChange>,
}

/// A wait of a call, without its expiry time.
#[derive(Clone)]
#[derive_where(Debug)]
pub struct WaitDefinition {
    /// The wait; `expires` is not set yet.
    pub spec: crate::record::WaitSpec,
    /// How long it may wait.
    pub valid_for: Option<Duration>,
    /// Computes the next state from the payload; `None` keeps the state.
    #[derive_where(skip)]
    pub resume: Option<OutputFn>,
}

impl WaitDefinition {
    /// Finds the answered wait among the waits that a tool's code returns now: the same one at the same index, else one for
    /// the same webhook and identifier, else one for the same webhook.
    #[must_use]
    pub fn answered<'w>(waits: &'w [Self], index: u32, webhook: &str, identifier: &str) -> Option<&'w Self> {
        let is_same = |wait: &&Self| wait.spec.webhook == webhook && wait.spec.identifier == identifier;
        let at_index = usize::try_from(index).ok().and_then(|index| waits.get(index)).filter(is_same);
        at_index
            .or_else(|| waits.iter().find(is_same))
            .or_else(|| waits.iter().find(|wait| wait.spec.webhook == webhook))
    }
}

/// Computes the next state from a state.
pub type Update = Box<dyn FnOnce(&StateValue) -> Result<Value> + Send>;

impl BrainDefinition {
    /// Computes the result from the final state, or from the reason of a guard that did not pass. A brain with guards has a `Result`,
    /// unless it computes a result from the reason.
    pub(crate) fn complete(&self, state: &StateValue, stopped: Option<&Value>) -> Result<Value> {
        if let Some(reason) = stopped {
            return match &self.otherwise {
                Some(otherwise) => otherwise(reason, state.max_bytes()),
                None => Ok(json!({ "Err": reason })),
            };
        }
        let result = self.result.as_ref().map_or_else(|| Ok(Value::clone(state.json())), |result| result(state))?;
        Ok(if self.is_guarded() && self.otherwise.is_none() { json!({ "Ok": result }) } else { result })
    }

    /// Returns whether a guard can end the brain.
    pub(crate) fn is_guarded(&self) -> bool {
        self.stages.iter().any(|stage| stage.body.as_guard().is_some())
    }

    /// Returns the stages as recorded in a run's first event.
    #[must_use]
    pub fn shape(&self) -> Shape {
        Shape(self.stages.iter().map(StageDefinition::shape).collect())
    }

    /// Returns the hash that identifies the brain's version.
    #[must_use]
    pub fn fingerprint(&self) -> ContentHash {
        self.shape().fingerprint(&self.title, self.version, self.options.json())
    }

    /// Returns the brain's first event for a run or a nested brain with these options.
    #[must_use]
    pub fn begin(&self, options: Value) -> BrainStart {
        BrainStart {
            title: self.title.clone(),
            version: self.version,
            fingerprint: self.fingerprint(),
            stages: self.shape(),
            options,
            state: Value::clone(&self.initial),
            plugins: PluginStates::default(),
            budget: self.budget.clone(),
            handed_over: None,
            start: None,
        }
    }

    /// Returns the state that the next run of a conversation begins with, from that at the end of the run before.
    ///
    /// # Errors
    ///
    /// An [`Error`] if the state of the other version has no migration, or does not fit.
    pub(crate) fn kept(&self, version: u32, state: &Value, max_bytes: usize) -> Result<Option<Value>> {
        let Some(check) = &self.keeps else { return Ok(None) };
        let state = match self.migrations.get(&version) {
            _ if version == self.version => state.clone(),
            Some(migrate) => migrate(state)?,
            None => {
                return Err(Error::new(format!(
                    "the state is that of version {version}, and the code has version {} without a migration from it; add \
                     `.migrate({version}, …)` to the brain",
                    self.version
                )));
            }
        };
        check(&state, max_bytes).map_err(|error| {
            Error::new(match version == self.version {
                true => {
                    format!("{error}; if its type has changed, raise `.version(…)` and add `.migrate({version}, …)`")
                }
                false => format!("after the migration from version {version}: {error}"),
            })
        })?;
        Ok(Some(state))
    }

    /// Returns whether one of its loops, or of the brains of its stages, takes tools of a run's caller.
    #[must_use]
    pub fn takes_caller_tools(&self) -> bool {
        let nested = |stage: &StageDefinition| stage.body.brains().any(|nested| nested.definition.takes_caller_tools());
        self.stages.iter().any(|stage| stage.body.as_loop().is_some_and(|stage| stage.caller_tools) || nested(stage))
    }

    /// Finds a stage by name.
    #[must_use]
    pub fn stage(&self, name: &str) -> Option<&StageDefinition> {
        self.stages.iter().find(|stage| stage.name == name)
    }
}
