//! The table of the stages: which code runs for which kind, and for which frame.

use std::sync::Arc;

use super::brain::BrainKind;
use super::branch::BranchKind;
use super::frame::{Frame, Kind};
use super::group::GroupKind;
use super::guard::GuardKind;
use super::r#loop::LoopKind;
use super::repeat::RepeatKind;
use super::step::StepKind;
use super::wait::WaitKind;
use crate::machine::frames::{BrainFrame, GroupFrame, LoopFrame, Stage};
use crate::record::StageKind;

impl StageKind {
    pub(in crate::machine) fn rules(self) -> &'static dyn Kind {
        match self {
            Self::Step | Self::Prompt => &StepKind,
            Self::Guard => &GuardKind,
            Self::Loop => &LoopKind,
            Self::Brain => &BrainKind,
            Self::Branch => &BranchKind,
            Self::All | Self::Race | Self::Map => &GroupKind,
            Self::Repeat => &RepeatKind,
            Self::Wait | Self::AskPerson | Self::Sleep | Self::Join => &WaitKind,
        }
    }
}

impl Stage {
    /// Returns the frame of a stage that has begun.
    pub(in crate::machine) fn frame(&self) -> Option<&dyn Frame> {
        match self {
            Self::Step(frame) => Some(frame),
            Self::Loop(frame) => Some(&**frame),
            Self::Brain(frame) => Some(&**frame),
            Self::Wait(frame) => Some(&**frame),
            Self::Group(frame) => Some(&**frame),
            Self::Ready | Self::Failed(_) => None,
        }
    }

    /// Returns the frame of a stage that has begun, in order to change it.
    pub(in crate::machine) fn frame_mut(&mut self) -> Option<&mut dyn Frame> {
        match self {
            Self::Step(frame) => Some(frame),
            Self::Loop(frame) => Some(Arc::<LoopFrame>::make_mut(frame)),
            Self::Brain(frame) => Some(Arc::<BrainFrame>::make_mut(frame)),
            Self::Wait(frame) => Some(&mut **frame),
            Self::Group(frame) => Some(Arc::<GroupFrame>::make_mut(frame)),
            Self::Ready | Self::Failed(_) => None,
        }
    }
}
