//! Contents of nodes: brains, stages, answers, calls, widgets and budget requests.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use super::node::NodeId;
use crate::projection::Cost;
use crate::record::encoding::skip::is_default;
use crate::record::{
    Actor, Amounts, Approval, BatchPolicy, BudgetRequest, CallFlags, CallState, Decision, DeltaKind, Event, EventKind,
    Failure, FileRef, LoopOutcome, ModelError, Part, PublicId, Question, Repair, ResponseMetadata, ResumeCause,
    SignalId, StageKind, Timestamp, ToolResult, UndoCause, Usage, WaitSpec, WidgetOutput,
};

/// A brain: the run's own, or a nested one.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[non_exhaustive]
pub struct BrainNode {
    /// Its title.
    pub title: String,
    /// The author's version.
    pub version: u32,
    /// Its options.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub options: Value,
    /// Why it undoes what it has done, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undoing: Option<UndoCause>,
    /// How it ended; `None` while it has not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
}

/// How a brain ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Ending {
    /// It completed.
    Completed {
        /// Its result.
        result: Value,
    },
    /// It failed.
    Failed(Failure),
    /// It was cancelled.
    Cancelled {
        /// Who cancelled it.
        actor: Actor,
        /// Why.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}

/// How far a group of brains is, or a repeated one. Each brain is a stage below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct GroupProgress {
    /// How many brains there are; of a repeated one, how many rounds have begun.
    pub count: u32,
    /// How many have completed.
    pub done: u32,
    /// How many have failed.
    pub failed: u32,
}

/// A stage of a brain, or a brain of a group.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct StageNode {
    /// Its name.
    pub name: String,
    /// What kind of stage it is.
    pub stage: StageKind,
    /// Of a nested brain: the brain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub brain: Option<BrainNode>,
    /// The names of a branch's arms, or of a group's brains if it has several, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub arms: Vec<String>,
    /// Of a group of brains, or a repeated one: how many there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<GroupProgress>,
    /// Of a step: the attempt, from 0.
    pub attempt: u32,
    /// Of a branch: the chosen arm.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arm: Option<String>,
    /// Of a guard that did not pass: the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<Value>,
    /// Of a step that undoes a stage: why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Of a wait: what it waits for, and how that ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waited: Option<Waited>,
    /// Of a step or a wait: how long it took, stored in microseconds.
    #[serde(skip_serializing_if = "Option::is_none", with = "crate::record::encoding::micros::optional")]
    pub duration: Option<Duration>,
    /// Of a loop: whether its record is hidden from people.
    #[serde(skip_serializing_if = "is_default")]
    pub hidden: bool,
    /// Of a loop: its iteration, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u32>,
    /// Of a loop: the maximum number of iterations, including grants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_iterations: Option<u64>,
    /// Of a loop: how it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<LoopOutcome>,
    /// Of a loop: the tokens of the loop and everything below it, at its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Of a loop: the limit that ended it, a node below it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<NodeId>,
    /// The open request of the loop or the step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asking: Option<NodeId>,
    pub(super) policy: BatchPolicy,
}

/// A request to a model, and its outcome.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct AnswerNode {
    /// The model that was asked, as `provider/model`.
    pub model: String,
    /// The attempt, from 0.
    pub attempt: u32,
    /// The question of a step or a plugin; `None` for the request of an iteration, which follows from the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<Question>,
    /// The streamed part of the answer, until the event of the whole answer replaces it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<Stream>,
    /// The outcome of the request; `None` while the model answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<AnswerOutcome>,
}

impl AnswerNode {
    /// Returns the files that the model made.
    pub fn files(&self) -> impl Iterator<Item = &FileRef> {
        let answer = match &self.outcome {
            Some(AnswerOutcome::Answered(answer)) => Some(answer),
            // What a guard has refused is not the run's.
            Some(AnswerOutcome::Refused { guard, answer, .. }) => guard.is_none().then_some(answer),
            Some(AnswerOutcome::Failed { .. } | AnswerOutcome::Abandoned) | None => None,
        };
        answer.into_iter().flat_map(|answer| &*answer.parts).filter_map(|part| match part {
            Part::File { file, .. } => Some(file.file()),
            _ => None,
        })
    }
}

/// What a guard has replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum GuardedValue {
    /// A message of a person.
    Message {
        /// Why the model reads only that there was a message; `None` if it reads another text.
        #[serde(skip_serializing_if = "Option::is_none")]
        withheld: Option<String>,
    },
    /// The text of an answer.
    Answer,
    /// The arguments of a call.
    Arguments,
    /// What a tool has returned.
    Output,
}

/// The outcome of a request to a model.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum AnswerOutcome {
    /// The model answered.
    Answered(Answer),
    /// The model answered with invalid structured actions, or a guard refused its answer.
    Refused {
        /// The guard; `None` for invalid structured actions.
        #[serde(skip_serializing_if = "Option::is_none")]
        guard: Option<String>,
        /// The mistakes, as the model reads them.
        message: String,
        /// The answer.
        answer: Answer,
    },
    /// The request failed and is sent again.
    Failed {
        /// What went wrong.
        error: ModelError,
        /// When it is sent again.
        due: Timestamp,
    },
    /// The request was sent again after a crash, or its loop ended before the answer.
    Abandoned,
}

