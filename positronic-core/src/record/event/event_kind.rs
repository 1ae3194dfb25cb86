//! The kinds of events, listed in the docs of [`EventKind`].

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::event_fields::{BrainStart, Decision, Iteration, Question, ReplacedInput, ResumeCause, Speaker, ToolCall};
use super::failure::Failure;
use super::result::{LoopOutcome, ToolResult};
use super::undo::{UndoCause, UndoStep};
use crate::record::encoding::content_hash::ContentHash;
use crate::record::encoding::document;
use crate::record::encoding::skip::is_default;
use crate::record::encoding::state_patch::Change;
use crate::record::ids::{PublicId, Seq, SignalId, Timestamp};
use crate::record::plugin::PluginChange;
use crate::record::prompt::call::WaitSpec;
use crate::record::prompt::caller_tool::CallerTool;
use crate::record::prompt::continued::ContinuedLoop;
use crate::record::prompt::file::FileRef;
use crate::record::prompt::part::Part;
use crate::record::prompt::side_output::SideOutput;
use crate::record::prompt::tool_id::ToolId;
use crate::record::request::answer_fault::AnswerFault;
use crate::record::request::model_response::{ModelError, ProposedCall, ResponseMetadata, Usage};
use crate::record::run::actor::Actor;
use crate::record::run::budget::Amounts;
use crate::record::run::child::ChildRun;
use crate::record::run::loop_limits::{BudgetRequest, LimitReached, Limits};
use crate::record::run::summary::ClaimRefusal;
use crate::record::run::trigger::TriggerChange;
use crate::record::shape::{ArmShape, Shape};

