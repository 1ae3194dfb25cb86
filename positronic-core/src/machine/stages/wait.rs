//! Waits of a brain: for webhooks, for a person's reply, or for a time. The first answer counts, and ends the wait.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use super::fork_deadlines::{postpone, postpone_waits};
use super::frame::{Advance, Frame, Kind, OwnerState, Reason, Visitor};
use crate::machine::effect::{Effect, Next};
use crate::machine::frames::{BrainFrame, Intent, OpenFrame, Stage, WaitFrame, WaitOutcome};
use crate::machine::limits::Enclosing;
use crate::record::{Actor, Event, EventKind, NewEvent, Path, ResumeCause, Seq, Timestamp};

pub(super) struct WaitKind;

impl Kind for WaitKind {
    fn next(&self, _: &BrainFrame, path: Path, _: Timestamp, _: &Enclosing<'_>, out: &mut Next) {
        out.effects.push(Effect::BeginWait { path });
    }

    fn apply<'e>(&self, event: &'e Event, _: &BrainFrame) -> Result<Advance<'e>, Reason> {
        let EventKind::StageWait { waits, due, fixed } = &event.kind else {
            return Err("the wait has not begun".to_owned());
        };
        if waits.is_empty() && due.is_none() {
            return Err("nothing could end the wait".to_owned());
        }
        let (since, began, waits, due, fixed) = (event.seq, event.at, waits.clone(), *due, *fixed);
        Ok(Advance::Begun(Stage::Wait(Box::new(WaitFrame { since, began, waits, due, fixed, end: None }))))
    }
}

impl Frame for WaitFrame {
    fn next<'a>(&'a self, owner: &'a BrainFrame, now: Timestamp, _: &mut Enclosing<'a>, out: &mut Next) {
        let Some(path) = owner.current_path() else { return };
        match self.due {
            _ if self.end.is_some() => out.effects.push(Effect::FinishWait { path }),
            Some(due) if due <= now => {
                let expired = EventKind::StageResume {
                    cause: ResumeCause::Expired,
                    wait: u32::try_from(self.waits.len()).unwrap_or(u32::MAX),
                    payload: serde_json::Value::Null,
                    received: None,
                    signal: None,
                    actor: Actor::default(),
                };
                out.effects.push(Effect::Append(vec![NewEvent::new(path, expired)]));
            }
            Some(due) => out.wake_at(due),
            None => {}
        }
    }

    fn apply<'e>(&mut self, event: &'e Event, _: OwnerState<'_>) -> Result<Advance<'e>, Reason> {
        match (&event.kind, &self.end) {
            (EventKind::StageResume { cause: ResumeCause::Expired, .. }, None) => {
                if self.due.is_none() {
                    return Err("the wait has no end".to_owned());
                }
                self.end = Some(WaitOutcome::Expired);
            }
            (EventKind::StageResume { cause: ResumeCause::Answered, wait, payload, .. }, None) => {
                if usize::try_from(*wait).is_ok_and(|wait| wait >= self.waits.len()) {
                    return Err(format!("the stage has no wait {wait}"));
                }
                self.end = Some(WaitOutcome::Answered(*wait, Arc::new(payload.clone())));
            }
            (EventKind::StepComplete { change, .. }, Some(_)) => return Ok(Advance::Done(change.as_ref())),
            _ => return Err("the stage waits".to_owned()),
        }
        Ok(Advance::Stay)
    }

    fn doubt(&mut self, _: bool, _: Option<Seq>) {}

    fn postpone(&mut self, by: Duration) {
        if !self.fixed {
            postpone(&mut self.due, by);
            postpone_waits(&mut self.waits, by);
        }
    }

    fn in_flight(&self, _: fn(Intent) -> bool) -> bool {
        false
    }

    fn is_blocked_by_limit(&self) -> bool {
        false
    }

    fn collect_active(&self, _: bool, _: &mut Vec<Path>) -> bool {
        self.end.is_some()
    }

    fn awaits(&self, _: &Path) -> bool {
        false
    }

    fn visit<'a>(&'a self, owner: &'a BrainFrame, visit: &mut Visitor<'_, 'a>) -> ControlFlow<()> {
        visit(OpenFrame::Wait(owner, self))
    }
}
