//! One stage of a definition: the author's code of each kind.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::Value;

use super::{LoopDefinition, NestedDefinition, Scope};
use crate::error::Result;
use crate::record::{StageKind, StageShape};

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
    /// Lets a model call tools.
    Loop(ConfigureFn),
    /// Runs another brain.
    Brain(NestedDefinition),
}

/// Computes the next state of a brain.
pub type StepFn = Arc<dyn Fn(Scope) -> BoxFuture<'static, Result<Value>> + Send + Sync>;

/// Configures an iteration of a loop.
pub type ConfigureFn = Arc<dyn Fn(Scope) -> Result<LoopDefinition> + Send + Sync>;

impl StageDefinition {
    /// Returns the stage as recorded in its brain's first event.
    #[must_use]
    pub fn shape(&self) -> StageShape {
        let brain = self.body.nested().map(|nested| nested.definition.fingerprint());
        StageShape { name: self.name.clone(), kind: self.body.kind(), brain }
    }
}

impl StageBody {
    /// Returns the stage's kind.
    #[must_use]
    pub const fn kind(&self) -> StageKind {
        match self {
            Self::Step(_) => StageKind::Step,
            Self::Loop(_) => StageKind::Loop,
            Self::Brain(_) => StageKind::Brain,
        }
    }

    /// Returns the code of a step.
    #[must_use]
    pub const fn as_step(&self) -> Option<&StepFn> {
        match self {
            Self::Step(step) => Some(step),
            Self::Loop(_) | Self::Brain(_) => None,
        }
    }

    /// Returns the configuration of a loop.
    #[must_use]
    pub const fn as_loop(&self) -> Option<&ConfigureFn> {
        match self {
            Self::Loop(configure) => Some(configure),
            Self::Step(_) | Self::Brain(_) => None,
        }
    }

    /// Returns the brain that the stage runs.
    #[must_use]
    pub const fn nested(&self) -> Option<&NestedDefinition> {
        match self {
            Self::Brain(nested) => Some(nested),
            Self::Step(_) | Self::Loop(_) => None,
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
