//! Effects: what the machine asks the runner to do.

use crate::record::{LoopOutcome, NewEvent, Path, Timestamp};

/// The effects that the state requires.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Next {
    /// The effects that must be in flight. Those in flight without an intent in the log are listed again.
    pub effects: Vec<Effect>,
    /// The latest time for the next call, when something is due.
    pub wake: Option<Timestamp>,
    /// Whether an outer loop's limit blocks something that could otherwise run.
    pub(super) blocked: bool,
}

impl Next {
    pub(super) fn wake_at(&mut self, due: Timestamp) {
        self.wake = Some(self.wake.map_or(due, |wake| wake.min(due)));
    }
}

/// An action for the runner. Effects are identified by their kind and path.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Appends events that follow from the state alone.
    Append(Vec<NewEvent>),
    /// Runs a step: `STEP_START`, then `STEP_COMPLETE`, `STEP_RETRY` or `BRAIN_ERROR`.
    Step {
        /// The step.
        path: Path,
        /// The try, from 0.
        attempt: u32,
    },
    /// Runs a loop's configuration: `LOOP_START` at the first iteration, and `LOOP_ITERATION`.
    Prepare {
        /// The loop.
        path: Path,
        /// The iteration, from 0.
        iteration: u32,
    },
    /// Asks the model: `LOOP_MODEL_CALL`, then `LOOP_MODEL_RESULT` with its calls, or `LOOP_MODEL_RETRY`.
    Ask {
        /// The iteration.
        path: Path,
        /// The try, from 0.
        attempt: u32,
    },
    /// Executes a tool: `LOOP_TOOL_START`, then `LOOP_TOOL_RESULT`, `LOOP_TOOL_RETRY` or `LOOP_WAIT`.
    Execute {
        /// The call.
        path: Path,
        /// The try, from 0.
        attempt: u32,
    },
    /// Computes the result of a call from its answer: `LOOP_TOOL_RESULT`.
    Resume {
        /// The call.
        path: Path,
    },
    /// Chooses an arm of a branch: `BRANCH_CHOSEN`.
    Choose {
        /// The stage.
        path: Path,
    },
    /// Computes the next state of the chosen arm, which has no brain: `STEP_COMPLETE`.
    TakeArm {
        /// The stage.
        path: Path,
    },
    /// Computes the options of brains that run at the same time: `GROUP_START`.
    BeginGroup {
        /// The stage.
        path: Path,
    },
    /// Computes the next state from the ends of brains that ran at the same time: `STEP_COMPLETE`.
    FinishGroup {
        /// The stage.
        path: Path,
    },
    /// Checks a guard: `GUARD_CHECKED`.
    Check {
        /// The stage.
        path: Path,
    },
    /// Computes what a stage waits for: `STAGE_WAIT`.
    BeginWait {
        /// The stage.
        path: Path,
    },
    /// Computes the next state from the end of a wait: `STEP_COMPLETE`.
    FinishWait {
        /// The stage.
        path: Path,
    },
    /// Begins a nested brain: `BRAIN_START`, for a call after `LOOP_BRAIN_START`.
    StartBrain {
        /// The stage or the call.
        path: Path,
    },
    /// Applies a nested brain's result to the outer brain: `STEP_COMPLETE`, or `LOOP_BRAIN_COMPLETE` and
    /// `LOOP_TOOL_RESULT`.
    FinishBrain {
        /// The stage or the call.
        path: Path,
    },
    /// Computes a brain's result: `BRAIN_COMPLETE`.
    CompleteBrain {
        /// The brain.
        path: Path,
    },
    /// Ends a loop: `LOOP_COMPLETE`.
    CloseLoop {
        /// The loop.
        path: Path,
        /// The outcome.
        outcome: LoopOutcome,
    },
}

impl Effect {
    /// Returns the path of the effect; `None` for [`Effect::Append`].
    #[must_use]
    pub const fn path(&self) -> Option<&Path> {
        match self {
            Self::Append(_) => None,
            Self::Step { path, .. }
            | Self::Prepare { path, .. }
            | Self::Ask { path, .. }
            | Self::Execute { path, .. }
            | Self::Resume { path }
            | Self::Choose { path }
            | Self::TakeArm { path }
            | Self::BeginGroup { path }
            | Self::FinishGroup { path }
            | Self::Check { path }
            | Self::BeginWait { path }
            | Self::FinishWait { path }
            | Self::StartBrain { path }
            | Self::FinishBrain { path }
            | Self::CompleteBrain { path }
            | Self::CloseLoop { path, .. } => Some(path),
        }
    }
}
