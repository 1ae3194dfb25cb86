//! Loops: what they need next, and how they end. `fold` has their events, `batch` the order of calls, `call` each call.

mod approvals;
mod batch;
mod call;
mod call_fold;
mod crashed_calls;
mod engine_messages;
mod fold;
mod handoff;
mod useless_answers;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

pub(in crate::machine) use approvals::{denial, denied_before};
pub(crate) use crashed_calls::given_up;
pub(crate) use engine_messages::OPENING;
pub(in crate::machine) use engine_messages::{CONTINUE, FORGOTTEN};
use engine_messages::{EMPTY, engine_message, nudge, summary_request};

use super::fork_deadlines::{postpone, postpone_waits};
use super::frame::{Advance, Frame, Kind, OwnerState, Reason, Segments, Visitor, requests_below};
use crate::machine::effect::{Effect, Next};
use crate::machine::frames::{
    BrainFrame, Call, CallPhase, Intent, LoopFrame, LoopPhase, OpenFrame, OpenQuestion, Stage, Visit,
};
use crate::machine::limits::{Enclosing, LimitCheck, LimitedFrame};
use crate::machine::tries;
use crate::record::{Event, EventKind, LoopOutcome, NewEvent, Path, Segment, Seq, Timestamp};

pub(super) struct LoopKind;

impl Kind for LoopKind {
    fn next(&self, _: &BrainFrame, path: Path, now: Timestamp, enclosing: &Enclosing<'_>, out: &mut Next) {
        if enclosing.exhausted(LimitCheck::Iteration) {
            out.blocked = true;
        // Without a request for more, the loop begins nevertheless, and ends before it calls a model.
        } else if !enclosing.asks_for_more(LimitCheck::Iteration, now, out) {
            out.effects.push(Effect::Prepare { path, iteration: 0 });
        }
    }

    fn apply<'e>(&self, event: &'e Event, owner: &BrainFrame) -> Result<Advance<'e>, Reason> {
        match (&event.kind, event.path.last()) {
            (EventKind::LoopStart { limits, .. }, Some(Segment::Stage(_))) => {
                let mut frame = LoopFrame::new(event.path.clone(), limits.clone(), Arc::clone(&owner.state));
                frame.due = owner.current().and_then(|stage| stage.timeout).map(|timeout| event.at.after(timeout));
                Ok(Advance::Begun(Stage::Loop(Arc::new(frame))))
            }
            _ => Err("the loop has not begun".to_owned()),
        }
    }

    fn begins_with_request(&self) -> bool {
        true
    }
}

