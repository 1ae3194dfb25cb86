//! Groups of brains that run at the same time: all of several, the first of several, or one for each item of a list.
//!
//! Each is a nested brain with the path of its number, `Stage/0.17`. It begins when there is room for one that works: a brain that
//! only waits for input gives its room back, up to `OPEN` brains. One that has ended leaves the frame; its result is in the log.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use super::brain::{nests_too_deep, too_deep};
use super::fork_deadlines::postpone;
use super::frame::{Advance, Frame, Kind, OwnerState, Reason, Segments, Visitor};
use crate::machine::effect::{Effect, Next};
use crate::machine::frames::{BrainEnd, BrainFrame, GroupFrame, Intent, OpenFrame, Stage, Visit, Winner};
use crate::machine::limits::Enclosing;
use crate::machine::{tries, undo};
use crate::record::{
    Actor, EndReason, Event, EventKind, Failure, NewEvent, Path, ResumeCause, Segment, Seq, StageKind, Timestamp,
    UndoCause,
};

/// The maximum number of open brains of a group, unless its limit is higher.
const OPEN: u32 = 256;

pub(super) struct GroupKind;

impl Kind for GroupKind {
    fn next(&self, owner: &BrainFrame, path: Path, _: Timestamp, _: &Enclosing<'_>, out: &mut Next) {
        let first = path.call(0, 0);
        if nests_too_deep(&first) {
            owner.fail(Failure { code: EndReason::Brain, message: too_deep(&first), retryable: false }, out);
        } else {
            out.effects.push(Effect::BeginGroup { path });
        }
    }

    fn apply<'e>(&self, event: &'e Event, owner: &BrainFrame) -> Result<Advance<'e>, Reason> {
        let EventKind::GroupStart { brains, options, limit, due } = &event.kind else {
            return Err("the group has not begun".to_owned());
        };
        let stage = owner.current().ok_or("the brain has no further stage")?;
        Ok(Advance::Begun(Stage::Group(Arc::new(GroupFrame {
            path: event.path.clone(),
            since: event.seq,
            began: event.at,
            count: u32::try_from(options.len()).map_err(|_| "it has too many brains")?,
            limit: (*limit).max(1),
            race: stage.kind == StageKind::Race,
            brains: brains.clone().into(),
            due: *due,
            timeout: stage.timeout,
            next: 0,
            open: BTreeMap::new(),
            done: 0,
            failed: 0,
            winner: None,
            failure: None,
        }))))
    }
}

impl GroupFrame {
    /// Folds the end of the brain with this number.
    pub(in crate::machine) fn ended(&mut self, index: u32) {
        let is_tried_again = |brain: &Arc<BrainFrame>| brain.again.is_some() && brain.end.is_some();
        if !self.has_outcome() && self.open.get(&index).is_some_and(is_tried_again) {
            return;
        }
        let Some(brain) = self.open.remove(&index).map(Arc::unwrap_or_clone) else { return };
        match brain.end {
            Some(BrainEnd::Completed(_)) => {
                self.done += 1;
                if self.race && self.winner.is_none() {
                    self.winner = Some(Winner::Brain(index));
                }
            }
            Some(BrainEnd::Failed(failure)) => {
                self.failed += 1;
                let is_last = self.race && self.failed == self.count && self.due.is_none();
                if (is_last || !self.tolerates(index)) && !self.has_outcome() {
                    let message = format!("the brain `{}` failed: {}", brain.path, failure.message);
                    self.failure = Some(Failure { code: EndReason::Brain, message, retryable: failure.retryable });
                }
            }
            Some(BrainEnd::Cancelled) | None => {}
        }
        self.drop_further_tries();
    }

    /// Drops the brains that would be tried again, once nothing more begins.
    fn drop_further_tries(&mut self) {
        if self.has_outcome() {
            self.open.retain(|_, brain| brain.end.is_none());
        }
    }

