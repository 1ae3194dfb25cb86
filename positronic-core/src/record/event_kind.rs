//! What each event carries. The table of all events is in the docs of [`EventKind`].

use std::sync::Arc;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::answer::AnswerFault;
use super::budget::{Amounts, Budget};
use super::call::{CallFlags, Gate, ToolDecl, ToolId, WaitSpec};
use super::canonical::{Change, ContentHash};
use super::ids::{PublicId, SignalId, Timestamp};
use super::limits::{LimitKind, Limits};
use super::plugin::{PluginChange, PluginStates};
use super::prompt::SideOutput;
use super::request::{ContextItem, Settings};
use super::result::{LoopOutcome, ToolResult};
use super::shape::Shape;
use super::signal::{Actor, Start, is_unknown};
use super::summary::ClaimRefusal;
use super::trigger::TriggerChange;
use super::usage::{ModelError, Part, ResponseMetadata, Usage};

/// What happened.
///
/// | event | path | when | carries |
/// |---|---|---|---|
/// | `RUN_CLAIMED` | root | a worker claims the run | `owner`, `trace` |
/// | `RUN_RELEASED` | root | it releases the run | `reason` |
/// | `RUN_NOT_CLAIMED` | root | a worker found work that no worker could do for a while | `owner, reason, message` |
/// | `BRAIN_START` | brain | a brain begins | `title, version, fingerprint, stages, options, state, plugins, budget, start` |
/// | `BRAIN_MIGRATED` | root | the run continues with another version of its brain | `version, fingerprint, stages, change` |
/// | `BRAIN_COMPLETE` | brain | it ended well | `result` |
/// | `BRAIN_ERROR` | brain | it failed | `code, message, retryable` |
/// | `BRAIN_CANCELLED` | brain | it was cancelled | `signal, actor, reason` |
/// | `BRAIN_PAUSED`, `BRAIN_RESUMED` | root | a person paused it, lifted the pause | `signal, actor` |
/// | `STEP_START` | stage | a step begins | `attempt` |
/// | `STEP_COMPLETE` | stage | it returned | `change`, `duration` |
/// | `STEP_RETRY` | stage | it failed and is tried again | `attempt, message, due` |
/// | `STEP_BLOCKED` | stage | it asked a model that a limit does not allow, and runs again once there is more | – |
/// | `VALUE_RECORDED` | stage, call | a value of `cx.once` is there | `name, value` |
/// | `LOOP_START` | loop | a loop begins | `input, from, message_id, hidden, projection, limits` |
/// | `LOOP_ITERATION` | iteration | an iteration begins | `system, context, tools, settings, limits, exits, plugins` |
/// | `LOOP_MODEL_CALL` | iteration | a request is about to be sent | `attempt, model, question` |
/// | `LOOP_MODEL_RESULT` | iteration | the model answered | `parts, metadata, duration` |
/// | `LOOP_MODEL_RETRY` | iteration | it failed and is asked again | `attempt, error, due` |
/// | `LOOP_ANSWER_REFUSED` | iteration | the answer is not a structured action that fits; the model is asked again, or the loop fails | `attempt, message, parts, metadata, duration` |
/// | `LOOP_TOOL_CALL` | call | the model asked for a call | `tool, arguments, provider_id, data, flags, gate` |
/// | `LOOP_TOOL_START` | call | the tool is about to run | `attempt` |
/// | `LOOP_TOOL_RETRY` | call | it failed and is tried again | `attempt, message, due` |
/// | `LOOP_TOOL_RESULT` | call | the call has its result | `result, duration, change` |
/// | `LOOP_BRAIN_START` | call | a brain called as a tool begins | `title, options` |
/// | `LOOP_BRAIN_COMPLETE` | call | it ended, also in failure | `result` or `error` |
/// | `LOOP_OUTPUT` | call | a tool shows something beside its result | `id`, `file`, `widget` or `custom` |
/// | `LOOP_TRIGGER` | call | a tool sets a trigger, or takes one back | `change` |
/// | `LOOP_APPROVAL_REQUESTED` | call | a person is asked | `reason, expires, editable, arguments_hash` |
/// | `LOOP_APPROVAL_DECIDED` | call | the person decided | `decision, arguments, reason, signal, actor` |
/// | `LOOP_APPROVAL_WITHDRAWN` | call | the question is void | `cause` |
/// | `LOOP_APPROVAL_EXPIRED` | call | no decision came in time | – |
/// | `LOOP_WAIT` | call | a call waits | `waits, output, change` |
/// | `LOOP_RESUME` | call | it has its answer, or its time is up | `cause, wait, payload, signal, actor` |
/// | `LOOP_MESSAGE` | loop | a message to the loop arrives | `text, message_id, from, signal, actor` |
/// | `LOOP_EXIT` | loop | an exit tool ended the loop | `call, tool` |
/// | `LOOP_MAX_ITERATIONS` | loop | the number of iterations ended it | `limit` |
/// | `LOOP_LIMIT` | loop | another limit ended it | `kind, limit, used, of, shared, unpriced` |
/// | `LOOP_STOPPED` | loop | an unusable answer ended it | `cause, message` |
/// | `BUDGET_REQUESTED` | loop, brain | it reached a limit, and a person is asked for more | `kind, limit, used, shared, expires` |
/// | `BUDGET_DECIDED` | loop, brain | the person granted more, or refused | `decision, more, reason, signal, actor` |
/// | `BUDGET_EXPIRED` | loop, brain | no decision came in time | – |
/// | `LOOP_PLUGIN_CHANGED` | iteration, call | a plugin's state changed | `plugin, version, patch` or `state` |
/// | `LOOP_PLUGIN_FAILED` | iteration | a plugin failed and the loop continues | `plugin, message` |
/// | `LOOP_COMPACTED` | loop | older messages were replaced by a summary, or are sent whole again | `keep, summary` |
/// | `LOOP_COMPLETE` | loop | always a loop's last | `outcome, usage, change` |
///
/// A `change` is the step from one state to the next: `patch`, an RFC 6902 patch, or `state`, the whole document where
/// that is smaller.
///
/// A question that a step asks a model (`cx.model()`) is recorded with `LOOP_MODEL_CALL` and `LOOP_MODEL_RESULT` under
/// the step's path and the question's number; its `question` is the request's system prompt and text. A plugin's question
/// is recorded under the path of the iteration that it prepares, before the iteration's `LOOP_ITERATION`.
///
/// Only a `LOOP_MODEL_RESULT` and a `LOOP_ANSWER_REFUSED` say what an answer used; which event carries which usage stands with
/// [`projection::Costs`](crate::projection::Costs).
///
/// On its own a body is `{name: {fields}}`, since that is read in one pass; in an event's line its fields stand flat
/// behind `type`, see [`Event`](super::Event).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[non_exhaustive]
pub enum EventKind {
    /// A worker claims the run; the outcome of what was in flight before is unknown.
    RunClaimed {
        /// The worker.
        #[serde(alias = "holder")]
        owner: String,
        /// The W3C trace context of the claim.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        trace: Option<String>,
    },
    /// The worker releases the run.
    RunReleased {
        /// Why.
        reason: String,
    },
    /// A worker found work in the run and could not claim it, and no other worker did for a while. Written once per claim.
    RunNotClaimed {
        /// The worker.
        #[serde(alias = "holder")]
        owner: String,
        /// Why.
        reason: ClaimRefusal,
        /// The reason for people.
        message: String,
    },
    /// A brain begins.
    BrainStart(Box<BrainStart>),
    /// The run continues with another version of its brain, whose migration makes the state.
    BrainMigrated {
        /// The version it continues with.
        version: u32,
        /// The hash of what makes it the same brain from now on.
        fingerprint: ContentHash,
        /// Its stages from now on.
        stages: Shape,
        /// The change of its state.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        change: Option<Change>,
    },
    /// A brain ended well.
    BrainComplete {
        /// What its callers get.
        result: Value,
    },
    /// A brain failed.
    BrainError(Failure),
    /// A brain was cancelled.
    BrainCancelled {
        /// The signal that cancelled it; a nested brain is cancelled with the run around it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signal: Option<SignalId>,
        /// Who sent it.
        #[serde(default, skip_serializing_if = "is_unknown")]
        actor: Actor,
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The run was paused: nothing new starts.
    BrainPaused {
        /// The signal.
        signal: SignalId,
        /// Who sent it.
        #[serde(default, skip_serializing_if = "is_unknown")]
        actor: Actor,
    },
    /// The pause was lifted.
    BrainResumed {
        /// The signal.
        signal: SignalId,
        /// Who sent it.
        #[serde(default, skip_serializing_if = "is_unknown")]
        actor: Actor,
    },
    /// A step begins.
    StepStart {
        /// The try, from 0.
        #[serde(default, skip_serializing_if = "is_zero")]
        attempt: u32,
    },
    /// A step returned the next state.
    StepComplete {
        /// The change, none where the state is the same.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        change: Option<Change>,
        /// Microseconds since its start.
        duration: u64,
    },
    /// A step failed and is tried again.
    StepRetry {
        /// The try that failed, from 0.
        attempt: u32,
        /// What went wrong.
        message: String,
        /// When it is tried again.
        due: Timestamp,
    },
    /// A step asked a model that a limit does not allow. It runs again, with the answers and values that it has, once a
    /// person has decided.
    StepBlocked {},
    /// A step or a tool has computed a value that is not computed again when it runs again.
    ValueRecorded {
        /// The author's name for it.
        name: String,
        /// The value.
        value: Arc<Value>,
    },
    /// A loop begins.
    LoopStart {
        /// The opening user message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<String>,
        /// Who says it; the engine, where neither the loop nor a person does, since providers require a user message.
        #[serde(default, skip_serializing_if = "is_person")]
        from: Speaker,
        /// The sender's own id of that message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_id: Option<String>,
        /// Whether people are not shown the loop's record.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        hidden: bool,
        /// The version of the rules by which the loop's record becomes messages: 0 sends each message as it is, 1 joins the
        /// user's in a row, leaves out empty ones and puts what was said during a request behind its answer.
        #[serde(default, skip_serializing_if = "is_zero")]
        projection: u32,
        /// The limits.
        limits: Limits,
    },
    /// An iteration begins.
    LoopIteration(Box<Iteration>),
    /// A request is about to be sent.
    LoopModelCall {
        /// The try, from 0.
        #[serde(default, skip_serializing_if = "is_zero")]
        attempt: u32,
        /// The provider and model, as `provider/model`.
        model: String,
        /// For a step's question, what is asked; an iteration's request follows from the log.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        question: Option<Question>,
    },
    /// The model answered.
    LoopModelResult {
        /// The parts of the answer in order.
        parts: Arc<[Part]>,
        /// What is known about the answer.
        metadata: ResponseMetadata,
        /// Microseconds from the request to the end of the answer.
        duration: u64,
    },
    /// The model failed and is asked again.
    LoopModelRetry {
        /// The try that failed, from 0.
        attempt: u32,
        /// What went wrong.
        error: ModelError,
        /// When it is asked again.
        due: Timestamp,
    },
    /// The model's answer is not a structured action that fits. The model is asked again with what is wrong, or the loop
    /// fails.
    LoopAnswerRefused {
        /// The try that it answers, from 0.
        attempt: u32,
        /// What is wrong with it, in a sentence; the model reads it.
        message: String,
        /// The parts of the answer in order, as the model gave them.
        parts: Arc<[Part]>,
        /// What is known about the answer.
        metadata: Box<ResponseMetadata>,
        /// Microseconds from the request to the end of the answer.
        duration: u64,
    },
    /// The model asked for a call.
    LoopToolCall(Box<ToolCall>),
    /// A tool is about to run.
    LoopToolStart {
        /// The try, from 0.
        #[serde(default, skip_serializing_if = "is_zero")]
        attempt: u32,
    },
    /// A tool failed with a transient error and is tried again.
    LoopToolRetry {
        /// The try that failed, from 0.
        attempt: u32,
        /// What went wrong.
        message: String,
        /// When it is tried again.
        due: Timestamp,
    },
    /// A call has its result.
    LoopToolResult {
        /// The result.
        result: ToolResult,
        /// Microseconds since the tool's start; none for a call that never ran.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        duration: Option<u64>,
        /// The change of the loop's state.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        change: Option<Change>,
    },
    /// A brain called as a tool begins; its own `BRAIN_START` follows.
    LoopBrainStart {
        /// Its title.
        title: String,
        /// Its options.
        options: Value,
    },
    /// A brain called as a tool ended, well or not.
    LoopBrainComplete {
        /// Its result.
        #[serde(default, deserialize_with = "super::canonical::present", skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
        /// Why it has none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// A tool shows something beside its result.
    LoopOutput {
        /// The output's own id.
        id: PublicId,
        /// What it shows.
        #[serde(flatten)]
        output: SideOutput,
    },
    /// A tool sets a trigger, or takes one back; its result follows.
    LoopTrigger {
        /// What it does.
        change: TriggerChange,
    },
    /// A person is asked whether a call may run.
    LoopApprovalRequested {
        /// Why a person is asked.
        reason: String,
        /// When the question becomes void.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires: Option<Timestamp>,
        /// Whether the arguments may be edited.
        editable: bool,
        /// The hash of the proposed arguments.
        arguments_hash: ContentHash,
    },
    /// A person decided.
    LoopApprovalDecided {
        /// What was decided.
        decision: Decision,
        /// The arguments to run the call with, where they were edited.
        #[serde(default, deserialize_with = "super::canonical::present", skip_serializing_if = "Option::is_none")]
        arguments: Option<Value>,
        /// Why it was rejected.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The signal.
        signal: SignalId,
        /// Who decided, and over which channel.
        #[serde(default, skip_serializing_if = "is_unknown")]
        actor: Actor,
    },
    /// The question is void, since something else ended the call.
    LoopApprovalWithdrawn {
        /// What did.
        cause: String,
    },
    /// The approval expired without a decision.
    LoopApprovalExpired {},
    /// A call waits.
    LoopWait {
        /// What it waits for; the first that arrives answers it.
        waits: Vec<WaitSpec>,
        /// What the tool returned before the wait.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        output: Value,
        /// The change of the loop's state.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        change: Option<Change>,
    },
    /// A waiting call continues.
    LoopResume {
        /// Whether an answer came or the time was up.
        #[serde(default, skip_serializing_if = "is_answered")]
        cause: ResumeCause,
        /// Which of its waits, from 0.
        wait: u32,
        /// The answer.
        payload: Value,
        /// The signal that brought it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signal: Option<SignalId>,
        /// Who sent it.
        #[serde(default, skip_serializing_if = "is_unknown")]
        actor: Actor,
    },
    /// A message to a loop arrived.
    LoopMessage {
        /// What is said.
        text: String,
        /// The sender's own id of the message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_id: Option<String>,
        /// Who says it.
        #[serde(default, skip_serializing_if = "is_person")]
        from: Speaker,
        /// The signal that brought it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signal: Option<SignalId>,
        /// Who sent it.
        #[serde(default, skip_serializing_if = "is_unknown")]
        actor: Actor,
    },
    /// An exit tool ended the loop.
    LoopExit {
        /// The call's path.
        call: super::path::Path,
        /// The tool.
        tool: ToolId,
    },
    /// The number of iterations ended the loop.
    LoopMaxIterations {
        /// The limit.
        limit: u32,
    },
    /// Another limit ended the loop.
    LoopLimit {
        /// Which.
        kind: LimitKind,
        /// The limit: tokens, billionths of money, microseconds, or iterations.
        limit: u64,
        /// What was used.
        used: u64,
        /// The brain whose budget it is, where it is not the loop's own limit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        of: Option<super::path::Path>,
        /// Whether it is the budget of the conversation, which the run's brain answers for.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        shared: bool,
        /// The model whose answer has no known cost, where that is why a limit of money cannot be kept.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unpriced: Option<Arc<str>>,
    },
    /// An unusable answer ended the loop: a refusal, a filtered one, one that was cut off, or several empty ones.
    LoopStopped {
        /// What was wrong with the answer.
        cause: AnswerFault,
        /// A sentence that says so, and what to do about it.
        message: String,
    },
    /// A loop or a brain has reached a limit, and a person is asked for more. What ends the loop or the brain otherwise
    /// makes the question void.
    BudgetRequested {
        /// Which limit.
        kind: LimitKind,
        /// The limit: tokens, billionths of money, microseconds, or iterations.
        limit: u64,
        /// What was used.
        used: u64,
        /// Whether it is the budget of the conversation, and not the brain's own.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        shared: bool,
        /// When the question becomes void, which refuses.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires: Option<Timestamp>,
    },
    /// A person granted more, or refused.
    BudgetDecided {
        /// What was decided.
        decision: Decision,
        /// How much more there is.
        #[serde(default, skip_serializing_if = "is_nothing")]
        more: Amounts,
        /// Why it was refused.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The signal.
        signal: SignalId,
        /// Who decided, and over which channel.
        #[serde(default, skip_serializing_if = "is_unknown")]
        actor: Actor,
    },
    /// The question expired without a decision, which refuses.
    BudgetExpired {},
    /// What a plugin keeps has changed outside of `prepare`: by a look at an answer, or by a call.
    LoopPluginChanged {
        /// The plugin.
        plugin: String,
        /// The step to its next state.
        #[serde(flatten)]
        step: PluginChange,
    },
    /// A plugin failed, and the loop continues without it.
    LoopPluginFailed {
        /// The plugin.
        plugin: String,
        /// What went wrong.
        message: String,
    },
    /// A summary replaces the older messages in what the model reads, or they are sent whole again. The record itself does
    /// not change.
    LoopCompacted {
        /// How many of the latest messages stay as they are.
        #[serde(default, skip_serializing_if = "is_no_message")]
        keep: u64,
        /// The summary that replaces the messages before them. Without it, all messages are sent whole again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        summary: Option<String>,
    },
    /// A loop ended; always its last event.
    LoopComplete {
        /// How it ended.
        outcome: LoopOutcome,
        /// The tokens of the loop and all below it.
        usage: Usage,
        /// The change that `on_exit` made.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        change: Option<Change>,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
const fn is_no_message(count: &u64) -> bool {
    *count == 0
}

fn is_nothing(more: &Amounts) -> bool {
    *more == Amounts::default()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
fn is_answered(cause: &ResumeCause) -> bool {
    *cause == ResumeCause::Answered
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
fn is_person(from: &Speaker) -> bool {
    *from == Speaker::Person
}

/// What `BRAIN_START` carries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BrainStart {
    /// The brain's title.
    pub title: String,
    /// The author's version.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub version: u32,
    /// The hash of what makes it the same brain; see [`Shape::fingerprint`].
    pub fingerprint: ContentHash,
    /// Its stages.
    pub stages: Shape,
    /// Its options.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub options: Value,
    /// The state it begins with.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub state: Value,
    /// What its plugins keep from the conversation before.
    #[serde(default, skip_serializing_if = "PluginStates::is_empty")]
    pub plugins: PluginStates,
    /// What its author lets it and all below it use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// How the run was started; only at the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Start>,
}

/// What `LOOP_ITERATION` carries: what `prepare` yielded. What is left out is as in the iteration before.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Iteration {
    /// The system prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<Content<Arc<str>>>,
    /// The context items, in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<Vec<Content<ContextItem>>>,
    /// The tools, in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<ToolEntry>>,
    /// How the model is to answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings: Option<Content<Settings>>,
    /// The limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// Whether a text answer does not end the loop: an exit tool is among the tools, or the loop requires an exit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exits: Option<bool>,
    /// The changes of the plugins' states.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub plugins: IndexMap<String, PluginChange>,
}

/// A content by its hash; the body stands in the first event of the loop that names it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Content<T> {
    /// The hash.
    pub hash: ContentHash,
    /// The body, where it is new.
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub body: Option<T>,
}

const fn none<T>() -> Option<T> {
    None
}

/// One tool of an iteration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolEntry {
    /// The tool's id.
    pub id: ToolId,
    /// The hash of its declaration.
    pub hash: ContentHash,
    /// The declaration, where it is new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<ToolDecl>,
}

/// What a step asks a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// The system prompt.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub system: String,
    /// What is asked.
    pub text: String,
    /// How the model is to answer.
    #[serde(default)]
    pub settings: Settings,
    /// What the model has answered before that did not fit, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub misfits: Vec<Misfit>,
}

/// An answer to a question that did not fit what was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Misfit {
    /// The answer.
    pub answer: String,
    /// What does not fit, in a sentence; the model reads it.
    pub message: String,
}

