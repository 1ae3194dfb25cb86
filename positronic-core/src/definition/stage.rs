//! One stage of a definition: the author's code of each kind.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use derive_where::derive_where;
use futures::future::BoxFuture;
use serde_json::Value;

use super::{LoopStage, NestedDefinition, Scope, StateFn, StateValue, ToolBody};
use crate::error::{Error, Result};
use crate::record::{ArmShape, Failure, StageKind, StageShape, Timestamp, WaitDeadline, WaitSpec};

/// One stage of a definition.
#[derive(Clone)]
pub struct StageDefinition {
    /// The stage's name.
    pub name: String,
    /// The stage's work.
    pub body: StageBody,
    /// Undoes it after it has completed.
    pub undo: Option<StepFn>,
    /// How it is tried.
    pub tries: Tries,
}

/// The work of a stage.
#[derive(Clone)]
pub enum StageBody {
    /// Computes the next state.
    Step(StepFn),
    /// Asks a model, and computes the next state from its answer.
    Prompt(StepFn),
    /// Lets a model call tools.
    Loop(LoopStage),
    /// Runs another brain.
    Brain(NestedDefinition),
    /// Waits for an answer or a time.
    Wait(WaitStage),
    /// Runs one of several arms.
    Branch(BranchStage),
    /// Runs several brains at the same time.
    Group(GroupStage),
    /// Runs another brain until the state is done.
    Repeat(RepeatStage),
    /// Ends the brain if a check of its state does not pass.
    Guard(GuardFn),
}

/// A branch as a stage.
#[derive(Clone)]
#[derive_where(Debug)]
pub struct BranchStage {
    /// Its arms, in order.
    pub arms: Vec<ArmDefinition>,
    /// Chooses an arm by its index. It runs once: the choice is in the log.
    #[derive_where(skip)]
    pub choose: ChooseFn,
}

/// An arm of a branch, or one of the brains of a group.
#[derive(Clone, Debug)]
pub struct ArmDefinition {
    /// Its name, unique within the stage.
    pub name: String,
    /// What it does.
    pub body: ArmBody,
    /// Whether its failure is one of the group's results, and does not fail the stage.
    pub may_fail: bool,
}

/// Several brains that run at the same time, as a stage.
#[derive(Clone)]
#[derive_where(Debug)]
pub struct GroupStage {
    /// Its kind: all of several, the first of several, or one for each item.
    pub kind: StageKind,
    /// Its brains.
    pub brains: GroupBrains,
    /// How many work at the same time.
    pub limit: u32,
    /// Computes the options of each brain, and when a race ends without a winner. It runs once: what it returns is in the log.
    #[derive_where(skip)]
    pub begin: BeginGroupFn,
    /// Computes the next state from the results.
    #[derive_where(skip)]
    pub finish: FinishGroupFn,
}

impl GroupStage {
    /// Returns the brains as recorded when the group begins; one for all items of a `map`.
    #[must_use]
    pub fn shapes(&self) -> Vec<ArmShape> {
        match &self.brains {
            GroupBrains::Named(arms) => arms.iter().map(ArmDefinition::shape).collect(),
            GroupBrains::Each { brain, may_fail } => {
                let (name, brain) = (brain.definition.title.clone(), Some(brain.definition.fingerprint()));
                vec![ArmShape { name, brain, may_fail: *may_fail }]
            }
        }
    }
}

/// The brains of a group. Their options come from the group's `begin`.
#[derive(Clone, Debug)]
pub enum GroupBrains {
    /// Several brains, each with a name.
    Named(Vec<ArmDefinition>),
    /// One brain for each item.
    Each {
        /// The brain.
        brain: NestedDefinition,
        /// Whether its failure is one of the group's results.
        may_fail: bool,
    },
}

/// How a group has ended.
#[derive(Debug, Clone, PartialEq)]
pub enum GroupResults {
    /// The results of all brains, in order.
    All(Vec<Result<Value, Failure>>),
    /// The number of the brain that has won a race, and its result.
    Won(u32, Value),
    /// The time of a race was over.
    Expired,
}

/// Computes the options of a group's brains, and when a race ends without a winner.
pub type BeginGroupFn = Arc<dyn Fn(&StateValue, Timestamp) -> Result<(Vec<Value>, Option<Timestamp>)> + Send + Sync>;

/// Computes the next state from the results of a group.
pub type FinishGroupFn = Arc<dyn Fn(&StateValue, GroupResults) -> Result<Value> + Send + Sync>;

/// A nested brain that runs until the state is done, as a stage.
#[derive(Clone)]
#[derive_where(Debug)]
pub struct RepeatStage {
    /// The brain.
    pub brain: NestedDefinition,
    /// The maximum number of rounds.
    pub rounds: u32,
    /// Says whether the state after a round is done.
    #[derive_where(skip)]
    pub is_done: IsDoneFn,
}

