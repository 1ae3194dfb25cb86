//! Guards: a check of the state, which ends the brain if it does not pass. It has no frame, since one event says all.

use super::frame::{Advance, Kind, Reason};
use crate::machine::effect::{Effect, Next};
use crate::machine::frames::BrainFrame;
use crate::machine::limits::Enclosing;
use crate::record::{Event, EventKind, Path, Timestamp};

pub(super) struct GuardKind;

impl Kind for GuardKind {
    fn next(&self, _: &BrainFrame, path: Path, _: Timestamp, _: &Enclosing<'_>, out: &mut Next) {
        out.effects.push(Effect::Check { path });
    }

    fn apply<'e>(&self, event: &'e Event, _: &BrainFrame) -> Result<Advance<'e>, Reason> {
        match &event.kind {
            EventKind::GuardChecked { passed: true, .. } => Ok(Advance::Done(None)),
            EventKind::GuardChecked { passed: false, reason } => Ok(Advance::Stopped(reason)),
            _ => Err("the guard has not been checked".to_owned()),
        }
    }
}
