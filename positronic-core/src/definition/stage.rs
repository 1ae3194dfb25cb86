//! One stage of a definition: the author's code of each kind.

use std::fmt;
use std::sync::Arc;

use derive_where::derive_where;
use futures::future::BoxFuture;
use serde_json::Value;

use super::{LoopDefinition, NestedDefinition, Scope, StateValue};
use crate::error::Result;
use crate::record::{StageKind, StageShape, Timestamp, WaitSpec};

/// One stage of a definition.
#[derive(Clone)]
pub struct StageDefinition {
    /// The stage's name.
    pub name: String,
    /// The stage's work.
    pub body: StageBody,
}

/// The work of a stage.
#[derive(Clone)]
pub enum StageBody {
    /// Computes the next state.
    Step(StepFn),
    /// Asks a model, and computes the next state from its answer.
    Prompt(StepFn),
    /// Lets a model call tools.
    Loop(ConfigureFn),
    /// Runs another brain.
    Brain(NestedDefinition),
    /// Waits for an answer or a time.
    Wait(WaitStage),
    /// Ends the brain if a check of its state does not pass.
    Guard(GuardFn),
}

/// Checks the state of a brain, and returns the reason if it does not pass.
pub type GuardFn = Arc<dyn Fn(&StateValue) -> Result<Option<Value>> + Send + Sync>;

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
pub type BeginWaitFn = Arc<dyn Fn(&StateValue, Timestamp) -> Result<(Vec<WaitSpec>, Option<Timestamp>)> + Send + Sync>;

/// Computes the next state from the index of the answered wait and its payload, or from the end of the time.
pub type FinishWaitFn = Arc<dyn Fn(&StateValue, Option<(u32, &Value)>) -> Result<Value> + Send + Sync>;

/// Computes the next state of a brain.
pub type StepFn = Arc<dyn Fn(Scope) -> BoxFuture<'static, Result<Value>> + Send + Sync>;

/// Configures an iteration of a loop.
pub type ConfigureFn = Arc<dyn Fn(Scope) -> Result<LoopDefinition> + Send + Sync>;

impl StageDefinition {
    /// Returns the stage as recorded in its brain's first event.
    #[must_use]
    pub fn shape(&self) -> StageShape {
        let brain = self.body.nested().map(|nested| nested.definition.fingerprint());
        let webhooks = self.body.as_wait().map(|wait| wait.webhooks.clone()).unwrap_or_default();
        StageShape { name: self.name.clone(), kind: self.body.kind(), brain, webhooks }
    }
}

impl StageBody {
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

    /// Returns the configuration of a loop.
    #[must_use]
    pub const fn as_loop(&self) -> Option<&ConfigureFn> {
        match self {
            Self::Loop(configure) => Some(configure),
            _ => None,
        }
    }

    /// Returns the brain that the stage runs.
    #[must_use]
    pub const fn nested(&self) -> Option<&NestedDefinition> {
        match self {
            Self::Brain(nested) => Some(nested),
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
