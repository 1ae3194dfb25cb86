//! What an author's brain becomes: stages without types, called by path.
//!
//! The builders of [`dsl`](crate::dsl) know the author's types; here they are gone. A document goes in as JSON and comes
//! out as JSON, and the typed closure in between is behind one of the traits of this module, each of them called by
//! the [`runner`](crate::runner) alone.

mod actions;
mod document;
mod limit;
mod plugin;
mod scope;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use indexmap::IndexMap;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::record::{
    BrainStart, Budget, ContentHash, ContextItem, Gate, Limits, LoopOutcome, ModelResponse, PluginStates, Settings,
    Shape, StageKind, StageShape, ToolDecl, ToolId, ToolSet, TriggerChange,
};
use crate::tools::Schema;

pub use actions::{ActionSet, UnknownAction};
pub use document::StateValue;
pub(crate) use document::{encode, encode_constant_state, encode_state, recordable};
pub(crate) use limit::{LimitGuard, with_document_limit};
pub use plugin::{AnyPlugin, Invocation, Next, StateOwner};
pub use scope::{AnyServices, Link, Scope};

/// A brain without its types.
#[derive(Clone)]
pub struct BrainDefinition {
    /// The brain's title.
    pub title: String,
    /// What it does, for people and models.
    pub description: String,
    /// The author's version.
    pub version: u32,
    /// The schema of its options.
    pub options: Arc<Schema>,
    /// Checks options and fills in their defaults.
    pub read_options: OptionsFn,
    /// The state it begins with.
    pub initial: Arc<Value>,
    /// Its stages, in order.
    pub stages: Vec<StageDefinition>,
    /// The actions of the project that its loops may choose, by name.
    pub actions: Vec<String>,
    /// Makes what callers get from the final state.
    pub result: Option<StateFn>,
    /// Makes what outsiders may watch from the state.
    pub public: Option<StateFn>,
    /// Makes the services of this brain from those of the brain around it.
    pub provide: Option<Provide>,
    /// What it and all below it may use.
    pub budget: Option<Budget>,
    /// Makes a state of this version from one of an earlier version.
    pub migrations: BTreeMap<u32, MigrateFn>,
}

/// Makes a state of a brain's version from one of an earlier version.
pub type MigrateFn = Arc<dyn Fn(&Value) -> Result<Value> + Send + Sync>;

/// Makes the services of a brain from those of the brain around it.
pub type Provide = Arc<dyn Fn(AnyServices) -> AnyServices + Send + Sync>;

/// Checks options and fills in their defaults.
pub type OptionsFn = Arc<dyn Fn(&Value) -> Result<Value> + Send + Sync>;

/// Makes a nested brain's options from the state around it and a call's arguments.
pub type InputFn = Arc<dyn Fn(&StateValue, &Value) -> Result<Value> + Send + Sync>;

/// Calls a tool's function with its arguments.
pub type ToolFn = Arc<dyn Fn(Arc<Value>, Scope) -> BoxFuture<'static, Result<ToolReply>> + Send + Sync>;

/// A function from one document to another.
pub type StateFn = Arc<dyn Fn(&StateValue) -> Result<Value> + Send + Sync>;

/// One stage of a definition.
#[derive(Clone)]
pub struct StageDefinition {
    /// The stage's name.
    pub name: String,
    /// What it does.
    pub body: StageBody,
}

