//! Nested brains: they begin, run, and end their stage or its brain.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use super::fork_deadlines::postpone;
use super::frame::{Advance, Frame, Kind, OwnerState, Reason, Segments, Visitor, requests_below};
use crate::machine::close::end_brain;
use crate::machine::conversation_budget::{budget_of, shared_of};
use crate::machine::effect::{Effect, Next};
use crate::machine::frames::{BrainEnd, BrainFrame, Intent, OpenFrame, Stage, Visit};
use crate::machine::grants::{Grants, Spending};
use crate::machine::limits::{Enclosing, LimitedFrame};
use crate::machine::tries::{begun_again, next_try, note_retry, overdue, tried, waits_for_try};
use crate::machine::undo;
use crate::record::{
    Actor, BrainStart, EndReason, Event, EventKind, Failure, LimitKind, NewEvent, Path, Segment, Seq, Timestamp, Usage,
};

pub(super) struct BrainKind;

impl Kind for BrainKind {
    fn next(&self, owner: &BrainFrame, path: Path, _: Timestamp, _: &Enclosing<'_>, out: &mut Next) {
        start(owner, path, out);
    }

    fn apply<'e>(&self, event: &'e Event, owner: &BrainFrame) -> Result<Advance<'e>, Reason> {
        match (&event.kind, event.path.last()) {
            (EventKind::BrainStart(start), Some(Segment::Stage(_))) => {
                let timeout = owner.current().and_then(|stage| stage.timeout);
                Ok(Advance::Begun(Stage::Brain(Arc::new(tried(BrainFrame::begun(event, start), 0, timeout)))))
            }
            _ => Err("the nested brain has not begun".to_owned()),
        }
    }
}

/// Adds the effect that starts the brain of a stage, or the failure of the brain around it.
pub(super) fn start(owner: &BrainFrame, path: Path, out: &mut Next) {
    if nests_too_deep(&path) {
        owner.fail(Failure { code: EndReason::Brain, message: too_deep(&path), retryable: false }, out);
    } else {
        out.effects.push(Effect::StartBrain { path });
    }
}

