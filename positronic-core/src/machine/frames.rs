//! The frames of a run: the state of what is open, as a snapshot stores it.
//!
//! They contain each other: a brain is at a stage, a stage can be a loop or a group of brains, a loop has calls, and a call can run a brain. The
//! other files of this folder have what they do.

mod call;
mod group;
pub(super) mod known_contents;
mod r#loop;
mod open;
mod undo;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::grants::{Grants, SharedLimits, Spending};
use crate::record::encoding::document;
use crate::record::encoding::skip::is_default;
use crate::record::{
    ArmShape, Budget, ContentHash, Failure, Finish, HandedOver, LimitKind, Part, Path, PluginStates, ResponseMetadata,
    Seq, Shape, StageShape, Timestamp, Usage, WaitSpec,
};

pub use call::{Call, CallPhase};
pub use group::{GroupFrame, Winner};
pub use r#loop::{LoopFrame, LoopPhase, OpenUpdate, Prepared, RejectedAnswer};
pub(super) use open::{OpenFrame, Visit};
pub use undo::{Undoable, Undoing};

/// A brain that has begun.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BrainFrame {
    /// Its path: empty for the root, else that of its stage or call.
    pub path: Path,
    /// Its title.
    pub title: Arc<str>,
    /// The version set by its author.
    pub version: u32,
    /// The hash that identifies its version.
    pub fingerprint: ContentHash,
    /// Its stages.
    pub stages: Arc<Shape>,
    /// Its options.
    pub options: Arc<Value>,
    /// Its state, a canonical document.
    pub state: Arc<Value>,
    /// The event that last changed the state.
    pub changed: Seq,
    /// The states of its plugins.
    #[serde(default, skip_serializing_if = "PluginStates::is_empty")]
    pub plugins: PluginStates,
    /// The index of the current stage; the number of stages when all are done.
    pub index: usize,
    /// The current stage.
    pub stage: Stage,
    /// The tokens of this brain and everything below it.
    pub usage: Usage,
    /// The budget of the brain and everything below it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Arc<Budget>>,
    /// The conversation's budget, if this is the run's brain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<Arc<SharedLimits>>,
    /// The decisions on the budget.
    #[serde(default, skip_serializing_if = "is_default")]
    pub grants: Grants,
    /// The cost of model answers, here and below.
    #[serde(default, skip_serializing_if = "is_default")]
    pub spent: Spending,
    /// How many iterations have begun, here and below.
    #[serde(default, skip_serializing_if = "is_default")]
    pub iterations: u64,
    /// The active time, in microseconds. Only counted if it is limited.
    #[serde(default, skip_serializing_if = "is_default")]
    pub active: u64,
    /// When it began.
    pub began: Timestamp,
    /// When it fails if it has not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Timestamp>,
    /// How often its stage has tried it before, under other paths.
    #[serde(default, skip_serializing_if = "is_default")]
    pub attempt: u32,
    /// When its stage tries it again, if it fails or has failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<Timestamp>,
    /// The chosen arm of the current stage, a branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arm: Option<ArmShape>,
    /// The round of the current stage, which repeats a brain.
    #[serde(default, skip_serializing_if = "is_default")]
    pub round: u32,
    /// The reason of the guard that did not pass.
    #[serde(default, deserialize_with = "document::present", skip_serializing_if = "Option::is_none")]
    pub stopped: Option<Value>,
    /// Its completed stages that can be undone, in the order of completion.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undo: Vec<Undoable>,
    /// The brain with which its conversation stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handed_over: Option<Box<HandedOver>>,
    /// The output of the call with which it handed the dialogue back.
    #[serde(default, deserialize_with = "document::present", skip_serializing_if = "Option::is_none")]
    pub handed_back: Option<Value>,
    /// What it undoes before it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoing: Option<Box<Undoing>>,
    /// Its end, if it has ended.
    pub end: Option<BrainEnd>,
}

/// The end of a brain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum BrainEnd {
    /// It completed, with the result for its callers.
    Completed(Value),
    /// It failed.
    Failed(Failure),
    /// It was cancelled.
    Cancelled,
}

/// The current stage of a brain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Stage {
    /// A stage that has not begun.
    Ready,
    /// A step that has begun.
    Step(StepFrame),
    /// A loop that has begun.
    Loop(Arc<LoopFrame>),
    /// A nested brain that has begun.
    Brain(Arc<BrainFrame>),
    /// A wait that has begun.
    Wait(Box<WaitFrame>),
    /// Several brains that run at the same time.
    Group(Arc<GroupFrame>),
    /// A stage whose failure fails the brain.
    Failed(Failure),
}

impl BrainFrame {
    /// Returns the shape of the current stage or undo step, `None` when all are done.
    #[must_use]
    pub fn current(&self) -> Option<&StageShape> {
        match &self.undoing {
            Some(undoing) => undoing.steps.get(undoing.index).map(|(shape, _)| shape),
            None => self.stages.0.get(self.index),
        }
    }

    /// Returns the path of the current stage.
    #[must_use]
    pub fn current_path(&self) -> Option<Path> {
        self.current().map(|stage| self.path.stage(&stage.name))
    }

