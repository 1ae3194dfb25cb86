//! The frames of a run, and the way to them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::record::{
    Budget, Claim, ClaimRefusal, ContentHash, Failure, Finish, Part, Path, PluginStates, ResponseMetadata, Segment,
    Seq, Shape, SignalId, StageKind, StageShape, Start, Timestamp, Usage, parent_of, segments_of,
};

use super::call::{Call, CallPhase};
use super::limits::{Grants, Spending, is_default};
use super::loop_frame::LoopFrame;
use super::shared_budget::SharedLimits;

/// How many signals a state knows: whoever sends one asks the store for those before.
pub const KNOWN_SIGNALS: usize = 256;

/// Everything a run's log says about now. It is the fold of the log's events and never the only copy of anything.
///
/// A clone shares its frames, and a fold copies only those that its event changes: whoever wants to append folds into a
/// clone first, and the state in use is never ahead of the log.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RunState {
    /// The number that the next event gets.
    pub next: Seq,
    /// When the last event was appended.
    pub at: Timestamp,
    /// The last attachment of a worker.
    pub claim: Option<Claim>,
    /// How the run was started.
    pub start: Start,
    /// The event that paused the run, while it is paused.
    pub paused: Option<Seq>,
    /// The brain that the run runs; none before its first `BRAIN_START`.
    pub root: Option<Arc<BrainFrame>>,
    /// The signals that were accepted last, [`KNOWN_SIGNALS`] at most, with the event that says so. The store knows them
    /// all.
    pub signals: Arc<BTreeMap<SignalId, Seq>>,
    /// The time that passed before signals since the worker's last event, in microseconds, for each loop that was active
    /// then and has a limit of time; it counts once the worker shows that it was alive.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsure: Vec<(Path, u64)>,
    /// How often in a row the worker's process ended before it recorded any outcome.
    #[serde(default, skip_serializing_if = "is_default")]
    pub crashes: u32,
    /// Why no worker claims the run, since the event that says so; none once one has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Arc<NotClaimed>>,
    /// The currency of the run's first known cost, or that of its conversation's limit of money; a cost in another one counts as
    /// unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<Arc<str>>,
}

/// A run with work that no worker could claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotClaimed {
    /// The event that says so.
    pub since: Seq,
    /// Why.
    pub reason: ClaimRefusal,
    /// The reason for people.
    pub message: String,
}

/// A brain that has begun.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BrainFrame {
    /// Its path: empty for the root, else that of the stage or the call that runs it.
    pub path: Path,
    /// Its title.
    pub title: Arc<str>,
    /// The author's version of it.
    pub version: u32,
    /// The hash of what makes it the same brain.
    pub fingerprint: ContentHash,
    /// Its stages.
    pub stages: Arc<Shape>,
    /// Its options.
    pub options: Arc<Value>,
    /// Its state, a canonical document.
    pub state: Arc<Value>,
    /// The event that changed the state last.
    pub changed: Seq,
    /// What its plugins keep.
    #[serde(default, skip_serializing_if = "PluginStates::is_empty")]
    pub plugins: PluginStates,
    /// Which of the stages is the current one; the number of stages once all are done.
    pub index: usize,
    /// The current stage.
    pub stage: Stage,
    /// The tokens of this brain and all below it.
    pub usage: Usage,
    /// What the brain and all below it may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Arc<Budget>>,
    /// What the prompts of the conversation may use together, where this is the run's brain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<Arc<SharedLimits>>,
    /// What people have said about the budget.
    #[serde(default, skip_serializing_if = "is_default")]
    pub grants: Grants,
    /// What the answers of models have cost, here and below.
    #[serde(default, skip_serializing_if = "is_default")]
    pub spent: Spending,
    /// How many iterations have begun, here and below.
    #[serde(default, skip_serializing_if = "is_default")]
    pub iterations: u64,
    /// The active time, in microseconds. Counted only where it is limited.
    #[serde(default, skip_serializing_if = "is_default")]
    pub active: u64,
    /// When it began.
    pub began: Timestamp,
    /// How it ended.
    pub end: Option<BrainEnd>,
}

/// How a brain ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum BrainEnd {
    /// Well, with what its callers get.
    Completed(Value),
    /// In failure.
    Failed(Failure),
    /// It was cancelled.
    Cancelled,
}

/// The current stage of a brain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Stage {
    /// It has not begun.
    Ready,
    /// A step that has begun.
    Step(StepFrame),
    /// A loop that has begun.
    Loop(Arc<LoopFrame>),
    /// A nested brain that has begun.
    Brain(Arc<BrainFrame>),
    /// It ended in a way that fails the brain.
    Failed(Failure),
}

/// Where an effect stands that is recorded before it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Intent {
    /// It has not started.
    Ready,
    /// It is in flight.
    Running,
    /// It was in flight when its worker went away.
    Doubtful,
    /// It failed and starts again at this time.
    Backoff(Timestamp),
}

impl Intent {
    /// Returns the attempt that starts next: what was interrupted starts as a new one.
    pub(super) const fn next_attempt(self, attempt: u32) -> u32 {
        if matches!(self, Self::Doubtful) { attempt.saturating_add(1) } else { attempt }
    }

    /// Says whether an attempt with this number can start. Logs of 0.1 start what was interrupted under its old number.
    pub(super) fn can_start(self, attempt: u32, this: u32) -> bool {
        self != Self::Running && (this == attempt || this == self.next_attempt(attempt))
    }
}

/// A step that has begun.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepFrame {
    /// The try, from 0.
    pub attempt: u32,
    /// Where it stands.
    pub intent: Intent,
    /// The questions it asked models.
    pub asked: Vec<Asked>,
    /// The values that it computed once.
    pub values: Values,
    /// Whether it has asked a model that a limit did not allow, and has not run since.
    #[serde(default, skip_serializing_if = "is_default")]
    pub held: bool,
}

/// The values that a step or a call computed once, by the author's names for them.
pub type Values = BTreeMap<String, Arc<Value>>;

/// A question that a step, or a plugin in `prepare`, asked a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    /// The hash of the question.
    pub hash: ContentHash,
    /// The answer's parts, once there is one.
    pub answer: Option<Arc<[Part]>>,
    /// Why the model stopped.
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
    /// Returns the shape of the current stage, none once all are done.
    #[must_use]
    pub fn current(&self) -> Option<&StageShape> {
        self.stages.0.get(self.index)
    }

    /// Returns the path of the current stage.
    #[must_use]
    pub fn current_path(&self) -> Option<Path> {
        self.current().map(|stage| self.path.stage(&stage.name))
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

    /// Finds the brain with this path, and shows `visit` every frame on the way, from the outside in.
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

    /// Finds the brain whose stage, iteration or call this path names.
    #[must_use]
    pub fn owner(&self, path: &Path) -> Option<&BrainFrame> {
        self.brain_of(owner_of(path)?)
    }

    /// Finds the open loop with this path, or around this iteration or call.
    #[must_use]
    pub fn loop_at(&self, path: &Path) -> Option<&LoopFrame> {
        match &self.owner(path)?.stage {
            Stage::Loop(frame) if path.is_within(&frame.path) => Some(frame),
            _ => None,
        }
    }

    /// Finds the call with this path, while its batch is open.
    #[must_use]
    pub fn call(&self, path: &Path) -> Option<&Call> {
        let Some(Segment::Call(iteration, index)) = path.last() else { return None };
        self.loop_at(path)?.call(iteration, index)
    }

    /// Returns the value that the step or the call at this path has computed once under a name.
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

    /// Says whether the run has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.root.as_ref().is_some_and(|root| root.end.is_some())
    }
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
