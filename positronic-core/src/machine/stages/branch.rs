//! Branches: an arm is chosen once, and then it is a nested brain or a step of the worker. The chosen arm is the brain's, so that
//! an arm's brain has the frame of any nested brain.

use super::brain::{BrainKind, start};
use super::frame::{Advance, Kind, Reason};
use crate::machine::effect::{Effect, Next};
use crate::machine::frames::BrainFrame;
use crate::machine::limits::Enclosing;
use crate::record::{ArmShape, Event, EventKind, Path, Timestamp};

pub(super) struct BranchKind;

impl Kind for BranchKind {
    fn next(&self, owner: &BrainFrame, path: Path, _: Timestamp, _: &Enclosing<'_>, out: &mut Next) {
        match &owner.arm {
            None => out.effects.push(Effect::Choose { path }),
            Some(ArmShape { brain: None, .. }) => out.effects.push(Effect::TakeArm { path }),
            Some(ArmShape { brain: Some(_), .. }) => start(owner, path, out),
        }
    }

    fn apply<'e>(&self, event: &'e Event, owner: &BrainFrame) -> Result<Advance<'e>, Reason> {
        match (&event.kind, &owner.arm) {
            (EventKind::BranchChosen(arm), None) => Ok(Advance::Chosen(arm)),
            (EventKind::StepComplete { change, .. }, Some(ArmShape { brain: None, .. })) => {
                Ok(Advance::Done(change.as_ref()))
            }
            (EventKind::BrainStart(_), Some(ArmShape { brain: Some(_), .. })) => BrainKind.apply(event, owner),
            _ => Err("the branch is not there".to_owned()),
        }
    }
}