/// Says whether the state after a round is done.
pub type IsDoneFn = Arc<dyn Fn(&StateValue) -> Result<bool> + Send + Sync>;

/// What an arm of a branch does.
#[derive(Clone)]
#[derive_where(Debug)]
pub enum ArmBody {
    /// Runs a brain.
    Brain(NestedDefinition),
    /// Computes the next state.
    Pass(#[derive_where(skip)] StateFn),
}

impl ArmDefinition {
    /// Returns its brain.
    #[must_use]
    pub const fn nested(&self) -> Option<&NestedDefinition> {
        match &self.body {
            ArmBody::Brain(nested) => Some(nested),
            ArmBody::Pass(_) => None,
        }
    }

    /// Returns the arm as recorded.
    #[must_use]
    pub fn shape(&self) -> ArmShape {
        let brain = self.nested().map(|nested| nested.definition.fingerprint());
        ArmShape { name: self.name.clone(), brain, may_fail: self.may_fail }
    }
}

impl BranchStage {
    /// Finds an arm by its name.
    #[must_use]
    pub fn arm(&self, name: &str) -> Option<&ArmDefinition> {
        self.arms.iter().find(|arm| arm.name == name)
    }
}

/// Chooses an arm of a branch by the state.
pub type ChooseFn = Arc<dyn Fn(&StateValue) -> Result<usize> + Send + Sync>;

/// Checks the state of a brain, and returns the reason if it does not pass.
pub type GuardFn = Arc<dyn Fn(&StateValue) -> Result<Option<Value>> + Send + Sync>;

/// How a step, a prompt, or each brain that a stage runs is tried.
#[derive(Clone)]
#[derive_where(Debug)]
pub struct Tries {
    /// How often it is tried again after an error that `retried` accepts.
    pub retries: u32,
    /// Says which errors are tried again.
    #[derive_where(skip)]
    pub retried: RetriedFn,
    /// How long a try may take, or a loop.
    pub timeout: Option<Duration>,
}

impl Tries {
    /// Tries a step or a prompt again after transient errors, and nothing else.
    pub(crate) fn of(kind: StageKind) -> Self {
        let retries = if kind.is_step() { 3 } else { 0 };
        Self { retries, retried: Arc::new(Error::is_transient), timeout: None }
    }
}

/// Says whether an error of a step or of a brain is tried again.
pub type RetriedFn = Arc<dyn Fn(&Error) -> bool + Send + Sync>;

/// A wait as a stage.
#[derive(Clone)]
#[derive_where(Debug)]
pub struct WaitStage {
    /// Its kind: a wait, a question to a person, or a sleep.
    pub kind: StageKind,
    /// The names of its webhooks, in order.
    pub webhooks: Vec<String>,
    /// Computes the waits and their end from the state and the time. It runs once: what it returns is in the log.
    #[derive_where(skip)]
    pub begin: BeginWaitFn,
    /// Computes the next state from the state and the answer.
    #[derive_where(skip)]
    pub finish: FinishWaitFn,
}

/// Computes what a stage waits for, and until when.
pub type BeginWaitFn =
    Arc<dyn Fn(&StateValue, Timestamp) -> Result<(Vec<WaitSpec>, Option<WaitDeadline>)> + Send + Sync>;

/// Computes the next state from the index of the answered wait and its payload, or from the end of the time.
pub type FinishWaitFn = Arc<dyn Fn(&StateValue, Option<(u32, &Value)>) -> Result<Value> + Send + Sync>;

/// Computes the next state of a brain.
pub type StepFn = Arc<dyn Fn(Scope) -> BoxFuture<'static, Result<Value>> + Send + Sync>;

impl StageDefinition {
    /// Returns the stage as recorded in its brain's first event.
    #[must_use]
    pub fn shape(&self) -> StageShape {
        let brain = self.body.nested(None).map(|nested| nested.definition.fingerprint());
        let webhooks = self.body.as_wait().map_or_else(Vec::new, |wait| wait.webhooks.clone());
        let arms = self.body.arms().iter().map(ArmDefinition::shape).collect();
        let rounds = self.body.as_repeat().map_or(0, |repeat| repeat.rounds);
        let (undo, kind) = (self.undo.is_some(), self.body.kind());
        let (caller_tools, caller_timeout) =
            self.body.as_loop().map_or((false, None), |stage| (stage.caller_tools, stage.caller_timeout));
        // The worker limits the tries of a step, and its code is read again for each.
        let timeout = self.tries.timeout.filter(|_| !kind.is_step());
        StageShape {
            brain,
            webhooks,
            arms,
            rounds,
            undo,
            timeout,
            caller_tools,
            caller_timeout,
            ..StageShape::new(&self.name, kind)
        }
    }
}

impl StageBody {
    /// Returns the webhooks for which the stage waits, or those for which the tools of a loop wait, as its author declares them.
    #[must_use]
    pub fn webhooks(&self) -> &[String] {
        match self {
            Self::Wait(wait) => &wait.webhooks,
            Self::Loop(stage) => &stage.webhooks,
            _ => &[],
        }
    }