/// What happened.
///
/// | event | path | when | carries |
/// |---|---|---|---|
/// | `RUN_CLAIMED` | root | a worker claims the run | `owner`, `trace` |
/// | `RUN_RELEASED` | root | the worker releases the run | `reason` |
/// | `RUN_NOT_CLAIMED` | root | a worker found work that no worker could claim for a while | `owner, reason, message` |
/// | `BRAIN_START` | brain | a brain begins | `title, version, fingerprint, stages, options, state, plugins, budget, start` |
/// | `BRAIN_MIGRATED` | root | the run continues with another version of its brain | `version, fingerprint, stages, change` |
/// | `BRAIN_COMPLETE` | brain | it completed | `result` |
/// | `BRAIN_ERROR` | brain | it failed | `code, message, retryable` |
/// | `BRAIN_CANCELLED` | brain | it was cancelled | `signal, actor, reason` |
/// | `BRAIN_PAUSED`, `BRAIN_RESUMED` | root | a person paused or resumed it | `signal, actor` |
/// | `STEP_START` | stage | a step begins | `attempt` |
/// | `STEP_COMPLETE` | stage | it returned, or a wait, a nested brain or a group of brains is done | `change`, `duration` |
/// | `STEP_RETRY` | stage, brain | it failed and will be retried; before the `BRAIN_ERROR` of a brain | `attempt, message, due` |
/// | `STEP_BLOCKED` | stage | it asked a model beyond a limit, and reruns when more is granted | – |
/// | `BRANCH_CHOSEN` | stage | an arm of a branch was chosen | `name, brain` |
/// | `GROUP_START` | stage | brains begin to run at the same time | `brains, options, limit, due` |
/// | `REPEAT_ROUND` | stage | a round of a repeated brain is done, and the state is not; another one follows, unless it was the last | `round, change` |
/// | `UNDO_START` | brain | the brain undoes its completed stages before it fails or is cancelled | `cause, steps` |
/// | `UNDO_FAILED` | stage | a step that undoes a stage failed for good | `message` |
/// | `GUARD_CHECKED` | stage | a guard was checked; if it did not pass, the rest of the brain is skipped | `passed, reason` |
/// | `STAGE_WAIT` | stage | a stage waits | `waits, due` |
/// | `STAGE_RESUME` | stage | an answer arrived, or the time is over | `cause, wait, payload, received, signal, actor` |
/// | `VALUE_RECORDED` | stage, call | `cx.once` computed a value | `name, value` |
/// | `CHILD_START` | stage, call | a child run is about to be started | `name, run, title, link` |
/// | `LOOP_START` | loop | a loop begins | `input, from, message_id, files, hidden, limits` |
/// | `LOOP_ITERATION` | iteration | an iteration begins | `system, context, tools, settings, limits, exits, plugins` |
/// | `LOOP_MODEL_CALL` | iteration | a request is about to be sent | `attempt, model, question` |
/// | `LOOP_MODEL_RESULT` | iteration | the model answered | `parts, metadata, duration` |
/// | `LOOP_MODEL_RETRY` | iteration | it failed and will be asked again | `attempt, error, due` |
/// | `LOOP_ANSWER_REFUSED` | iteration | the answer is not a valid structured action, or a guard refused it; the model is asked again, or the loop fails | `attempt, guard, message, parts, calls, metadata, duration` |
/// | `LOOP_GUARD_REPLACED` | iteration, call | a guard replaced an answer, a result or a message | `guard, replaced, input` |
/// | `LOOP_ANSWER_BROKEN` | iteration | an answer broke after its provider had reported what it used | `metadata` |
/// | `LOOP_TOOL_CALL` | call | the model requested a call | `tool, arguments, provider_id, data, flags, gate` |
/// | `LOOP_TOOL_START` | call | the tool is about to run | `attempt` |
/// | `LOOP_TOOL_RETRY` | call | it failed and will be retried | `attempt, message, due` |
/// | `LOOP_TOOL_RESULT` | call | the call has its result | `result, duration, change` |
/// | `LOOP_BRAIN_START` | call | a brain called as a tool begins | `title, options` |
/// | `LOOP_BRAIN_COMPLETE` | call | it ended, successfully or not | `result` or `error` |
/// | `LOOP_OUTPUT` | call | a tool shows a side output | `id`, `file`, `widget` or `custom` |
/// | `LOOP_TRIGGER` | call | a tool sets or deletes a trigger | `change` |
/// | `LOOP_APPROVAL_REQUESTED` | call | a person is asked | `reason, expires, editable, arguments_hash` |
/// | `LOOP_APPROVAL_DECIDED` | call | the person decided | `decision, arguments, reason, signal, actor` |
/// | `LOOP_APPROVAL_WITHDRAWN` | call | the request is void | `cause` |
/// | `LOOP_APPROVAL_EXPIRED` | call | the request expired | – |
/// | `LOOP_WAIT` | call | a call waits | `waits, output, change` |
/// | `LOOP_RESUME` | call | an answer arrived, or the wait expired | `cause, wait, payload, signal, actor` |
/// | `LOOP_MESSAGE` | loop | a message to the loop arrived | `text, files, message_id, from, caller_tools, signal, actor` |
/// | `LOOP_EXIT` | loop | an exit tool ended the loop | `call, tool` |
/// | `LOOP_MAX_ITERATIONS` | loop | the limit of iterations ended it | `limit` |
/// | `LOOP_LIMIT` | loop | another limit ended it | `kind, limit, used, of, shared, unpriced` |
/// | `LOOP_STOPPED` | loop | a useless answer ended it | `cause, message` |
/// | `BUDGET_REQUESTED` | loop, brain | it reached a limit, and a person is asked for more | `kind, limit, used, shared, expires` |
/// | `BUDGET_DECIDED` | loop, brain | the person granted or rejected more | `decision, more, reason, signal, actor` |
/// | `BUDGET_EXPIRED` | loop, brain | the request expired | – |
/// | `LOOP_PLUGIN_UPDATE` | loop | an application updates the state of a plugin | `plugin, update, signal, actor` |
/// | `LOOP_PLUGIN_CHANGED` | iteration, call | a plugin's state changed | `plugin, version, patch` or `state`, `update` |
/// | `LOOP_PLUGIN_FAILED` | iteration | a plugin failed, or refused an update, and the loop continues | `plugin, message, update` |
/// | `LOOP_COMPACTED` | loop | older messages were summarised, or restored | `keep, summary` |
/// | `LOOP_COMPLETE` | loop | it ended; always its last event | `outcome, usage, change` |
///
/// A `change` is the difference between two states: `patch`, an RFC 6902 patch, or `state`, the complete new state if
/// that is smaller.
///
/// A question of a step to a model (`cx.model()`) is recorded with `LOOP_MODEL_CALL` and `LOOP_MODEL_RESULT` under
/// the step's path and the question's number; its `question` contains the request's system prompt and text. A plugin's question
/// is recorded under the path of the iteration that it prepares, before the `LOOP_ITERATION`. The question of a guard about an answer or
/// its calls has a path of its own, such as `Chat/3~0`, between the `LOOP_MODEL_CALL` and the outcome of the iteration, or between the start and
/// the result of a call.
///
/// Only `LOOP_MODEL_RESULT`, `LOOP_ANSWER_REFUSED` and `LOOP_ANSWER_BROKEN` contain an answer's usage; for the attribution of usage see
/// [`projection::Costs`](crate::projection::Costs).
///
/// Serialized alone, a kind is `{name: {fields}}`, which is parsed in one pass; in an event's line its fields follow
/// `type`, see [`Event`](crate::record::Event).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
#[non_exhaustive]
pub enum EventKind {
    /// A worker claims the run; the outcome of earlier effects in flight is unknown.
    RunClaimed {
        /// The worker.
        owner: String,
        /// The W3C trace context of the claim.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        trace: Option<String>,
    },
    /// The worker releases the run.
    RunReleased {
        /// The reason.
        reason: String,
    },
    /// A worker found work in the run and could not claim it, and no other worker did for a while. Recorded once per claim.
    RunNotClaimed {
        /// The worker.
        owner: String,
        /// The reason.
        reason: ClaimRefusal,
        /// The reason for people.
        message: String,
    },
    /// A brain begins.
    BrainStart(Box<BrainStart>),
    /// The run continues with another version of its brain, whose author provides the migration.
    BrainMigrated {
        /// The new version.
        version: u32,
        /// The new hash that identifies the brain's version.
        fingerprint: ContentHash,
        /// The new stages.
        stages: Shape,
        /// The change of its state.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        change: Option<Change>,
    },
    /// A brain completed.
    BrainComplete {
        /// The result for its callers.
        result: Value,
    },
    /// A brain failed.
    BrainError(Failure),
    /// A brain was cancelled.
    BrainCancelled {
        /// The signal that cancelled it; `None` for a nested brain, which is cancelled with its run, and after an undo, whose
        /// `UNDO_START` has the signal.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signal: Option<SignalId>,
        /// Who sent it.
        #[serde(default, skip_serializing_if = "is_default")]
        actor: Actor,
        /// The reason.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A brain undoes its completed stages, the last one first, before it fails or is cancelled.
    UndoStart {
        /// Why.
        cause: UndoCause,
        /// The steps that undo, in order. Each is a step of the brain from now on.
        steps: Vec<UndoStep>,
    },
    /// A step that undoes a stage failed for good. The rest is undone nevertheless.
    UndoFailed {
        /// What went wrong.
        message: String,
    },
    /// The run was paused: nothing new starts.
    BrainPaused {
        /// The signal.
        signal: SignalId,
        /// Who sent it.
        #[serde(default, skip_serializing_if = "is_default")]
        actor: Actor,
        /// Why the engine paused it: the process ended too often during the same work. `None` if a person paused it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<Failure>,
    },
    /// The run was resumed.
    BrainResumed {
        /// The signal.
        signal: SignalId,
        /// Who sent it.
        #[serde(default, skip_serializing_if = "is_default")]
        actor: Actor,
    },
    /// A step begins.
    StepStart {
        /// The try, from 0.
        #[serde(default, skip_serializing_if = "is_default")]
        attempt: u32,
    },
    /// A step returned the next state.
    StepComplete {
        /// The change; `None` if the state is the same.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        change: Option<Change>,
        /// The time since its start, stored in microseconds.
        #[serde(with = "crate::record::encoding::micros")]
        duration: Duration,
    },
    /// A step failed and will be retried; or a brain fails in the next event, and its stage will run it again under another path.
    StepRetry {
        /// The failed try, from 0.
        attempt: u32,
        /// What went wrong.
        message: String,
        /// When it is retried.
        due: Timestamp,
    },
    /// A step asked a model beyond a limit. It reruns, with its recorded answers and values, when a
    /// person has decided.
    StepBlocked {},
    /// A step or a tool computed a value that a rerun does not compute again.
    ValueRecorded {
        /// The author's name for it.
        name: String,
        /// The value.
        value: Arc<Value>,
    },
    /// A step or a tool is about to start a child run.
    ChildStart(ChildRun),
    /// A loop begins.
    LoopStart {
        /// The opening user message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<String>,
        /// The sender; the engine if neither the loop nor a person provides a message, since providers require one.
        #[serde(default, skip_serializing_if = "is_default")]
        from: Speaker,
        /// The sender's id of that message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_id: Option<String>,
        /// The files of that message.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        files: Vec<FileRef>,
        /// Whether the loop's record is hidden from people.
        #[serde(default, skip_serializing_if = "is_default")]
        hidden: bool,
        /// The loop whose dialogue it continues.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        continues: Option<Box<ContinuedLoop>>,
        /// The limits.
        limits: Limits,
    },
    /// An iteration begins.
    LoopIteration(Box<Iteration>),
    /// A request is about to be sent.
    LoopModelCall {
        /// The try, from 0.
        #[serde(default, skip_serializing_if = "is_default")]
        attempt: u32,
        /// The provider and model, as `provider/model`.
        model: String,
        /// The question of a step; an iteration's request follows from the log.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        question: Option<Question>,
    },
    /// The model answered.
    LoopModelResult {
        /// The parts of the answer in order.
        parts: Arc<[Part]>,
        /// The metadata of the answer.
        metadata: ResponseMetadata,
        /// The time from the request to the end of the answer, stored in microseconds.
        #[serde(with = "crate::record::encoding::micros")]
        duration: Duration,
    },
    /// The model failed and will be asked again.
    LoopModelRetry {
        /// The failed try, from 0.
        attempt: u32,
        /// What went wrong.
        error: ModelError,
        /// When it is asked again.
        due: Timestamp,
    },
    /// The model's answer is not a valid structured action, or a guard refused it. It is asked again with the error, or the loop
    /// fails.
    LoopAnswerRefused {
        /// The answered try, from 0.
        attempt: u32,
        /// The guard that refused it; `None` for an invalid structured action.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        guard: Option<String>,
        /// The error, which the model reads.
        message: String,
        /// The parts of the answer in order, as the model gave them.
        parts: Arc<[Part]>,
        /// The calls of an answer that a guard refused, in order. They did not run.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<ProposedCall>,
        /// The metadata of the answer.
        metadata: Box<ResponseMetadata>,
        /// The time from the request to the end of the answer, stored in microseconds.
        #[serde(with = "crate::record::encoding::micros")]
        duration: Duration,
    },
    /// A guard replaced an answer, the arguments or the result of a call, or a message of a person. The event of the answer, the call or the
    /// result has what came in its place; that of a call is the one before.
    LoopGuardReplaced {
        /// The guard.
        guard: String,
        /// What it replaced: the text of the answer or the message, the arguments, or the result.
        replaced: Value,
        /// What the model reads instead of a message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<ReplacedInput>,
    },
    /// An answer broke after its provider had reported what it used, which counts. The next event says what became of the
    /// request: it is sent again, another model has answered it, or it has failed.
    LoopAnswerBroken {
        /// What was reported of the answer.
        metadata: Box<ResponseMetadata>,
    },
    /// The model requested a call.
    LoopToolCall(Box<ToolCall>),
    /// A tool is about to run.
    LoopToolStart {
        /// The try, from 0.
        #[serde(default, skip_serializing_if = "is_default")]
        attempt: u32,
        /// Whether it runs apart from the run's worker, so that the next worker still gets its outcome.
        #[serde(default, skip_serializing_if = "is_default")]
        detached: bool,
    },
    /// A tool failed temporarily and will be retried.
    LoopToolRetry {
        /// The failed try, from 0.
        attempt: u32,
        /// What went wrong.
        message: String,
        /// When it is retried.
        due: Timestamp,
    },
    /// A call has its result.
    LoopToolResult {
        /// The result.
        result: ToolResult,
        /// The time since the tool's start, stored in microseconds; `None` for a call that never ran.
        #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::record::encoding::micros::optional")]
        duration: Option<Duration>,
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
    /// A brain called as a tool ended, successfully or not.
    LoopBrainComplete {
        /// Its result.
        #[serde(default, deserialize_with = "document::present", skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
        /// Its error.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// Whether it has handed the dialogue back, so that the loop of the call goes on.
        #[serde(default, skip_serializing_if = "is_default")]
        handed_back: bool,
    },
    /// A tool shows a side output.
    LoopOutput {
        /// The output's own id.
        id: PublicId,
        /// The output.
        #[serde(flatten)]
        output: SideOutput,
    },
    /// A tool sets or deletes a trigger; its result follows.
    LoopTrigger {
        /// The change.
        change: TriggerChange,
    },
    /// A person is asked whether a call may run.
    LoopApprovalRequested {
        /// The reason for the approval.
        reason: String,
        /// When the request expires.
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
        /// The edited arguments, if a person edited them.
        #[serde(default, deserialize_with = "document::present", skip_serializing_if = "Option::is_none")]
        arguments: Option<Value>,
        /// The reason of a rejection.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The signal.
        signal: SignalId,
        /// Who decided, and over which channel.
        #[serde(default, skip_serializing_if = "is_default")]
        actor: Actor,
    },
    /// The request is void, since something else ended the call.
    LoopApprovalWithdrawn {
        /// What ended it.
        cause: String,
    },
    /// The request expired.
    LoopApprovalExpired {},
    /// A call waits.
    LoopWait {
        /// The waits; the first answer counts.
        waits: Vec<WaitSpec>,
        /// What the tool returned before the wait.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        output: Value,
        /// The change of the loop's state.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        change: Option<Change>,
    },
    /// A waiting call resumes.
    LoopResume {
        /// Whether an answer arrived or the wait expired.
        #[serde(default, skip_serializing_if = "is_default")]
        cause: ResumeCause,
        /// The index of the answered wait, from 0.
        wait: u32,
        /// The answer.
        payload: Value,
        /// When the answer was received, if that was before the wait began: it may answer an earlier question.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        received: Option<Timestamp>,
        /// The signal with the answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signal: Option<SignalId>,
        /// Who sent it.
        #[serde(default, skip_serializing_if = "is_default")]
        actor: Actor,
    },
    /// An arm of a branch was chosen.
    BranchChosen(ArmShape),
    /// Several brains begin to run at the same time. Each is a brain of its own below the stage, with the path of its number:
    /// `Stage/0.17` is the one with the number 17.
    GroupStart {
        /// The brains, in order; one for all items of a `map`.
        brains: Vec<ArmShape>,
        /// The options of each brain, in order.
        options: Vec<Value>,
        /// How many work at the same time.
        limit: u32,
        /// When a race ends without a winner.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        due: Option<Timestamp>,
    },
    /// A round of a repeated brain is done, and the state is not. Another one follows, unless it was the last.
    RepeatRound {
        /// The number of the round, from 0.
        round: u32,
        /// The change of the state.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        change: Option<Change>,
    },
    /// A guard was checked. If it did not pass, the brain ends, and its remaining stages are skipped.
    GuardChecked {
        /// Whether it passed.
        passed: bool,
        /// Why it did not.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        reason: Value,
    },
    /// A stage waits.
    StageWait {
        /// The waits; the first answer counts.
        waits: Vec<WaitSpec>,
        /// When the stage ends without an answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        due: Option<Timestamp>,
        /// Whether the author has named that time, and not how long the stage waits: a fork keeps it.
        #[serde(default, skip_serializing_if = "is_default")]
        fixed: bool,
    },
    /// A waiting stage resumes.
    StageResume {
        /// Whether an answer arrived or the time is over.
        #[serde(default, skip_serializing_if = "is_default")]
        cause: ResumeCause,
        /// The index of the answered wait, from 0; the number of waits if the time is over.
        wait: u32,
        /// The answer.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        payload: Value,
        /// When the answer was received, if that was before the wait began: it may answer an earlier question.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        received: Option<Timestamp>,
        /// The signal with the answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signal: Option<SignalId>,
        /// Who sent it.
        #[serde(default, skip_serializing_if = "is_default")]
        actor: Actor,
    },
    /// A message to a loop arrived.
    LoopMessage {
        /// The text.
        text: String,
        /// The sender's id of the message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_id: Option<String>,
        /// The files.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        files: Vec<FileRef>,
        /// The sender.
        #[serde(default, skip_serializing_if = "is_default")]
        from: Speaker,
        /// The sender's own tools from this message on; `None` leaves those that it has given before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        caller_tools: Option<Vec<CallerTool>>,
        /// The signal with the message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signal: Option<SignalId>,
        /// Who sent it.
        #[serde(default, skip_serializing_if = "is_default")]
        actor: Actor,
    },
    /// An exit tool ended the loop.
    LoopExit {
        /// The call's path.
        call: crate::record::path::Path,
        /// The tool.
        tool: ToolId,
    },
    /// The limit of iterations ended the loop.
    LoopMaxIterations {
        /// The limit.
        limit: u32,
    },
    /// Another limit ended the loop.
    LoopLimit(LimitReached),
    /// A useless answer ended the loop: a refusal, a filtered or cut-off one, or several empty ones.
    LoopStopped {
        /// The fault of the answer.
        cause: AnswerFault,
        /// A message with the fault and what to do.
        message: String,
    },
    /// A loop or a brain has reached a limit, and a person is asked for more. The request is void when the loop or the brain
    /// ends for another reason.
    BudgetRequested(BudgetRequest),
    /// A person granted or rejected more.
    BudgetDecided {
        /// What was decided.
        decision: Decision,
        /// The granted amounts.
        #[serde(default, skip_serializing_if = "is_default")]
        more: Amounts,
        /// The reason of a rejection.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The signal.
        signal: SignalId,
        /// Who decided, and over which channel.
        #[serde(default, skip_serializing_if = "is_default")]
        actor: Actor,
    },
    /// The request expired, which counts as a rejection.
    BudgetExpired {},
    /// An application updates the state of a plugin. The plugin's code takes the update before the loop's next iteration, or before the
    /// loop ends.
    LoopPluginUpdate {
        /// The plugin.
        plugin: String,
        /// The update, as the plugin's code understands it.
        update: Arc<Value>,
        /// The signal.
        signal: SignalId,
        /// Who sent it.
        #[serde(default, skip_serializing_if = "is_default")]
        actor: Actor,
    },
    /// A plugin's state was changed outside of `prepare`: by an answer, by a call, or by an application.
    LoopPluginChanged {
        /// The plugin.
        plugin: String,
        /// The change of its state.
        #[serde(flatten)]
        step: PluginChange,
        /// The `LOOP_PLUGIN_UPDATE` of an application that the plugin has taken with it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        update: Option<Seq>,
    },
    /// A plugin failed, and the loop continues without it.
    LoopPluginFailed {
        /// The plugin.
        plugin: String,
        /// What went wrong.
        message: String,
        /// The `LOOP_PLUGIN_UPDATE` of an application that the plugin has refused, which is all that failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        update: Option<Seq>,
    },
    /// The older messages were summarised for the model, or restored; the record is unchanged.
    LoopCompacted {
        /// How many of the latest messages stay unchanged.
        #[serde(default, skip_serializing_if = "is_default")]
        keep: u64,
        /// The replacement of the messages before them. `None` restores all messages.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        summary: Option<String>,
    },
    /// A loop ended; always its last event.
    LoopComplete {
        /// How it ended.
        outcome: LoopOutcome,
        /// The tokens of the loop and everything below it.
        usage: Usage,
        /// The change that `on_exit` made.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        change: Option<Change>,
    },
}