    /// Adds what a group needs that is decided: the ends of its open brains, then its own.
    fn end<'a>(&'a self, owner: &'a BrainFrame, now: Timestamp, enclosing: &mut Enclosing<'a>, out: &mut Next) {
        let mut new_events = Vec::new();
        match (&self.failure, self.winner) {
            (Some(failure), _) => {
                self.close(&failure.message, &mut new_events);
                new_events.push(undo::failed(owner, failure.clone()));
            }
            (None, Some(Winner::Brain(index))) => {
                self.lose(&format!("`{}` completed first", self.path.call(0, index)), &mut new_events);
            }
            (None, _) => self.lose("the time of the race was over", &mut new_events),
        }
        match new_events.is_empty() {
            false => out.effects.push(Effect::Append(new_events)),
            true if self.open.is_empty() => out.effects.push(Effect::FinishGroup { path: self.path.clone() }),
            // The losers undo what they have done.
            true => _ = self.open_effects(now, enclosing, out),
        }
    }

    /// Adds the events that end the open brains, which have lost, or begin to undo what they have done.
    fn lose(&self, why: &str, new_events: &mut Vec<NewEvent>) {
        for brain in self.open.values().filter(|brain| brain.undoing.is_none()) {
            brain.close_stage(why, new_events);
            let (signal, actor, reason) = (None, Actor::default(), Some(why.to_owned()));
            new_events.push(undo::ended(brain, UndoCause::Cancelled { signal, actor, reason }));
        }
    }

    /// Adds the effects of the open brains: those that work go on, and others take the remaining room, in order. Returns how many
    /// more may begin.
    fn open_effects<'a>(&'a self, now: Timestamp, enclosing: &mut Enclosing<'a>, out: &mut Next) -> u32 {
        let works: Vec<bool> = self.open.values().map(|brain| brain.in_flight(Intent::is_busy)).collect();
        let working = works.iter().filter(|works| **works).count();
        let mut room = self.limit.saturating_sub(u32::try_from(working).unwrap_or(u32::MAX));
        let brains = self.open.iter().zip(works).filter(|((_, brain), _)| enclosing.leads_to(&brain.path));
        for ((index, brain), works) in brains.collect::<Vec<_>>() {
            if brain.end.is_some() {
                if !tries::waits_for_try(brain, now, out) {
                    let path = self.path.call(brain.attempt.saturating_add(1), *index);
                    out.effects.push(Effect::StartBrain { path });
                }
                continue;
            }
            let mut next = Next::default();
            brain.effects(now, enclosing, &mut next);
            out.blocked |= next.blocked;
            if let Some(wake) = next.wake {
                out.wake_at(wake);
            }
            if next.effects.is_empty() && !next.blocked {
                continue;
            }
            if !works && tries::overdue(brain, now).is_none() {
                if room == 0 {
                    continue;
                }
                room -= 1;
            }
            // Several brains ask for more of one limit.
            next.effects.retain(|effect| {
                asked(effect).is_none_or(|asks| !out.effects.iter().any(|one| asked(one) == Some(asks)))
            });
            out.effects.extend(next.effects);
        }
        let open = u32::try_from(self.open.len()).unwrap_or(u32::MAX);
        room.min(OPEN.max(self.limit).saturating_sub(open))
    }
}

/// Returns whose limit an effect asks a person about: the path, and whether it is the conversation's.
fn asked(effect: &Effect) -> Option<(&Path, bool)> {
    let Effect::Append(new_events) = effect else { return None };
    match new_events.as_slice() {
        [NewEvent { path, kind: EventKind::BudgetRequested(request), .. }] => Some((path, request.shared)),
        [NewEvent { path, kind: EventKind::BudgetExpired {}, .. }] => Some((path, false)),
        _ => None,
    }
}

