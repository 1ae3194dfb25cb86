//! The frames of a run, and access to them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::record::{
    Budget, Claim, ClaimRefusal, ContentHash, Failure, Finish, Part, Path, PluginStates, ResponseMetadata, Segment,
    Seq, Shape, SignalId, StageKind, StageShape, Start, Timestamp, Usage, parent_of, segments_of,
};

use super::active_frame::ActiveFrame;
use super::call::{Call, CallPhase};
use super::crashed_work::CrashedWork;
use super::grants::{Grants, SharedLimits, Spending};
use super::loop_frame::LoopFrame;
use crate::record::skip::is_default;

/// The number of signals in the state; the store knows earlier ones.
pub const KNOWN_SIGNALS: usize = 256;

/// The current state of a run. It is the fold of the log's events and never the only copy of anything.
///
/// Clones share their frames, and a fold copies only those that its event changes: to append, fold into a
/// clone first, so that the state in use is never ahead of the log.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RunState {
    /// The number of the next event.
    pub next: Seq,
    /// When the last event was appended.
    pub at: Timestamp,
    /// The last claim of a worker.
    pub claim: Option<Claim>,
    /// How the run was started.
    pub start: Start,
    /// The event that paused the run, while it is paused.
    pub paused: Option<Seq>,
    /// The run's brain; `None` before its first `BRAIN_START`.
    pub root: Option<Arc<BrainFrame>>,
    /// The latest accepted signals, up to [`KNOWN_SIGNALS`], with the accepting event. The store knows
    /// all.
    pub signals: Arc<BTreeMap<SignalId, Seq>>,
    /// The time of the worker's last event on its own clock. Active time is the time between two of its events.
    #[serde(default)]
    pub worker_at: Timestamp,
    /// The loops and brains with a time limit that were active before the first signal since the worker's last event;
    /// `None` without a signal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_worker: Option<Vec<ActiveFrame>>,
    /// The work during which the process ended, without an outcome since.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub crashed: Vec<CrashedWork>,
    /// Whether a worker has claimed the run and has recorded nothing since. It restores the run, which calls the author's code.
    #[serde(default, skip_serializing_if = "is_default")]
    pub restoring: bool,
    /// The failure for which the engine parked the run: it is paused until a person retries it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parked: Option<Arc<Failure>>,
    /// Why no worker can claim the run, since the recorded event; `None` once one has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Arc<NotClaimed>>,
    /// The currency of the run's first known cost, or of its conversation's money limit; a cost in another one counts as
    /// unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<Arc<str>>,
    /// The latest answers that are older than their questions.
    #[serde(default, skip_serializing_if = "is_default")]
    pub older_answers: Arc<Vec<OlderAnswer>>,
}

/// How many [`OlderAnswer`]s the state has; the log has all.
const KNOWN_OLDER_ANSWERS: usize = 8;

/// An answer that was received before its call waited for it: a late one, perhaps, to a question that was asked before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OlderAnswer {
    /// The call.
    pub call: Path,
    /// Its tool.
    pub tool: String,
    /// When the answer was received.
    pub received: Timestamp,
    /// The event that gave it to the call.
    pub seq: Seq,
}

impl RunState {
    /// Remembers an answer that is older than its question.
    pub(super) fn note_older_answer(&mut self, call: &Path, received: Timestamp, seq: Seq) {
        let tool = self.call(call).map(|call| call.tool.clone()).unwrap_or_default();
        let answers = Arc::make_mut(&mut self.older_answers);
        if answers.len() >= KNOWN_OLDER_ANSWERS {
            answers.remove(0);
        }
        answers.push(OlderAnswer { call: call.clone(), tool, received, seq });
    }
}

/// A run with work that no worker could claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotClaimed {
    /// The recorded event.
    pub since: Seq,
    /// The reason.
    pub reason: ClaimRefusal,
    /// The reason for people.
    pub message: String,
}

