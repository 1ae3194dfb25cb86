//! Steps: their tries, their questions to models, and their recorded values.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::frame::{Advance, Frame, Kind, OwnerState, Reason, Visitor};
use crate::machine::effect::{Effect, Next};
use crate::machine::frames::{BrainFrame, Intent, OpenFrame, OpenQuestion, Stage, StepFrame, Values};
use crate::machine::limits::{Enclosing, LimitCheck};
use crate::record::{ContentHash, Event, EventKind, Finish, Path, Question, Segment, Seq, Timestamp, hash_json};

pub(super) struct StepKind;

impl Kind for StepKind {
    fn next(&self, _: &BrainFrame, path: Path, _: Timestamp, _: &Enclosing<'_>, out: &mut Next) {
        out.effects.push(Effect::Step { path, attempt: 0 });
    }

    fn apply<'e>(&self, event: &'e Event, _: &BrainFrame) -> Result<Advance<'e>, Reason> {
        if !matches!(event.kind, EventKind::StepStart { .. } | EventKind::StepRetry { .. }) {
            return Err("the step has not begun".to_owned());
        }
        let (asked, values) = (Vec::new(), Values::new());
        let mut step = StepFrame { attempt: 0, intent: Intent::Ready, asked, values, blocked: false };
        step.fold(event)?;
        Ok(Advance::Begun(Stage::Step(step)))
    }
}

impl Frame for StepFrame {
    fn next<'a>(&'a self, owner: &'a BrainFrame, now: Timestamp, enclosing: &mut Enclosing<'a>, out: &mut Next) {
        if self.blocked && enclosing.exhausted(LimitCheck::Request) {
            out.blocked = true;
        } else if self.blocked && enclosing.asks_for_more(LimitCheck::Request, now, out) {
        } else if self.intent.may_start(now, out)
            && let Some(path) = owner.current_path()
        {
            out.effects.push(Effect::Step { path, attempt: self.intent.next_attempt(self.attempt) });
        }
    }

    fn apply<'e>(&mut self, event: &'e Event, _: OwnerState<'_>) -> Result<Advance<'e>, Reason> {
        match &event.kind {
            EventKind::StepComplete { change, .. } if matches!(event.path.last(), Some(Segment::Stage(_))) => {
                match self.intent {
                    Intent::Running | Intent::Doubtful => Ok(Advance::Done(change.as_ref())),
                    Intent::Ready | Intent::Backoff(_) => Err("the step is not running".to_owned()),
                }
            }
            _ => self.fold(event).map(|()| Advance::Stay),
        }
    }

    fn doubt(&mut self, _: bool, _: Option<Seq>) {
        self.intent.doubt();
    }

    fn postpone(&mut self, _: Duration) {}

    fn in_flight(&self, _: fn(Intent) -> bool) -> bool {
        self.intent.is_busy()
    }

    fn is_blocked_by_limit(&self) -> bool {
        self.blocked
    }

    fn collect_active(&self, waits: bool, _: &mut Vec<Path>) -> bool {
        !(self.blocked && waits)
    }

    fn awaits(&self, path: &Path) -> bool {
        match path.last() {
            Some(Segment::Stage(_)) => self.intent.is_running(),
            Some(Segment::Iteration(_)) => self.intent.is_running() || self.blocked,
            Some(Segment::Call(..) | Segment::Question(..)) | None => false,
        }
    }

    fn questions(&self) -> &[OpenQuestion] {
        &self.asked
    }

    fn visit<'a>(&'a self, owner: &'a BrainFrame, visit: &mut Visitor<'_, 'a>) -> ControlFlow<()> {
        visit(OpenFrame::Step(owner, self))
    }
}

impl StepFrame {
    fn fold(&mut self, event: &Event) -> Result<(), Reason> {
        match event.path.last() {
            Some(Segment::Stage(_)) => self.step_event(&event.kind),
            Some(Segment::Iteration(index)) => {
                if matches!(event.kind, EventKind::LoopModelCall { .. } | EventKind::LoopModelResult { .. }) {
                    self.check_running()?;
                }
                question_event(&mut self.asked, index, &event.kind)
            }
            Some(Segment::Call(..) | Segment::Question(..)) | None => Err("a step has no calls".to_owned()),
        }
    }

    fn step_event(&mut self, kind: &EventKind) -> Result<(), Reason> {
        match kind {
            EventKind::StepStart { attempt } => {
                if self.intent == Intent::Running {
                    return Err("the step is running".to_owned());
                }
                if !self.intent.can_start(self.attempt, *attempt) {
                    return Err(format!("the next try is {}", self.intent.next_attempt(self.attempt)));
                }
                (self.intent, self.attempt, self.blocked) = (Intent::Running, *attempt, false);
            }
            EventKind::StepRetry { attempt, due, .. } => {
                if self.attempt != *attempt {
                    return Err(format!("the step is at try {}", self.attempt));
                }
                self.attempt += 1;
                self.intent = Intent::Backoff(*due);
            }
            EventKind::StepBlocked {} => {
                if self.intent != Intent::Running {
                    return Err("the step is not running".to_owned());
                }
                (self.intent, self.blocked) = (Intent::Ready, true);
            }
            EventKind::ValueRecorded { name, value } => {
                self.check_running()?;
                record_value(&mut self.values, name, value)?;
            }
            EventKind::ChildStart(_) => self.check_running()?,
            _ => return Err("this is a step's path".to_owned()),
        }
        Ok(())
    }

    fn check_running(&self) -> Result<(), Reason> {
        match self.intent {
            Intent::Running => Ok(()),
            // Its parallel questions are paid for, and their answers are used when it reruns.
            Intent::Ready if self.blocked => Ok(()),
            Intent::Ready | Intent::Doubtful | Intent::Backoff(_) => Err("the step is not running".to_owned()),
        }
    }
}

/// Folds an event of the question with this number.
pub(super) fn question_event(asked: &mut Vec<OpenQuestion>, index: u32, kind: &EventKind) -> Result<(), Reason> {
    let index = usize::try_from(index).unwrap_or(usize::MAX);
    match kind {
        EventKind::LoopModelCall { question: Some(question), .. } => {
            let hash = question_hash(question);
            match asked.get(index) {
                // It is sent again, since the answer was lost.
                Some(asked) if asked.answer.is_none() && asked.hash == hash => {}
                None if index == asked.len() => {
                    asked.push(OpenQuestion { hash, answer: None, finish: Finish::default() });
                }
                _ => return Err(format!("the next question is {}", asked.len())),
            }
        }
        EventKind::LoopModelResult { parts, metadata, .. } => {
            asked.get_mut(index).ok_or("no such question is open")?.take(parts, metadata);
        }
        EventKind::LoopModelRetry { .. } | EventKind::LoopAnswerBroken { .. } => {}
        _ => return Err("this is the path of a question".to_owned()),
    }
    Ok(())
}

/// Records a computed value.
pub(super) fn record_value(values: &mut Values, name: &str, value: &Arc<Value>) -> Result<(), Reason> {
    if values.contains_key(name) {
        return Err(format!("the value `{name}` is already recorded"));
    }
    values.insert(name.to_owned(), Arc::clone(value));
    Ok(())
}

/// Hashes a question, so that a rerun of the step finds its answer.
pub(in crate::machine) fn question_hash(question: &Question) -> ContentHash {
    hash_json(&serde_json::to_value(question).unwrap_or_default())
}
