//! The events of AG-UI 1.0, and the messages of its snapshots, as they go over the wire.

use serde::Serialize;
use serde_json::{Map, Value};

/// An event. Absent fields are left out: the protocol has no nulls.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE", rename_all_fields = "camelCase")]
pub(crate) enum Event {
    RunStarted {
        thread_id: String,
        run_id: String,
        protocol_version: &'static str,
    },
    RunFinished {
        thread_id: String,
        run_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
        outcome: Outcome,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        usage: Vec<TokenUsage>,
    },
    RunError {
        message: String,
        code: String,
    },
    StateSnapshot {
        snapshot: Value,
    },
    StateDelta {
        delta: Value,
    },
    MessagesSnapshot {
        messages: Vec<Message>,
    },
    StepStarted {
        step_name: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        subagent_run_id: Option<String>,
    },
    StepFinished {
        step_name: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        subagent_run_id: Option<String>,
    },
    SubagentStarted {
        subagent_run_id: String,
        name: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_subagent_run_id: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_tool_call_id: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_message_id: Option<String>,
    },
    SubagentFinished {
        subagent_run_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
        outcome: SubagentOutcome,
    },
    SubagentError {
        subagent_run_id: String,
        message: String,
    },
    TextMessageStart {
        message_id: String,
        role: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        subagent_run_id: Option<String>,
    },
    TextMessageContent {
        message_id: String,
        delta: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        subagent_run_id: Option<String>,
    },
    TextMessageEnd {
        message_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        subagent_run_id: Option<String>,
    },
    ReasoningStart {
        message_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        subagent_run_id: Option<String>,
    },
    ReasoningMessageStart {
        message_id: String,
        role: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        subagent_run_id: Option<String>,
    },
    ReasoningMessageContent {
        message_id: String,
        delta: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        subagent_run_id: Option<String>,
    },
    ReasoningMessageEnd {
        message_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        subagent_run_id: Option<String>,
    },
    ReasoningEnd {
        message_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        subagent_run_id: Option<String>,
    },
    ToolCallStart {
        tool_call_id: String,
        tool_call_name: String,
        parent_message_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        subagent_run_id: Option<String>,
    },
    ToolCallArgs {
        tool_call_id: String,
        delta: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        subagent_run_id: Option<String>,
    },
    ToolCallEnd {
        tool_call_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        subagent_run_id: Option<String>,
    },
    ToolCallResult {
        message_id: String,
        tool_call_id: String,
        content: String,
        role: &'static str,
        metadata: Value,
        #[serde(skip_serializing_if = "Option::is_none")]
        subagent_run_id: Option<String>,
    },
    ActivitySnapshot {
        message_id: String,
        activity_type: String,
        content: Map<String, Value>,
        replace: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        subagent_run_id: Option<String>,
    },
    Custom {
        name: String,
        value: Value,
        #[serde(skip_serializing_if = "Option::is_none")]
        subagent_run_id: Option<String>,
    },
}

/// How a leg ends.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(crate) enum Outcome {
    /// The run has completed, or waits for the results of these calls of the client's own tools.
    Success {
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pending_tool_call_ids: Vec<String>,
    },
    Cancelled,
    Interrupt {
        interrupts: Vec<Interrupt>,
    },
}

/// How a nested brain ends, or that it is suspended.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(crate) enum SubagentOutcome {
    Success,
    Suspended {
        #[serde(skip_serializing_if = "Vec::is_empty")]
        interrupt_ids: Vec<String>,
    },
}

/// What a run waits for.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Interrupt {
    pub(crate) id: String,
    pub(crate) reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool_call_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) response_schema: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) expires_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) subagent_run_id: Option<String>,
    pub(crate) metadata: Value,
}

/// The tokens of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TokenUsage {
    pub(crate) input_tokens: u64,
    pub(crate) output_tokens: u64,
    pub(crate) total_tokens: u64,
    pub(crate) reasoning_tokens: u64,
    pub(crate) cached_input_tokens: u64,
    pub(crate) cache_write_input_tokens: u64,
}

/// A message of a snapshot.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "role", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(crate) enum Message {
    User {
        id: String,
        content: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        subagent_run_id: Option<String>,
    },
    Assistant {
        id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        content: Option<String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ToolCall>,
        #[serde(skip_serializing_if = "Option::is_none")]
        subagent_run_id: Option<String>,
    },
    Reasoning {
        id: String,
        content: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        subagent_run_id: Option<String>,
    },
    Tool {
        id: String,
        content: String,
        tool_call_id: String,
        metadata: Value,
        #[serde(skip_serializing_if = "Option::is_none")]
        subagent_run_id: Option<String>,
    },
    Activity {
        id: String,
        activity_type: String,
        content: Map<String, Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        subagent_run_id: Option<String>,
    },
}

/// A call in an assistant's message.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct ToolCall {
    pub(crate) id: String,
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    pub(crate) function: Function,
}

/// The tool of a call and its arguments as JSON text.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) arguments: String,
}