impl Frame for LoopFrame {
    fn next<'a>(&'a self, owner: &'a BrainFrame, now: Timestamp, enclosing: &mut Enclosing<'a>, out: &mut Next) {
        if tries::is_overdue(self, owner.current().and_then(|stage| stage.timeout), now, out) {
            return;
        }
        if let Some((iteration, outcome)) = &self.wrap_up {
            // There is no iteration after the summary.
            let is_over = matches!(self.phase, LoopPhase::Prepare) && self.iteration > *iteration;
            if is_over || matches!(self.phase, LoopPhase::Answered) {
                out.effects.push(Effect::CloseLoop { path: self.path.clone(), outcome: outcome.clone() });
                return;
            }
        }
        if let Some(stopped) = useless_answers::stopped(self) {
            out.effects.push(Effect::Append(vec![stopped]));
            return;
        }
        if self.waits_for_children() {
            return;
        }
        if limits_bind(self).is_some_and(|before| enclosing.at_limit(self, before, now, out)) {
            return;
        }
        match &self.phase {
            LoopPhase::Prepare => {
                if enclosing.exhausted(LimitCheck::Iteration) {
                    out.blocked = true;
                } else {
                    out.effects.push(Effect::Prepare { path: self.path.clone(), iteration: self.iteration });
                }
            }
            LoopPhase::Ask { attempt, intent } => {
                if enclosing.exhausted(LimitCheck::Request) {
                    out.blocked |= intent.may_start(now, &mut Next::default());
                } else if intent.may_start(now, out) {
                    out.effects.push(Effect::Ask { path: self.path.iteration(self.iteration), attempt: *attempt });
                }
            }
            LoopPhase::Answered => {
                if useless_answers::asks_again(self) && !self.exits {
                    out.effects.push(engine_message(self, EMPTY.to_owned()));
                } else if self.exits {
                    out.effects.push(engine_message(self, nudge(self)));
                } else {
                    let outcome = LoopOutcome::Answered;
                    out.effects.push(Effect::CloseLoop { path: self.path.clone(), outcome });
                }
            }
            LoopPhase::Batch => {
                let before = out.effects.len();
                let caller_timeout = owner.current().and_then(|stage| stage.caller_timeout);
                enclosing.within([LimitedFrame::Loop(self)], |enclosing| {
                    batch::next(self, caller_timeout, now, enclosing, out);
                });
                if out.effects.len() == before && batch::is_batch_blocked(self) {
                    enclosing.at_limit(self, LimitCheck::Iteration, now, out);
                }
            }
            LoopPhase::Ending(_) if self.wraps_up().is_some() => {
                out.effects.push(engine_message(self, summary_request(self)));
            }
            LoopPhase::Ending(outcome) => {
                out.effects.push(Effect::CloseLoop { path: self.path.clone(), outcome: outcome.clone() });
            }
        }
    }

    fn apply<'e>(&mut self, event: &'e Event, owner: OwnerState<'_>) -> Result<Advance<'e>, Reason> {
        match &event.kind {
            EventKind::LoopComplete { change, .. } => {
                if self.path != event.path {
                    return Err("another loop is open".to_owned());
                }
                self.check_results()?;
                Ok(Advance::Done(change.as_ref()))
            }
            _ => self.fold(event, owner).map(|()| Advance::Stay),
        }
    }

    fn doubt(&mut self, crashed: bool, shared: Option<Seq>) {
        if let LoopPhase::Ask { intent, .. } = &mut self.phase {
            intent.doubt();
        }
        for call in self.batch.iter_mut().filter(|call| call.is_in_doubt(shared)) {
            Arc::make_mut(call).doubt(crashed, shared);
        }
    }

    fn postpone(&mut self, by: Duration) {
        postpone(&mut self.due, by);
        self.grants.postpone(by);
        for call in self.batch.iter_mut().filter(|call| call.result().is_none()) {
            match &mut Arc::make_mut(call).phase {
                CallPhase::Pending { expires, .. } => postpone(expires, by),
                CallPhase::Waiting { waits, .. } => postpone_waits(waits, by),
                CallPhase::Brain(inner) => Arc::make_mut(inner).postpone(by),
                CallPhase::Gated | CallPhase::Open(_) | CallPhase::Resumed { .. } | CallPhase::Done(_) => {}
            }
        }
    }

    fn close(&self, why: &str, new_events: &mut Vec<NewEvent>) {
        self.close_calls(why, new_events);
        let complete = EventKind::LoopComplete { outcome: LoopOutcome::Cancelled, usage: self.usage, change: None };
        new_events.push(NewEvent::new(self.path.clone(), complete));
    }

    fn in_flight(&self, requests: fn(Intent) -> bool) -> bool {
        let requests = requests_below(self.grants.asked.is_some(), requests);
        match &self.phase {
            LoopPhase::Ask { intent, .. } => requests(*intent),
            LoopPhase::Batch => self.batch.iter().any(|call| call.in_flight(requests)),
            LoopPhase::Prepare | LoopPhase::Answered | LoopPhase::Ending(_) => false,
        }
    }

    fn is_blocked_by_limit(&self) -> bool {
        match &self.phase {
            LoopPhase::Prepare => true,
            LoopPhase::Ask { intent, .. } => !intent.is_running(),
            LoopPhase::Batch => batch::is_batch_blocked(self),
            LoopPhase::Answered | LoopPhase::Ending(_) => false,
        }
    }

    fn collect_active(&self, waits: bool, active: &mut Vec<Path>) -> bool {
        let waits = waits || self.grants.asked.is_some();
        let mut busy = match &self.phase {
            LoopPhase::Batch => false,
            LoopPhase::Prepare | LoopPhase::Answered => !waits && !self.waits_for_children(),
            LoopPhase::Ask { intent, .. } => !waits || intent.is_running(),
            LoopPhase::Ending(_) => true,
        };
        for call in &self.batch {
            busy |= call.collect_active(waits, active);
        }
        if busy && self.limits.budget.max_time.is_some() {
            active.push(self.path.clone());
        }
        busy
    }

    fn awaits(&self, path: &Path) -> bool {
        match path.last() {
            Some(Segment::Iteration(iteration)) => {
                let waits = match &self.phase {
                    LoopPhase::Prepare => true,
                    LoopPhase::Ask { intent, .. } => intent.is_running(),
                    LoopPhase::Answered | LoopPhase::Batch | LoopPhase::Ending(_) => false,
                };
                iteration == self.iteration && waits
            }
            Some(Segment::Question(iteration, _)) => self.takes_questions(iteration),
            Some(Segment::Call(iteration, index)) if path.is_within(&self.path) => {
                self.call(iteration, index).is_some_and(|call| call.result().is_none())
            }
            _ => false,
        }
    }

    fn is_failing(&self) -> bool {
        matches!(
            &self.phase,
            LoopPhase::Ending(LoopOutcome::Failed { .. } | LoopOutcome::MaxIterations | LoopOutcome::Limit { .. })
        )
    }

    fn questions(&self) -> &[OpenQuestion] {
        &self.asked
    }

    fn child<'a>(
        &'a self,
        segments: &mut Segments<'_>,
        visit: &mut dyn FnMut(OpenFrame<'a>),
    ) -> Option<&'a BrainFrame> {
        visit(OpenFrame::Loop(self));
        let Some(Segment::Call(iteration, index)) = segments.next() else { return None };
        self.call(iteration, index)?.inner()
    }

    fn child_mut(&mut self, segments: &mut Segments<'_>, visit: &mut dyn FnMut(Visit<'_>)) -> Option<&mut BrainFrame> {
        visit(Visit::Loop(self));
        let Some(Segment::Call(iteration, index)) = segments.next() else { return None };
        self.call_mut(iteration, index)?.inner_mut()
    }

    fn visit<'a>(&'a self, _: &'a BrainFrame, visit: &mut Visitor<'_, 'a>) -> ControlFlow<()> {
        visit(OpenFrame::Loop(self))?;
        for call in &self.batch {
            visit(OpenFrame::Call(call))?;
            if let Some(inner) = call.inner() {
                inner.visit_open(visit)?;
            }
        }
        ControlFlow::Continue(())
    }
}

