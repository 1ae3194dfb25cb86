//! Repeated brains: each round is a nested brain with the path of the round, `Stage/2.0`. The number of the round is that of the
//! brain around it, so that a round has the frame of any nested brain.

use std::sync::Arc;

use super::brain::start;
use super::frame::{Advance, Kind, Reason};
use crate::machine::effect::Next;
use crate::machine::frames::{BrainFrame, Stage};
use crate::machine::limits::Enclosing;
use crate::machine::tries::tried;
use crate::record::{EndReason, Event, EventKind, Failure, Path, Segment, Timestamp};

pub(super) struct RepeatKind;

impl Kind for RepeatKind {
    fn next(&self, owner: &BrainFrame, path: Path, _: Timestamp, _: &Enclosing<'_>, out: &mut Next) {
        let most = owner.current().map_or(0, |stage| stage.rounds);
        if owner.round >= most {
            // Only a fork right after the last round.
            let message = format!("the stage `{path}` is not done after {most} rounds, its limit");
            return owner.fail(Failure { code: EndReason::Limit, message, retryable: false }, out);
        }
        start(owner, path.call(owner.round, 0), out);
    }

    fn apply<'e>(&self, event: &'e Event, owner: &BrainFrame) -> Result<Advance<'e>, Reason> {
        match (&event.kind, event.path.last()) {
            (EventKind::BrainStart(start), Some(Segment::Call(round, 0))) if round == owner.round => {
                let timeout = owner.current().and_then(|stage| stage.timeout);
                Ok(Advance::Begun(Stage::Brain(Arc::new(tried(BrainFrame::begun(event, start), 0, timeout)))))
            }
            _ => Err(format!("round {} has not begun", owner.round)),
        }
    }
}
