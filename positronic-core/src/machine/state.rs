//! The frames of a run, and the way to them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::record::{
    Budget, CallFlags, CallState, Claim, ContentHash, ContextItem, Failure, Gate, Limits, LoopOutcome, ModelRequest,
    Part, Path, PluginStates, Segment, Seq, Settings, Shape, SignalId, StageKind, StageShape, Start, Timestamp,
    ToolResult, ToolSet, Transcript, Usage, WaitSpec, parent_of, segments_of,
};

use super::known::Known;
use super::limits::{Allowance, Spending, is_default};

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
    /// The signals that were accepted, with the event that says so.
    pub signals: Arc<BTreeMap<SignalId, Seq>>,
    /// The time that passed before signals since the worker's last event, in microseconds, for each loop that was active
    /// then and has a limit of time; it counts once the worker shows that it was alive.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsure: Vec<(Path, u64)>,
    /// The currency of the run's first known cost; a cost in another one counts as unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<Arc<str>>,
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
    /// What people have said about the budget.
    #[serde(default, skip_serializing_if = "is_default")]
    pub allowance: Allowance,
    /// What the answers of models have cost, here and below.
    #[serde(default, skip_serializing_if = "is_default")]
    pub spent: Spending,
    /// How many rounds have begun, here and below.
    #[serde(default, skip_serializing_if = "is_default")]
    pub rounds: u64,
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
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// An answer that was refused, since it is no decision that fits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Refused {
    /// Its parts.
    pub parts: Arc<[Part]>,
    /// What is wrong with it.
    pub message: String,
}

/// A loop that has begun.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoopFrame {
    /// Its path.
    pub path: Path,
    /// The current round, from 0.
    pub round: u32,
    /// Where the round stands.
    pub phase: LoopPhase,
    /// The limits.
    pub limits: Limits,
    /// What people have said about the limits.
    #[serde(default, skip_serializing_if = "is_default")]
    pub allowance: Allowance,
    /// What the answers of models have cost, here and below.
    #[serde(default, skip_serializing_if = "is_default")]
    pub spent: Spending,
    /// The brain whose budget ended the loop, where it was not a limit of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<Path>,
    /// Whether an exit tool is among the tools.
    pub exits: bool,
    /// What the current round sends to the model.
    pub prepared: Prepared,
    /// The state that the current round's configuration saw: after a restart it runs again on it.
    pub seen: Arc<Value>,
    /// What the plugins kept when the current round was prepared, for the same reason.
    #[serde(default, skip_serializing_if = "PluginStates::is_empty")]
    pub seen_plugins: PluginStates,
    /// The questions that plugins have asked a model while they prepare the next round.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<Asked>,
    /// The answers to the round's request that were refused, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<Refused>,
    /// The tokens of this loop and all below it.
    pub usage: Usage,
    /// The active time, in microseconds: while a worker that was alive had the run in hand. Counted only where it is
    /// limited.
    pub active: u64,
    /// The calls of the current batch, in order.
    pub batch: Vec<Arc<Call>>,
    /// How many calls the batch has.
    pub expected: u32,
    /// Whether a message came that the model has not read.
    pub unread: bool,
    /// How many calls have failed since one did its work.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failures: u32,
    /// Whether the round at which a limit was reached had begun.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// The round in which the model sums up, and how the loop ends after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wrap_up: Option<(u32, LoopOutcome)>,
    /// Rejected calls, as hashes of tool and arguments.
    pub denials: Arc<BTreeSet<ContentHash>>,
    known: Arc<Known>,
}

/// Where a round of a loop stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum LoopPhase {
    /// The configuration closure and the plugins have to run.
    Prepare,
    /// The model has to answer.
    Ask {
        /// The try, from 0.
        attempt: u32,
        /// Where the request stands.
        intent: Intent,
    },
    /// The model answered without a call.
    Answered,
    /// The calls have to get their results.
    Batch,
    /// The loop has to be closed.
    Ending(LoopOutcome),
}

/// What one round sends to the model beside the messages.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Prepared {
    /// The system prompt.
    pub system: Arc<str>,
    /// The context items.
    pub context: Arc<[ContextItem]>,
    /// The tools.
    pub tools: Arc<ToolSet>,
    /// How the model is to answer.
    pub settings: Arc<Settings>,
}

impl Prepared {
    /// Makes the request of a round.
    #[must_use]
    pub fn request(&self, round: Path, attempt: u32, messages: Transcript) -> ModelRequest {
        ModelRequest {
            path: round,
            attempt,
            system: Arc::clone(&self.system),
            context: Arc::clone(&self.context),
            tools: Arc::clone(&self.tools),
            messages,
            settings: Arc::clone(&self.settings),
        }
    }
}

/// A call of the current batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// Its path.
    pub path: Path,
    /// The tool.
    pub tool: String,
    /// The arguments that run: the proposed ones, or the edited ones.
    pub arguments: Arc<Value>,
    /// What the tool promises.
    pub flags: CallFlags,
    /// What it needs an approval for.
    pub gate: Option<Gate>,
    /// The try, from 0.
    pub attempt: u32,
    /// When the tool was started last.
    pub started: Option<Timestamp>,
    /// How many files and widgets it has made.
    pub outputs: u32,
    /// How many of them the tries before this one have made.
    pub outputs_before: u32,
    /// The values that the tool computed once.
    pub values: Values,
    /// Where it stands.
    pub phase: CallPhase,
}