/// A brain that has begun.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BrainFrame {
    /// Its path: empty for the root, else that of its stage or call.
    pub path: Path,
    /// Its title.
    pub title: Arc<str>,
    /// The version set by its author.
    pub version: u32,
    /// The hash that identifies its version.
    pub fingerprint: ContentHash,
    /// Its stages.
    pub stages: Arc<Shape>,
    /// Its options.
    pub options: Arc<Value>,
    /// Its state, a canonical document.
    pub state: Arc<Value>,
    /// The event that last changed the state.
    pub changed: Seq,
    /// The states of its plugins.
    #[serde(default, skip_serializing_if = "PluginStates::is_empty")]
    pub plugins: PluginStates,
    /// The index of the current stage; the number of stages when all are done.
    pub index: usize,
    /// The current stage.
    pub stage: Stage,
    /// The tokens of this brain and everything below it.
    pub usage: Usage,
    /// The budget of the brain and everything below it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Arc<Budget>>,
    /// The conversation's budget, if this is the run's brain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<Arc<SharedLimits>>,
    /// The decisions on the budget.
    #[serde(default, skip_serializing_if = "is_default")]
    pub grants: Grants,
    /// The cost of model answers, here and below.
    #[serde(default, skip_serializing_if = "is_default")]
    pub spent: Spending,
    /// How many iterations have begun, here and below.
    #[serde(default, skip_serializing_if = "is_default")]
    pub iterations: u64,
    /// The active time, in microseconds. Only counted if it is limited.
    #[serde(default, skip_serializing_if = "is_default")]
    pub active: u64,
    /// When it began.
    pub began: Timestamp,
    /// Its end, if it has ended.
    pub end: Option<BrainEnd>,
}

/// The end of a brain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum BrainEnd {
    /// It completed, with the result for its callers.
    Completed(Value),
    /// It failed.
    Failed(Failure),
    /// It was cancelled.
    Cancelled,
}

/// The current stage of a brain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Stage {
    /// A stage that has not begun.
    Ready,
    /// A step that has begun.
    Step(StepFrame),
    /// A loop that has begun.
    Loop(Arc<LoopFrame>),
    /// A nested brain that has begun.
    Brain(Arc<BrainFrame>),
    /// A stage whose failure fails the brain.
    Failed(Failure),
}

/// The state of an effect that is recorded before it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Intent {
    /// It has not started.
    Ready,
    /// It is in flight.
    Running,
    /// It was in flight when its worker ended.
    Doubtful,
    /// It failed and is retried at this time.
    Backoff(Timestamp),
}

impl Intent {
    /// Returns the number of the next attempt: an interrupted one restarts with a new number.
    pub(super) const fn next_attempt(self, attempt: u32) -> u32 {
        if matches!(self, Self::Doubtful) { attempt.saturating_add(1) } else { attempt }
    }

    /// Returns whether an attempt with this number can start. Logs of 0.1 restart an interrupted one with its old number.
    pub(super) fn can_start(self, attempt: u32, this: u32) -> bool {
        self != Self::Running && (this == attempt || this == self.next_attempt(attempt))
    }
}

/// A step that has begun.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepFrame {
    /// The try, from 0.
    pub attempt: u32,
    /// Its state.
    pub intent: Intent,
    /// Its questions to models.
    pub asked: Vec<Asked>,
    /// Its recorded values.
    pub values: Values,
    /// Whether it asked a model beyond a limit, and has not rerun since.
    #[serde(default, skip_serializing_if = "is_default")]
    pub held: bool,
}

/// The recorded values of a step or a call, by the author's names.
pub type Values = BTreeMap<String, Arc<Value>>;

/// A question of a step, or of a plugin in `prepare`, to a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    /// The hash of the question.
    pub hash: ContentHash,
    /// The parts of the answer, if there is one.
    pub answer: Option<Arc<[Part]>>,
    /// The finish reason.
    #[serde(default, skip_serializing_if = "is_default")]
    pub finish: Finish,
}

impl Asked {
    pub(super) fn take(&mut self, parts: &Arc<[Part]>, metadata: &ResponseMetadata) {
        self.answer = Some(Arc::clone(parts));
        self.finish.clone_from(&metadata.finish);
    }
}

impl BrainFrame {
    /// Returns the shape of the current stage, `None` when all are done.
    #[must_use]
    pub fn current(&self) -> Option<&StageShape> {
        self.stages.0.get(self.index)
    }

    /// Returns the path of the current stage.
    #[must_use]
    pub fn current_path(&self) -> Option<Path> {
        self.current().map(|stage| self.path.stage(&stage.name))
    }

    /// Calls `visit` for the brain and everything open below it, in the order of their paths, until it returns a value.
    pub(super) fn find_open<'a, T>(&'a self, visit: &mut impl FnMut(Open<'a>) -> Option<T>) -> Option<T> {
        visit(Open::Brain(self)).or_else(|| match &self.stage {
            Stage::Brain(inner) => inner.find_open(visit),
            Stage::Loop(frame) => visit(Open::Loop(frame)).or_else(|| {
                let mut calls = frame.batch.iter();
                calls.find_map(|call| visit(Open::Call(call)).or_else(|| call.inner()?.find_open(visit)))
            }),
            Stage::Ready | Stage::Step(_) | Stage::Failed(_) => None,
        })
    }

    pub(super) fn is_at(&self, name: &str, kind: StageKind) -> bool {
        self.end.is_none() && self.current().is_some_and(|stage| stage.name == name && stage.kind == kind)
    }
}