    /// Returns whether a request for more is open, for its own budget or the conversation's.
    pub(super) fn waits_for_more(&self) -> bool {
        let shared = self.shared.as_ref().is_some_and(|shared| shared.grants.asked.is_some());
        shared || self.grants.asked.is_some()
    }

    /// Returns the usage of the brain and everything below it, in the units of `Amounts::of`.
    pub(super) const fn used(&self, kind: LimitKind) -> u64 {
        match kind {
            LimitKind::Tokens => self.usage.total(),
            LimitKind::Money => self.spent.known.nanos(),
            LimitKind::Time => self.active,
            LimitKind::Iterations => self.iterations,
            LimitKind::Failures => 0,
        }
    }
}

impl Stage {
    /// Returns the step, if it is one that has begun.
    pub(crate) const fn as_step(&self) -> Option<&StepFrame> {
        match self {
            Self::Step(step) => Some(step),
            _ => None,
        }
    }

    /// Returns the loop, if it is one that has begun.
    pub(crate) fn as_loop(&self) -> Option<&LoopFrame> {
        match self {
            Self::Loop(frame) => Some(frame),
            _ => None,
        }
    }

    /// Returns the wait, if it is one that has begun.
    pub(crate) fn as_wait(&self) -> Option<&WaitFrame> {
        match self {
            Self::Wait(frame) => Some(frame),
            _ => None,
        }
    }

    /// Returns the group of brains, if it is one that has begun.
    pub(crate) fn as_group(&self) -> Option<&GroupFrame> {
        match self {
            Self::Group(frame) => Some(frame),
            _ => None,
        }
    }

    pub(super) fn as_group_mut(&mut self) -> Option<&mut GroupFrame> {
        match self {
            Self::Group(frame) => Some(Arc::make_mut(frame)),
            _ => None,
        }
    }

    pub(super) fn as_loop_mut(&mut self) -> Option<&mut LoopFrame> {
        match self {
            Self::Loop(frame) => Some(Arc::make_mut(frame)),
            _ => None,
        }
    }

    /// Returns the nested brain, if it is one that has begun.
    pub(crate) fn as_brain(&self) -> Option<&BrainFrame> {
        match self {
            Self::Brain(inner) => Some(inner),
            _ => None,
        }
    }
}

/// The state of an effect that is recorded before it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Intent {
    /// It has not started.
    Ready,
    /// It is in flight.
    Running,
    /// It was in flight when its worker ended.
    Doubtful,
    /// It failed and is retried at this time.
    Backoff(Timestamp),
}

impl Intent {
    /// Returns whether it is in flight.
    pub(super) const fn is_running(self) -> bool {
        matches!(self, Self::Running)
    }

    /// Returns whether it is in flight, or retried later.
    pub(super) const fn is_busy(self) -> bool {
        matches!(self, Self::Running | Self::Backoff(_))
    }

    /// Marks it as doubtful if it is in flight, and returns whether it was.
    pub(super) const fn doubt(&mut self) -> bool {
        let was_running = self.is_running();
        if was_running {
            *self = Self::Doubtful;
        }
        was_running
    }

    /// Returns the number of the next attempt: an interrupted one restarts with a new number.
    pub(super) const fn next_attempt(self, attempt: u32) -> u32 {
        if matches!(self, Self::Doubtful) { attempt.saturating_add(1) } else { attempt }
    }

    /// Returns whether an attempt with this number can start.
    pub(super) fn can_start(self, attempt: u32, this: u32) -> bool {
        self != Self::Running && this == self.next_attempt(attempt)
    }
}

/// A step that has begun.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepFrame {
    /// The try, from 0.
    pub attempt: u32,
    /// Its state.
    pub intent: Intent,
    /// Its questions to models.
    pub asked: Vec<OpenQuestion>,
    /// Its recorded values.
    pub values: Values,
    /// Whether it asked a model beyond a limit, and has not rerun since.
    #[serde(default, skip_serializing_if = "is_default")]
    pub blocked: bool,
}

/// A wait that has begun.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaitFrame {
    /// The event since which it waits.
    pub since: Seq,
    /// The time of that event.
    pub began: Timestamp,
    /// The waits; the first answer counts.
    pub waits: Vec<WaitSpec>,
    /// When it ends without an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Timestamp>,
    /// Whether the author has named that time.
    #[serde(default, skip_serializing_if = "is_default")]
    pub fixed: bool,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<WaitOutcome>,
}

/// The end of a wait.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum WaitOutcome {
    /// The wait with this index was answered.
    Answered(u32, Arc<Value>),
    /// The time was over.
    Expired,
}

/// The recorded values of a step or a call, by the author's names.
pub type Values = BTreeMap<String, Arc<Value>>;

/// A question of a step, of a plugin in `prepare`, or of a guard about an answer, to a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpenQuestion {
    /// The hash of the question.
    pub hash: ContentHash,
    /// The parts of the answer, if there is one.
    pub answer: Option<Arc<[Part]>>,
    /// The finish reason.
    #[serde(default, skip_serializing_if = "is_default")]
    pub finish: Finish,
}

impl OpenQuestion {
    pub(super) fn take(&mut self, parts: &Arc<[Part]>, metadata: &ResponseMetadata) {
        self.answer = Some(Arc::clone(parts));
        self.finish.clone_from(&metadata.finish);
    }
}