    /// Returns the stage's kind.
    #[must_use]
    pub const fn kind(&self) -> StageKind {
        match self {
            Self::Step(_) => StageKind::Step,
            Self::Prompt(_) => StageKind::Prompt,
            Self::Loop(_) => StageKind::Loop,
            Self::Brain(_) => StageKind::Brain,
            Self::Wait(wait) => wait.kind,
            Self::Guard(_) => StageKind::Guard,
            Self::Branch(_) => StageKind::Branch,
            Self::Group(group) => group.kind,
            Self::Repeat(_) => StageKind::Repeat,
        }
    }

    /// Returns the code of a step or a prompt.
    #[must_use]
    pub const fn as_step(&self) -> Option<&StepFn> {
        match self {
            Self::Step(step) | Self::Prompt(step) => Some(step),
            _ => None,
        }
    }

    /// Returns a loop.
    #[must_use]
    pub const fn as_loop(&self) -> Option<&LoopStage> {
        match self {
            Self::Loop(stage) => Some(stage),
            _ => None,
        }
    }

    /// Returns the brain that the stage runs, with the chosen arm of a branch. A `map` runs it for each item.
    #[must_use]
    pub fn nested(&self, arm: Option<&str>) -> Option<&NestedDefinition> {
        match self {
            Self::Brain(nested) => Some(nested),
            Self::Repeat(repeat) => Some(&repeat.brain),
            Self::Group(GroupStage { brains: GroupBrains::Each { brain, .. }, .. }) => Some(brain),
            Self::Branch(branch) => branch.arm(arm?)?.nested(),
            _ => None,
        }
    }

    /// Returns the brain of a group with this number, or that of a round.
    #[must_use]
    pub fn child(&self, index: u32) -> Option<&NestedDefinition> {
        match self {
            Self::Group(GroupStage { brains: GroupBrains::Named(arms), .. }) => {
                arms.get(usize::try_from(index).ok()?)?.nested()
            }
            _ => self.nested(None),
        }
    }

    /// Lists the brains that the stage can run, as far as they are known before a run: those of the tools of each iteration, too.
    pub fn brains(&self) -> impl Iterator<Item = &NestedDefinition> {
        let tools = self.as_loop().into_iter().flat_map(|stage| stage.tools.values());
        let called = tools.filter_map(|tool| match &tool.body {
            ToolBody::Brain(nested) => Some(nested),
            ToolBody::Function { .. } => None,
        });
        self.nested(None).into_iter().chain(self.arms().iter().filter_map(ArmDefinition::nested)).chain(called)
    }

    /// Returns the arms of a branch, or the brains of a group that has several.
    #[must_use]
    pub fn arms(&self) -> &[ArmDefinition] {
        match self {
            Self::Branch(branch) => &branch.arms,
            Self::Group(GroupStage { brains: GroupBrains::Named(arms), .. }) => arms,
            _ => &[],
        }
    }

    /// Returns a group of brains.
    #[must_use]
    pub const fn as_group(&self) -> Option<&GroupStage> {
        match self {
            Self::Group(group) => Some(group),
            _ => None,
        }
    }

    /// Returns a repeated brain.
    #[must_use]
    pub const fn as_repeat(&self) -> Option<&RepeatStage> {
        match self {
            Self::Repeat(repeat) => Some(repeat),
            _ => None,
        }
    }

    /// Returns the arms of a branch.
    #[must_use]
    pub const fn as_branch(&self) -> Option<&BranchStage> {
        match self {
            Self::Branch(branch) => Some(branch),
            _ => None,
        }
    }

    /// Returns the check of a guard.
    #[must_use]
    pub const fn as_guard(&self) -> Option<&GuardFn> {
        match self {
            Self::Guard(check) => Some(check),
            _ => None,
        }
    }

    /// Returns the code of a wait.
    #[must_use]
    pub const fn as_wait(&self) -> Option<&WaitStage> {
        match self {
            Self::Wait(wait) => Some(wait),
            _ => None,
        }
    }
}

impl fmt::Debug for StageDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.body.kind(), self.name)
    }
}

impl fmt::Debug for StageBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind())
    }
}
