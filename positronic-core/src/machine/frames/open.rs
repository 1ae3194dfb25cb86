//! What is open, as a walk through the frames meets it.

use super::{BrainFrame, Call, CallPhase, GroupFrame, LoopFrame, LoopPhase, StepFrame, WaitFrame};

/// A brain, the step, the loop, the wait or the group of its current stage, or a call of that loop's batch.
#[derive(Clone, Copy)]
pub(in crate::machine) enum OpenFrame<'a> {
    Brain(&'a BrainFrame),
    /// A step, with its brain.
    Step(&'a BrainFrame, &'a StepFrame),
    Loop(&'a LoopFrame),
    Call(&'a Call),
    /// A wait, with its brain.
    Wait(&'a BrainFrame, &'a WaitFrame),
    Group(&'a GroupFrame),
}

impl OpenFrame<'_> {
    /// Returns whether its step, its request or its call is in flight.
    pub(in crate::machine) const fn is_in_flight(self) -> bool {
        match self {
            Self::Step(_, step) => step.intent.is_running(),
            Self::Loop(LoopFrame { phase: LoopPhase::Ask { intent, .. }, .. })
            | Self::Call(Call { phase: CallPhase::Open(intent), .. }) => intent.is_running(),
            Self::Brain(_) | Self::Loop(_) | Self::Call(_) | Self::Wait(..) | Self::Group(_) => false,
        }
    }
}

/// A frame on the way to a brain.
pub(in crate::machine) enum Visit<'a> {
    Brain(&'a mut BrainFrame),
    Loop(&'a mut LoopFrame),
}