impl RunState {
    /// Finds the brain with this path.
    #[must_use]
    pub fn brain(&self, path: &Path) -> Option<&BrainFrame> {
        self.brain_of(path.as_str())
    }

    fn brain_of(&self, path: &str) -> Option<&BrainFrame> {
        let mut brain = self.root.as_deref()?;
        let mut segments = segments_of(path);
        while let Some(segment) = segments.next() {
            let Segment::Stage(name) = segment else { return None };
            if brain.current().is_none_or(|stage| stage.name != name) {
                return None;
            }
            brain = match &brain.stage {
                Stage::Brain(inner) => inner,
                Stage::Loop(frame) => {
                    let Some(Segment::Call(iteration, index)) = segments.next() else { return None };
                    match &frame.call(iteration, index)?.phase {
                        CallPhase::Brain(inner) => inner,
                        _ => return None,
                    }
                }
                Stage::Ready | Stage::Step(_) | Stage::Failed(_) => return None,
            };
        }
        Some(brain)
    }

    /// Finds the brain with this path, and calls `visit` for every frame on the way, from the outside in.
    pub(super) fn brain_mut(&mut self, path: &str, mut visit: impl FnMut(Visit<'_>)) -> Option<&mut BrainFrame> {
        let mut brain = Arc::make_mut(self.root.as_mut()?);
        visit(Visit::Brain(brain));
        let mut segments = segments_of(path);
        while let Some(segment) = segments.next() {
            let Segment::Stage(name) = segment else { return None };
            if brain.current().is_none_or(|stage| stage.name != name) {
                return None;
            }
            brain = match &mut brain.stage {
                Stage::Brain(inner) => Arc::make_mut(inner),
                Stage::Loop(frame) => {
                    let frame = Arc::make_mut(frame);
                    visit(Visit::Loop(frame));
                    let Some(Segment::Call(iteration, index)) = segments.next() else { return None };
                    match &mut frame.call_mut(iteration, index)?.phase {
                        CallPhase::Brain(inner) => Arc::make_mut(inner),
                        _ => return None,
                    }
                }
                Stage::Ready | Stage::Step(_) | Stage::Failed(_) => return None,
            };
            visit(Visit::Brain(brain));
        }
        Some(brain)
    }

    /// Finds the brain that contains the stage, iteration or call with this path.
    #[must_use]
    pub fn owner(&self, path: &Path) -> Option<&BrainFrame> {
        self.brain_of(owner_of(path)?)
    }

    /// Finds the open loop with this path, or around the iteration or call with this path.
    #[must_use]
    pub fn loop_at(&self, path: &Path) -> Option<&LoopFrame> {
        match &self.owner(path)?.stage {
            Stage::Loop(frame) if path.is_within(&frame.path) => Some(frame),
            _ => None,
        }
    }

    /// Finds the call with this path in an open batch.
    #[must_use]
    pub fn call(&self, path: &Path) -> Option<&Call> {
        let Some(Segment::Call(iteration, index)) = path.last() else { return None };
        self.loop_at(path)?.call(iteration, index)
    }

    /// Returns the recorded value of the step or call at this path.
    #[must_use]
    pub fn value(&self, path: &Path, name: &str) -> Option<Arc<Value>> {
        let values = match path.last()? {
            Segment::Call(..) => &self.call(path)?.values,
            Segment::Stage(_) | Segment::Iteration(_) => match &self.owner(path)?.stage {
                Stage::Step(step) => &step.values,
                _ => return None,
            },
        };
        values.get(name).cloned()
    }

    /// Returns whether the run has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.root.as_ref().is_some_and(|root| root.end.is_some())
    }

    /// Returns the result of a run that has completed.
    #[must_use]
    pub fn result(&self) -> Option<&Value> {
        match self.root.as_ref()?.end.as_ref()? {
            BrainEnd::Completed(result) => Some(result),
            BrainEnd::Failed(_) | BrainEnd::Cancelled => None,
        }
    }
}

/// A brain, the loop of its current stage, or a call of that loop's batch.
#[derive(Clone, Copy)]
pub(super) enum Open<'a> {
    Brain(&'a BrainFrame),
    Loop(&'a LoopFrame),
    Call(&'a Call),
}

pub(super) enum Visit<'a> {
    Brain(&'a mut BrainFrame),
    Loop(&'a mut LoopFrame),
}

/// Returns the path of the brain around a stage, an iteration or a call, as text.
pub(super) fn owner_of(path: &Path) -> Option<&str> {
    let around = parent_of(path.as_str())?;
    match path.last()? {
        Segment::Stage(_) => Some(around),
        Segment::Iteration(_) | Segment::Call(..) => parent_of(around),
    }
}