/// What `LOOP_TOOL_CALL` carries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The tool, or the name that the model wrote where there is no such tool.
    pub tool: String,
    /// The arguments; a text, where the model did not write JSON.
    pub arguments: Arc<Value>,
    /// The provider's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    /// What the provider wants back unchanged.
    #[serde(default, deserialize_with = "super::canonical::present", skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// What the tool promises.
    #[serde(default, skip_serializing_if = "CallFlags::is_plain")]
    pub flags: CallFlags,
    /// What it needs an approval for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<Gate>,
}

/// Why a brain failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// What kind of failure it is.
    pub code: EndReason,
    /// A sentence that says what happened and where.
    pub message: String,
    /// Whether trying again can help.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub retryable: bool,
}

/// The kinds of failures of a brain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EndReason {
    /// A step returned an error or panicked.
    Step,
    /// A loop's configuration is wrong, or its closure failed.
    Config,
    /// The model could not be reached, or gave nothing usable.
    Model,
    /// The model gave no structured action that fits, as often as it was asked.
    Decision,
    /// The model's answer was unusable: it refused, was filtered, cut off, or said nothing.
    Answer,
    /// A limit with `OnLimit::Error` was reached.
    Limit,
    /// A nested brain failed.
    Brain,
    /// The state could not be encoded or decoded.
    State,
    /// The process ended again and again at the same place.
    Crash,
}

/// What a person decided about a call, or about more for a loop or a brain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// It may run.
    Approved,
    /// It may not.
    Rejected,
}

/// Why a waiting call continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResumeCause {
    /// An answer came.
    #[default]
    Answered,
    /// The time was up.
    Expired,
}

/// The author of a message to a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Speaker {
    /// A person.
    #[default]
    Person,
    /// The engine, for instance to tell the model that it has to call an exit tool.
    Engine,
}