/// Where a call stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum CallPhase {
    /// It needs an approval that has not been asked for.
    Gated,
    /// A person is asked.
    Pending {
        /// The event that asked.
        since: Seq,
        /// When the question becomes void.
        expires: Option<Timestamp>,
    },
    /// It may run.
    Open(Intent),
    /// It runs a brain.
    Brain(Arc<BrainFrame>),
    /// It waits.
    Waiting {
        /// The event that began the wait.
        since: Seq,
        /// What it waits for.
        waits: Vec<WaitSpec>,
        /// What the tool returned before.
        output: Value,
    },
    /// It has its answer and goes on.
    Resumed {
        /// Which of its waits was answered.
        wait: u32,
        /// The answer, or the result of the wait that was not answered.
        payload: Value,
        /// Whether an answer came.
        answered: bool,
        /// What the tool returned before.
        output: Value,
    },
    /// It has its result.
    Done(ToolResult),
}

impl Call {
    /// Returns the result, once there is one.
    #[must_use]
    pub const fn result(&self) -> Option<&ToolResult> {
        match &self.phase {
            CallPhase::Done(result) => Some(result),
            CallPhase::Gated
            | CallPhase::Pending { .. }
            | CallPhase::Open(_)
            | CallPhase::Brain(_)
            | CallPhase::Waiting { .. }
            | CallPhase::Resumed { .. } => None,
        }
    }

    /// Returns the brain that it runs.
    pub(super) fn inner(&self) -> Option<&BrainFrame> {
        match &self.phase {
            CallPhase::Brain(inner) => Some(inner),
            _ => None,
        }
    }

    /// Says whether something of it is in flight.
    #[must_use]
    pub fn is_running(&self) -> bool {
        match &self.phase {
            CallPhase::Open(intent) => matches!(intent, Intent::Running),
            CallPhase::Brain(_) | CallPhase::Resumed { .. } => true,
            CallPhase::Gated | CallPhase::Pending { .. } | CallPhase::Waiting { .. } | CallPhase::Done(_) => false,
        }
    }

    /// Returns where it stands, for people.
    #[must_use]
    pub const fn state(&self) -> CallState {
        match &self.phase {
            CallPhase::Gated => CallState::Deferred,
            CallPhase::Pending { .. } => CallState::Pending,
            CallPhase::Open(Intent::Running) | CallPhase::Brain(_) | CallPhase::Resumed { .. } => CallState::Running,
            CallPhase::Open(Intent::Ready | Intent::Doubtful | Intent::Backoff(_)) => CallState::Queued,
            CallPhase::Waiting { .. } => CallState::Waiting,
            CallPhase::Done(_) => CallState::Done,
        }
    }
}

impl LoopFrame {
    pub(super) fn new(path: Path, limits: Limits, seen: Arc<Value>) -> Self {
        Self {
            path,
            round: 0,
            phase: LoopPhase::Prepare,
            limits,
            allowance: Allowance::default(),
            spent: Spending::default(),
            ended_by: None,
            exits: false,
            prepared: Prepared::default(),
            seen,
            seen_plugins: PluginStates::default(),
            asked: Vec::new(),
            refused: Vec::new(),
            usage: Usage::default(),
            active: 0,
            batch: Vec::new(),
            expected: 0,
            unread: false,
            failures: 0,
            cut: false,
            wrap_up: None,
            denials: Arc::default(),
            known: Arc::default(),
        }
    }

    /// Says whether a hash alone stands for this content in the loop's next `LOOP_ITERATION`.
    #[must_use]
    pub fn knows(&self, hash: &ContentHash) -> bool {
        self.known.get(hash).is_some()
    }

    pub(super) fn known_mut(&mut self) -> &mut Known {
        Arc::make_mut(&mut self.known)
    }

    /// Finds the call at this place of the current batch.
    #[must_use]
    pub fn call(&self, round: u32, index: u32) -> Option<&Call> {
        if round != self.round {
            return None;
        }
        self.batch.get(usize::try_from(index).ok()?).map(|call| &**call)
    }

    pub(super) fn call_mut(&mut self, round: u32, index: u32) -> Option<&mut Call> {
        if round != self.round {
            return None;
        }
        self.batch.get_mut(usize::try_from(index).ok()?).map(Arc::make_mut)
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
                    let Some(Segment::Call(round, index)) = segments.next() else { return None };
                    match &frame.call(round, index)?.phase {
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
                    let Some(Segment::Call(round, index)) = segments.next() else { return None };
                    match &mut frame.call_mut(round, index)?.phase {
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

    /// Finds the brain whose stage, round or call this path names.
    #[must_use]
    pub fn owner(&self, path: &Path) -> Option<&BrainFrame> {
        self.brain_of(owner_of(path)?)
    }

    /// Finds the open loop with this path, or around this round or call.
    #[must_use]
    pub fn looped(&self, path: &Path) -> Option<&LoopFrame> {
        match &self.owner(path)?.stage {
            Stage::Loop(frame) if path.is_within(&frame.path) => Some(frame),
            _ => None,
        }
    }

    /// Finds the call with this path, while its batch is open.
    #[must_use]
    pub fn call(&self, path: &Path) -> Option<&Call> {
        let Some(Segment::Call(round, index)) = path.last() else { return None };
        self.looped(path)?.call(round, index)
    }

    /// Returns the value that the step or the call at this path has computed once under a name.
    #[must_use]
    pub fn value(&self, path: &Path, name: &str) -> Option<Arc<Value>> {
        let values = match path.last()? {
            Segment::Call(..) => &self.call(path)?.values,
            Segment::Stage(_) | Segment::Round(_) => match &self.owner(path)?.stage {
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

/// Returns the path of the brain around a stage, a round or a call, as text.
pub(super) fn owner_of(path: &Path) -> Option<&str> {
    let around = parent_of(path.as_str())?;
    match path.last()? {
        Segment::Stage(_) => Some(around),
        Segment::Round(_) | Segment::Call(..) => parent_of(around),
    }
}