/// A nested brain as the stage of another one.
impl Frame for BrainFrame {
    fn next<'a>(&'a self, owner: &'a BrainFrame, now: Timestamp, enclosing: &mut Enclosing<'a>, out: &mut Next) {
        match &self.end {
            None => self.effects(now, enclosing, out),
            Some(BrainEnd::Completed(_)) => out.effects.push(Effect::FinishBrain { path: self.path.clone() }),
            Some(BrainEnd::Failed(_)) if waits_for_try(self, now, out) => {}
            Some(BrainEnd::Failed(_)) if self.again.is_some() => start(owner, next_try(self), out),
            Some(BrainEnd::Failed(failure)) => {
                let message = format!("the brain `{}` failed: {}", self.path, failure.message);
                owner.fail(Failure { code: EndReason::Brain, message, retryable: failure.retryable }, out);
            }
            Some(BrainEnd::Cancelled) => {}
        }
    }

    fn apply<'e>(&mut self, event: &'e Event, _: OwnerState<'_>) -> Result<Advance<'e>, Reason> {
        match (&event.kind, &self.end) {
            (EventKind::StepComplete { change, .. }, Some(BrainEnd::Completed(_))) if is_stage(&event.path) => {
                Ok(Advance::Done(change.as_ref()))
            }
            (EventKind::RepeatRound { round, change }, Some(BrainEnd::Completed(_)))
                if self.round_of_stage() == Some(*round) =>
            {
                Ok(Advance::Again(change.as_ref()))
            }
            (EventKind::StepRetry { attempt, due, .. }, None) => {
                note_retry(self, &event.path, *attempt, *due).map(|()| Advance::Stay)
            }
            (EventKind::BrainStart(start), Some(_)) if self.again.is_some() && event.path == next_try(self) => {
                Ok(Advance::Begun(Stage::Brain(Arc::new(begun_again(self, event, start)))))
            }
            _ => Err("the stage is a nested brain".to_owned()),
        }
    }

    fn doubt(&mut self, crashed: bool, shared: Option<Seq>) {
        if let Some(frame) = self.stage.frame_mut() {
            frame.doubt(crashed, shared);
        }
    }

    fn postpone(&mut self, by: Duration) {
        if self.due.is_some() {
            // Its time is counted from its beginning.
            self.began = self.began.after(by);
        }
        postpone(&mut self.due, by);
        self.grants.postpone(by);
        if let Some(shared) = &mut self.shared {
            Arc::make_mut(shared).grants.postpone(by);
        }
        if let Some(frame) = self.stage.frame_mut() {
            frame.postpone(by);
        }
    }

    fn close(&self, why: &str, new_events: &mut Vec<NewEvent>) {
        if self.end.is_none() {
            self.close_stage(why, new_events);
            let cancelled =
                EventKind::BrainCancelled { signal: None, actor: Actor::default(), reason: Some(why.to_owned()) };
            new_events.push(NewEvent::new(self.path.clone(), cancelled));
        }
    }

    fn in_flight(&self, requests: fn(Intent) -> bool) -> bool {
        if let Some(due) = self.again.filter(|_| self.end.is_some()) {
            return requests(Intent::Backoff(due));
        }
        let requests = requests_below(self.waits_for_more(), requests);
        self.stage.frame().is_some_and(|frame| frame.in_flight(requests))
    }

    fn is_blocked_by_limit(&self) -> bool {
        self.begins_with_request() || self.stage.frame().is_some_and(Frame::is_blocked_by_limit)
    }

    fn collect_active(&self, waits: bool, active: &mut Vec<Path>) -> bool {
        let waits = waits || self.waits_for_more();
        let busy = match self.stage.frame() {
            _ if self.end.is_some() => true,
            Some(frame) => frame.collect_active(waits, active),
            None => !(waits && self.begins_with_request()),
        };
        if busy && LimitedFrame::all_of(self).any(|bound| bound.limit(LimitKind::Time).is_some()) {
            active.push(self.path.clone());
        }
        busy
    }

    fn awaits(&self, _: &Path) -> bool {
        false
    }

    fn is_failing(&self) -> bool {
        match (&self.end, &self.stage) {
            _ if self.again.is_some() => false,
            (Some(end), _) => matches!(end, BrainEnd::Failed(_)),
            (None, Stage::Failed(_)) => true,
            (None, stage) => stage.frame().is_some_and(Frame::is_failing),
        }
    }

    fn child<'a>(&'a self, segments: &mut Segments<'_>, _: &mut dyn FnMut(OpenFrame<'a>)) -> Option<&'a BrainFrame> {
        self.is_at(segments).then_some(self)
    }

    fn child_mut(&mut self, segments: &mut Segments<'_>, _: &mut dyn FnMut(Visit<'_>)) -> Option<&mut BrainFrame> {
        self.is_at(segments).then_some(self)
    }

    fn visit<'a>(&'a self, _: &'a BrainFrame, visit: &mut Visitor<'_, 'a>) -> ControlFlow<()> {
        self.visit_open(visit)
    }
}

impl BrainFrame {
    /// Creates the frame of a brain that begins with an event.
    pub(in crate::machine) fn begun(event: &Event, start: &BrainStart) -> Self {
        Self {
            path: event.path.clone(),
            title: start.title.as_str().into(),
            version: start.version,
            fingerprint: start.fingerprint.clone(),
            stages: Arc::new(start.stages.clone()),
            options: Arc::new(start.options.clone()),
            state: Arc::new(start.state.clone()),
            changed: event.seq,
            plugins: start.plugins.clone(),
            index: 0,
            stage: Stage::Ready,
            usage: Usage::default(),
            budget: budget_of(start),
            shared: shared_of(start),
            grants: Grants::default(),
            spent: Spending::default(),
            iterations: 0,
            active: 0,
            began: event.at,
            due: None,
            attempt: 0,
            again: None,
            arm: None,
            round: 0,
            stopped: None,
            handed_over: start.handed_over.clone(),
            handed_back: None,
            undo: Vec::new(),
            undoing: None,
            end: None,
        }
    }