/// What a stage does.
#[derive(Clone)]
pub enum StageBody {
    /// Makes the next state.
    Step(Arc<dyn Fn(Scope) -> BoxFuture<'static, Result<Value>> + Send + Sync>),
    /// Lets a model call tools.
    Loop(Arc<dyn Fn(Scope) -> Result<LoopDefinition> + Send + Sync>),
    /// Runs another brain.
    Brain(NestedDefinition),
}

/// A brain inside a brain, with the maps in and out.
#[derive(Clone)]
pub struct NestedDefinition {
    /// The brain.
    pub definition: Arc<BrainDefinition>,
    /// Makes its options from the state around it and, for a tool, the arguments.
    pub input: InputFn,
    /// Makes the next state around it from that state and its result; none leaves the state as it is.
    pub output: Option<OutputFn>,
}

/// Makes the next state from a state and a value that came in.
pub type OutputFn = Arc<dyn Fn(&StateValue, &Value) -> Result<Value> + Send + Sync>;

/// What a loop's closure yields for one iteration.
pub struct LoopDefinition {
    /// The system prompt.
    pub system: Arc<str>,
    /// The opening user message; counts in the first iteration only.
    pub input: Option<String>,
    /// The sender's own id of that message.
    pub message_id: Option<String>,
    /// Whether people are not shown the loop's record; counts in the first iteration only.
    pub hidden: bool,
    /// Further context, in order.
    pub context: Vec<ContextItem>,
    /// The tools, in order.
    pub tools: IndexMap<ToolId, Arc<ToolDefinition>>,
    /// The names of further exit tools; [`LoopDefinition::mark_exits`] marks them once the plugins have added their tools.
    pub exit_on: Vec<String>,
    /// Whether a text answer never ends the loop, not even where an iteration offers no exit tool.
    pub require_exit: bool,
    /// The limits.
    pub limits: Limits,
    /// How the model is to answer.
    pub settings: Settings,
    /// The tools of the iteration as the log has them, where it has begun and is found again; none where it is prepared.
    pub begun: Option<Arc<ToolSet>>,
    /// The plugins, by name, in the order of registration.
    pub plugins: IndexMap<&'static str, Arc<dyn AnyPlugin>>,
    /// What stands for the older messages from this iteration on; none changes nothing.
    pub compaction: Option<Compaction>,
    /// The answer of this iteration, given in the place of a model.
    pub answer: Option<ModelResponse>,
    /// Makes the next state when the loop ends.
    pub on_exit: Option<ExitFn>,
}

/// What is to stand for the older messages of a loop.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Compaction {
    /// How many of the latest messages stay as they are.
    pub keep: u64,
    /// What stands for those before them. Without it, all messages are whole again.
    pub summary: Option<String>,
}

/// Makes the next state from a state and the outcome of a loop.
pub type ExitFn = Arc<dyn Fn(&StateValue, &LoopOutcome) -> Result<Value> + Send + Sync>;

/// A tool without its types.
#[derive(Clone)]
pub struct ToolDefinition {
    /// The tool as models and people see it.
    pub decl: ToolDecl,
    /// The schema of its arguments.
    pub schema: Arc<Schema>,
    /// Whether the schema is another program's, as a server lists it, and not the author's code: an open call is made as it was
    /// checked, then, and that program judges whether it still fits.
    pub foreign: bool,
    /// How long one try may take.
    pub timeout: Duration,
    /// How often a call is started again after a transient failure, and after the process ended during it.
    pub retries: u32,
    /// The plugin whose state it sees and changes; none for a tool of the brain.
    pub owner: Option<StateOwner>,
    /// Says whether a call needs an approval.
    pub gate: Option<GateFn>,
    /// Says of a call of an exit tool whether it ends the loop; none says that each does.
    pub exits: Option<ExitsFn>,
    /// What it does.
    pub body: ToolBody,
}

/// Says whether a call with these arguments needs an approval.
pub type GateFn = Arc<dyn Fn(Arc<Value>, Scope) -> BoxFuture<'static, Result<Option<Gate>>> + Send + Sync>;

/// Says whether a call with these arguments ends the loop.
pub type ExitsFn = Arc<dyn Fn(&Arc<Value>) -> Result<bool> + Send + Sync>;

/// Makes the waits of a call from its arguments.
pub type WaitsFn = Arc<dyn Fn(&Arc<Value>, &Scope) -> Result<Vec<WaitDefinition>> + Send + Sync>;

/// What a tool does.
#[derive(Clone)]
pub enum ToolBody {
    /// Calls a function.
    Function {
        /// The function. Its reply has the waits, too.
        execute: ToolFn,
        /// Makes the waits again when one of them is answered, to find what it does with the payload.
        waits: Option<WaitsFn>,
    },
    /// Runs a brain.
    Brain(NestedDefinition),
}

/// What a tool's function returned.
pub struct ToolReply {
    /// The result.
    pub output: Value,
    /// What the model reads in its place.
    pub brief: Option<String>,
    /// The changes of the state, in order.
    pub updates: Vec<Update>,
    /// The changes of the states of plugins that took part in the call, in order.
    pub plugin_updates: Vec<(StateOwner, Update)>,
    /// What the call waits for before it has its result.
    pub waits: Vec<WaitDefinition>,
    /// The triggers that it sets and takes back, in order.
    pub triggers: Vec<TriggerChange>,
}

/// Something a call waits for, before it is known when its time is up.
#[derive(Clone)]
pub struct WaitDefinition {
    /// What it waits for; `expires` is not set yet.
    pub spec: crate::record::WaitSpec,
    /// How long it waits.
    pub valid_for: Option<Duration>,
    /// Makes the next state from the payload; none leaves the state as it is.
    pub resume: Option<OutputFn>,
}