impl LoopFrame {
    /// Ends every open call with a result.
    pub(in crate::machine) fn close_calls(&self, why: &str, new_events: &mut Vec<NewEvent>) {
        for open in self.batch.iter().filter(|call| call.result().is_none()) {
            open.close(why, new_events);
        }
    }

    /// Returns whether a request is under way, or its answer is checked.
    pub(in crate::machine) const fn is_asking(&self) -> bool {
        matches!(self.phase, LoopPhase::Ask { intent: Intent::Running, .. })
    }

    /// Returns whether guards can ask a model about the answer of an iteration, or about one of its calls.
    pub(super) fn takes_questions(&self, iteration: u32) -> bool {
        let is_open = |call: &Arc<Call>| matches!(call.phase, CallPhase::Open(_));
        let checks = self.is_asking() || matches!(self.phase, LoopPhase::Batch) && self.batch.iter().any(is_open);
        iteration == self.iteration && checks
    }

    /// Returns whether the model has answered, and the loop waits for the child runs that its calls have started in the background.
    pub(in crate::machine) fn waits_for_children(&self) -> bool {
        matches!(self.phase, LoopPhase::Answered) && !self.background.is_empty() && self.fault.is_none()
    }
}

/// A limit applies before the next model call: calls of the last answer are executed first, so that an exit
/// tool in the iteration that uses the last token still ends its loop.
fn limits_bind(frame: &LoopFrame) -> Option<LimitCheck> {
    match &frame.phase {
        LoopPhase::Prepare => Some(LimitCheck::Iteration),
        LoopPhase::Ask { attempt: 0, intent } if frame.iteration == 0 && *intent != Intent::Running => {
            Some(LimitCheck::FirstRequest)
        }
        LoopPhase::Ask { intent, .. } => (*intent != Intent::Running).then_some(LimitCheck::Request),
        LoopPhase::Answered => frame.exits.then_some(LimitCheck::Request),
        LoopPhase::Batch | LoopPhase::Ending(_) => None,
    }
}