    /// Adds the effects that it needs now.
    pub(in crate::machine) fn effects<'a>(&'a self, now: Timestamp, enclosing: &mut Enclosing<'a>, out: &mut Next) {
        if let Some(failure) = overdue(self, now) {
            out.effects.push(Effect::Append(end_brain(self, &failure)));
            return;
        }
        if let Some(due) = self.due.filter(|_| self.undoing.is_none()) {
            out.wake_at(due);
        }
        enclosing.within(LimitedFrame::all_of(self), |enclosing| self.stage_effects(now, enclosing, out));
    }

    fn stage_effects<'a>(&'a self, now: Timestamp, enclosing: &mut Enclosing<'a>, out: &mut Next) {
        let Some(stage) = self.current() else {
            out.effects.push(match &self.undoing {
                Some(undoing) => Effect::Append(vec![undo::undone(self, undoing)]),
                None => Effect::CompleteBrain { path: self.path.clone() },
            });
            return;
        };
        match (&self.stage, self.stage.frame()) {
            (_, Some(frame)) => frame.next(self, now, enclosing, out),
            (Stage::Failed(failure), None) => self.fail(failure.clone(), out),
            (_, None) => stage.kind.rules().next(self, self.path.stage(&stage.name), now, enclosing, out),
        }
    }

    /// Visits the brain and everything open below it, in the order of the paths.
    pub(in crate::machine) fn visit_open<'a>(&'a self, visit: &mut Visitor<'_, 'a>) -> ControlFlow<()> {
        visit(OpenFrame::Brain(self))?;
        self.stage.frame().map_or(ControlFlow::Continue(()), |frame| frame.visit(self, visit))
    }

    /// Adds the events that end everything open in its stage.
    pub(in crate::machine) fn close_stage(&self, why: &str, new_events: &mut Vec<NewEvent>) {
        if let Some(frame) = self.stage.frame() {
            frame.close(why, new_events);
        }
    }

    /// Returns the round that it is of a stage that repeats it.
    fn round_of_stage(&self) -> Option<u32> {
        match self.path.last() {
            Some(Segment::Call(round, _)) => Some(round),
            _ => None,
        }
    }

    /// Takes the segment of its round or its try from a path, and returns whether it is there.
    fn is_at(&self, segments: &mut Segments<'_>) -> bool {
        match self.path.last() {
            Some(own @ Segment::Call(..)) => segments.next() == Some(own),
            _ => true,
        }
    }

    /// Adds its failure.
    pub(in crate::machine) fn fail(&self, failure: Failure, out: &mut Next) {
        out.effects.push(Effect::Append(vec![undo::failed(self, failure)]));
    }

    /// Returns whether its next stage begins with a request.
    fn begins_with_request(&self) -> bool {
        let ready = self.current().filter(|_| self.end.is_none() && matches!(self.stage, Stage::Ready));
        ready.is_some_and(|stage| stage.kind.rules().begins_with_request())
    }
}

fn is_stage(path: &Path) -> bool {
    matches!(path.last(), Some(Segment::Stage(_)))
}

/// The maximum nesting of open brains. A snapshot with more could not be read, since JSON parsers limit
/// the depth.
const DEEPEST: usize = 16;

/// Returns whether a brain at this path would exceed the maximum nesting.
pub(in crate::machine) fn nests_too_deep(path: &Path) -> bool {
    let mut brains = 1;
    let mut staged = false;
    for segment in path.segments() {
        let stage = matches!(segment, Segment::Stage(_));
        brains += usize::from((stage && staged) || matches!(segment, Segment::Call(..)));
        staged = stage;
    }
    // The last segment is the brain that would begin; a call is already counted.
    brains + usize::from(staged) > DEEPEST
}

pub(in crate::machine) fn too_deep(path: &Path) -> String {
    format!("the brain `{path}` cannot begin: it would exceed the maximum nesting of {DEEPEST} brains")
}