/// A whole answer of a model.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Answer {
    /// Its parts in order: text, reasoning, refusal, and the places of its calls, which are nodes of their own.
    pub parts: Arc<[Part]>,
    /// The model, the tokens, the routing and the cost as the log has it.
    pub metadata: ResponseMetadata,
    /// The time from the request to the end of the answer, stored in microseconds.
    #[serde(with = "crate::record::encoding::micros")]
    pub duration: Duration,
    /// The cost by the timeline's price table; `None` without a table, and for an answer scripted in code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

/// The streamed beginning of an answer.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[non_exhaustive]
pub struct Stream {
    /// The attempt of the request.
    pub attempt: u32,
    /// The generation within this attempt: another model begins a new one.
    pub generation: u32,
    /// The number of pieces, including missing ones.
    pub pieces: u32,
    /// Whether pieces are missing. The event of the whole answer fills the gap.
    #[serde(skip_serializing_if = "is_default")]
    pub gap: bool,
    /// The parts so far.
    pub parts: Vec<StreamPart>,
}

/// A part of an answer that streams.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct StreamPart {
    /// Its place in the answer, from 0.
    pub part: u32,
    /// What it is a part of.
    pub kind: DeltaKind,
    /// Of a call: its place among the calls of the answer, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<u32>,
    /// Of a call: the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The text, or a call's arguments.
    pub text: String,
}

/// A call of a tool, or of a brain.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CallNode {
    /// The call's public id, for people and bridges.
    pub public_id: PublicId,
    /// The tool, or the name that the model wrote if there is no such tool.
    pub tool: String,
    /// The arguments that the model proposed.
    pub arguments: Arc<Value>,
    /// What was repaired in what the model wrote.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repair: Option<Box<Repair>>,
    /// The tool's flags.
    pub flags: CallFlags,
    /// Its state.
    pub state: CallState,
    /// When the model proposed it.
    pub proposed: Timestamp,
    /// How often the tool was started.
    pub attempts: u32,
    /// The approval that it needs, with the decision and the edited arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<Box<Approval>>,
    /// Its waits, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<Waited>,
    /// The brain that it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub brain: Option<BrainNode>,
    /// The streamed progress of the running tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
    /// Its result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<ToolResult>,
    /// How long the tool ran, stored in microseconds.
    #[serde(skip_serializing_if = "Option::is_none", with = "crate::record::encoding::micros::optional")]
    pub duration: Option<Duration>,
    /// Whether it ended its loop.
    #[serde(skip_serializing_if = "is_default")]
    pub exited: bool,
    /// Whether its brain has handed the dialogue back. Then it does not end its loop.
    #[serde(skip_serializing_if = "is_default")]
    pub handed_back: bool,
}

impl CallNode {
    /// Returns the arguments as a person edited them, if edited.
    #[must_use]
    pub fn edited(&self) -> Option<&Value> {
        self.approval.as_ref()?.edited()
    }
}

/// A wait of a call or a stage.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Waited {
    /// Since when.
    pub since: Timestamp,
    /// The alternatives; the first answer ends the wait.
    pub waits: Vec<WaitSpec>,
    /// How it ended; `None` while it lasts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resumed: Option<WaitEnd>,
    /// When it ends without an answer, if it is not a call's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due: Option<Timestamp>,
    /// Whether the author has named that time.
    #[serde(skip)]
    pub(super) is_fixed: bool,
}

impl Waited {
    pub(super) fn since(since: Timestamp, waits: &[WaitSpec], due: Option<Timestamp>) -> Self {
        Self { since, waits: waits.to_vec(), resumed: None, due, is_fixed: false }
    }

    /// Folds the event that ends it.
    pub(super) fn resume(&mut self, event: &Event) {
        if let EventKind::LoopResume { cause, wait, payload, received, signal, actor }
        | EventKind::StageResume { cause, wait, payload, received, signal, actor } = &event.kind
        {
            let (cause, wait, payload, received) = (*cause, *wait, payload.clone(), *received);
            let (signal, actor) = (signal.clone(), actor.clone());
            self.resumed = Some(WaitEnd { at: event.at, cause, wait, payload, received, signal, actor });
        }
    }
}

/// How a wait ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct WaitEnd {
    /// When.
    pub at: Timestamp,
    /// Whether an answer arrived or the time was up.
    pub cause: ResumeCause,
    /// The index of the answered alternative, from 0.
    pub wait: u32,
    /// The answer.
    pub payload: Value,
    /// When the answer was received, if that was before the wait began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub received: Option<Timestamp>,
    /// The signal that brought it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<SignalId>,
    /// Who sent it.
    pub actor: Actor,
}

/// A widget.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct WidgetNode {
    /// The output's public id.
    pub public_id: PublicId,
    /// Its content.
    pub output: WidgetOutput,
    /// The first node of its row of replacements, if it replaces another widget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<NodeId>,
    /// The widgets that have replaced it, in order; the last one is displayed. Only the first of a row has them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub replaced_by: Vec<NodeId>,
}

/// A request for more of a limit.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct BudgetNode {
    /// The request.
    #[serde(flatten)]
    pub request: BudgetRequest,
    /// Its outcome; `None` while it is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<BudgetOutcome>,
}

/// The outcome of a request for more of a limit.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum BudgetOutcome {
    /// A person decided.
    Decided {
        /// The decision.
        decision: Decision,
        /// When it was made.
        at: Timestamp,
        /// The granted amount.
        more: Amounts,
        /// The reason.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The person who decided, and the channel.
        actor: Actor,
        /// The signal that brought the decision.
        signal: SignalId,
    },
    /// It expired without a decision.
    Expired {
        /// When.
        at: Timestamp,
    },
}