impl WaitDefinition {
    /// Finds the wait that was answered among those that a tool's code names now: the one at the same place, else one for
    /// the same webhook and identifier, else one for the same webhook.
    #[must_use]
    pub fn answered<'w>(waits: &'w [Self], index: u32, webhook: &str, identifier: &str) -> Option<&'w Self> {
        let is_same = |wait: &&Self| wait.spec.webhook == webhook && wait.spec.identifier == identifier;
        let at_place = usize::try_from(index).ok().and_then(|index| waits.get(index)).filter(is_same);
        at_place
            .or_else(|| waits.iter().find(is_same))
            .or_else(|| waits.iter().find(|wait| wait.spec.webhook == webhook))
    }
}

/// Makes the next state from a state.
pub type Update = Box<dyn FnOnce(&StateValue) -> Result<Value> + Send>;

impl BrainDefinition {
    /// Returns the stages as a run's first event says them.
    #[must_use]
    pub fn shape(&self) -> Shape {
        Shape(
            self.stages
                .iter()
                .map(|stage| {
                    let (kind, brain) = match &stage.body {
                        StageBody::Step(_) => (StageKind::Step, None),
                        StageBody::Loop(_) => (StageKind::Loop, None),
                        StageBody::Brain(nested) => (StageKind::Brain, Some(nested.definition.fingerprint())),
                    };
                    StageShape { name: stage.name.clone(), kind, brain }
                })
                .collect(),
        )
    }

    /// Hashes what makes it the same brain.
    #[must_use]
    pub fn fingerprint(&self) -> ContentHash {
        self.shape().fingerprint(&self.title, self.version, self.options.json())
    }

    /// Makes what the brain's first event carries, for a run or a nested brain with these options.
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
            start: None,
        }
    }

    /// Finds a stage by name.
    #[must_use]
    pub fn stage(&self, name: &str) -> Option<&StageDefinition> {
        self.stages.iter().find(|stage| stage.name == name)
    }
}

impl LoopDefinition {
    /// Marks the tools that `exit_on` names as exit tools. A name that ends in `*` stands for all tools that begin with it.
    ///
    /// # Errors
    ///
    /// An [`Error`] for the first name that no tool has. The tools of the other names are marked all the same.
    pub fn mark_exits(&mut self) -> Result<()> {
        let mut unknown = None;
        for name in &self.exit_on {
            let prefix = name.strip_suffix('*');
            let named = |id: &ToolId| match prefix {
                Some(prefix) => id.as_str().starts_with(prefix),
                None => id.as_str() == name,
            };
            let mut found = prefix.is_some();
            for (_, tool) in self.tools.iter_mut().filter(|(id, _)| named(id)) {
                Arc::make_mut(tool).decl.flags.exit = true;
                found = true;
            }
            if !found {
                unknown.get_or_insert(name);
            }
        }
        let Some(name) = unknown else { return Ok(()) };
        let known: Vec<_> = self.tools.keys().map(|id| format!("`{id}`")).collect();
        let known = known.join(", ");
        Err(Error::new(format!("`exit_on` names `{name}`, but the loop's tools are {known}")))
    }
}

impl fmt::Debug for BrainDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan").field("title", &self.title).field("stages", &self.stages).finish_non_exhaustive()
    }
}

impl fmt::Debug for StageDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.body.kind(), self.name)
    }
}

impl StageBody {
    /// Returns the stage's kind in a word.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Step(_) => "step",
            Self::Loop(_) => "loop",
            Self::Brain(_) => "brain",
        }
    }
}

impl fmt::Debug for StageBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind())
    }
}

impl fmt::Debug for NestedDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.definition.fmt(f)
    }
}

impl fmt::Debug for LoopDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoopDefinition")
            .field("system", &self.system)
            .field("tools", &self.tools.keys())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ToolDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolDefinition").field("decl", &self.decl).finish_non_exhaustive()
    }
}

impl fmt::Debug for ToolBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Function { .. } => "function",
            Self::Brain(_) => "brain",
        })
    }
}

impl fmt::Debug for WaitDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitDefinition")
            .field("spec", &self.spec)
            .field("valid_for", &self.valid_for)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ToolReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolReply").field("output", &self.output).field("waits", &self.waits).finish_non_exhaustive()
    }
}