impl Frame for GroupFrame {
    fn next<'a>(&'a self, owner: &'a BrainFrame, now: Timestamp, enclosing: &mut Enclosing<'a>, out: &mut Next) {
        let is_over = self.next == self.count && self.open.is_empty() && self.due.is_none();
        if self.has_outcome() || is_over {
            return self.end(owner, now, enclosing, out);
        }
        match self.due {
            Some(due) if due <= now => {
                let over = EventKind::StageResume {
                    cause: ResumeCause::Expired,
                    wait: 0,
                    payload: serde_json::Value::Null,
                    received: None,
                    signal: None,
                    actor: Actor::default(),
                };
                out.effects.push(Effect::Append(vec![NewEvent::new(self.path.clone(), over)]));
                return;
            }
            Some(due) => out.wake_at(due),
            None => {}
        }
        let room = self.open_effects(now, enclosing, out);
        let last = self.next.saturating_add(room).min(self.count);
        out.effects.extend((self.next..last).map(|index| Effect::StartBrain { path: self.path.call(0, index) }));
    }

    fn apply<'e>(&mut self, event: &'e Event, _: OwnerState<'_>) -> Result<Advance<'e>, Reason> {
        match (&event.kind, event.path.last()) {
            (EventKind::StepRetry { attempt, due, .. }, Some(Segment::Call(_, index))) => {
                let brain = self.open.get_mut(&index).ok_or("the brain is not open")?;
                tries::note_retry(Arc::make_mut(brain), &event.path, *attempt, *due).map(|()| Advance::Stay)
            }
            (EventKind::BrainStart(start), Some(Segment::Call(attempt @ 1.., index))) => {
                let is_next = |brain: &&mut Arc<BrainFrame>| {
                    brain.end.is_some() && brain.again.is_some() && brain.attempt.saturating_add(1) == attempt
                };
                let before = self.open.get_mut(&index).filter(is_next).ok_or("the brain is not tried again")?;
                *before = Arc::new(tries::begun_again(before, event, start));
                Ok(Advance::Stay)
            }
            (EventKind::BrainStart(start), Some(Segment::Call(0, index))) => {
                if index != self.next || index >= self.count || self.has_outcome() {
                    return Err(format!("the next brain is {} of {}", self.next, self.count));
                }
                self.next += 1;
                self.open.insert(index, Arc::new(tries::tried(BrainFrame::begun(event, start), 0, self.timeout)));
                Ok(Advance::Stay)
            }
            (EventKind::StageResume { cause: ResumeCause::Expired, .. }, Some(Segment::Stage(_))) => {
                if self.due.is_none() || self.has_outcome() {
                    return Err("the race has no end".to_owned());
                }
                self.winner = Some(Winner::Expired);
                self.drop_further_tries();
                Ok(Advance::Stay)
            }
            (EventKind::StepComplete { change, .. }, Some(Segment::Stage(_))) => {
                if !self.open.is_empty() || !(self.has_outcome() || self.next == self.count) {
                    return Err("not all of its brains have ended".to_owned());
                }
                Ok(Advance::Done(change.as_ref()))
            }
            _ => Err("the stage is a group of brains".to_owned()),
        }
    }

    fn doubt(&mut self, crashed: bool, shared: Option<Seq>) {
        for brain in self.open.values_mut() {
            Arc::make_mut(brain).doubt(crashed, shared);
        }
    }

    fn postpone(&mut self, by: Duration) {
        postpone(&mut self.due, by);
        for brain in self.open.values_mut() {
            Arc::make_mut(brain).postpone(by);
        }
    }

    fn close(&self, why: &str, new_events: &mut Vec<NewEvent>) {
        for brain in self.open.values() {
            brain.close(why, new_events);
        }
    }

    fn in_flight(&self, requests: fn(Intent) -> bool) -> bool {
        self.open.values().any(|brain| brain.in_flight(requests))
    }

    fn is_blocked_by_limit(&self) -> bool {
        let blocked = |brain: &Arc<BrainFrame>| brain.is_blocked_by_limit();
        self.open.values().any(blocked) && !self.in_flight(Intent::is_running)
    }

    fn collect_active(&self, waits: bool, active: &mut Vec<Path>) -> bool {
        // Without an open brain, a race waits for its time.
        let waits_for_time = self.due.is_some() && self.next == self.count;
        let mut busy = self.has_outcome() || (self.open.is_empty() && !waits_for_time);
        for brain in self.open.values() {
            busy |= brain.collect_active(waits, active);
        }
        busy
    }

    fn awaits(&self, _: &Path) -> bool {
        false
    }

    fn is_failing(&self) -> bool {
        // Of a race, the last one that could win.
        let is_last = self.race && self.due.is_none() && self.failed + 1 == self.count;
        let fails =
            |(index, brain): (&u32, &Arc<BrainFrame>)| (is_last || !self.tolerates(*index)) && brain.is_failing();
        self.failure.is_some() || self.open.iter().any(fails)
    }

    fn child<'a>(&'a self, segments: &mut Segments<'_>, _: &mut dyn FnMut(OpenFrame<'a>)) -> Option<&'a BrainFrame> {
        let Some(Segment::Call(attempt, index)) = segments.next() else { return None };
        self.open.get(&index).filter(|brain| brain.attempt == attempt).map(|brain| &**brain)
    }

    fn child_mut(&mut self, segments: &mut Segments<'_>, _: &mut dyn FnMut(Visit<'_>)) -> Option<&mut BrainFrame> {
        let Some(Segment::Call(attempt, index)) = segments.next() else { return None };
        self.open.get_mut(&index).filter(|brain| brain.attempt == attempt).map(Arc::make_mut)
    }

    fn visit<'a>(&'a self, _: &'a BrainFrame, visit: &mut Visitor<'_, 'a>) -> ControlFlow<()> {
        visit(OpenFrame::Group(self))?;
        for brain in self.open.values() {
            brain.visit_open(visit)?;
        }
        ControlFlow::Continue(())
    }
}
