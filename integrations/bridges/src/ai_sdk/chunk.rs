//! The chunks of the UI message stream, as they go over the wire.

use positronic_server::extension::Frame;
use serde::Serialize;
use serde_json::Value;

/// A chunk of the stream.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum StreamChunk {
    Plain(Chunk),
    Data(Data),
}

impl StreamChunk {
    pub(super) fn frame(&self) -> Frame {
        match self {
            Self::Plain(chunk) => Frame::json(chunk),
            Self::Data(data) => Frame::json(data),
        }
    }
}

/// A chunk of a kind of the protocol. Absent fields are left out: the protocol has no nulls.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub(super) enum Chunk {
    Start {
        message_id: String,
        message_metadata: Value,
    },
    StartStep,
    FinishStep,
    ResetStep,
    TextStart {
        id: String,
    },
    TextDelta {
        id: String,
        delta: String,
    },
    TextEnd {
        id: String,
    },
    ReasoningStart {
        id: String,
    },
    ReasoningDelta {
        id: String,
        delta: String,
    },
    ReasoningEnd {
        id: String,
    },
    SourceUrl {
        source_id: String,
        url: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<String>,
    },
    ToolInputStart {
        tool_call_id: String,
        tool_name: String,
        dynamic: bool,
    },
    ToolInputDelta {
        tool_call_id: String,
        input_text_delta: String,
    },
    ToolInputAvailable {
        tool_call_id: String,
        tool_name: String,
        input: Value,
        dynamic: bool,
    },
    ToolApprovalRequest {
        approval_id: String,
        tool_call_id: String,
        reason: String,
        /// If the caller may not decide: `answerable`, which is false, and `refused`, which says why.
        #[serde(skip_serializing_if = "Option::is_none")]
        approval_descriptor: Option<Value>,
    },
    ToolApprovalResponse {
        approval_id: String,
        approved: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    ToolOutputAvailable {
        tool_call_id: String,
        output: Value,
        dynamic: bool,
    },
    ToolOutputError {
        tool_call_id: String,
        error_text: String,
        dynamic: bool,
    },
    ToolOutputDenied {
        tool_call_id: String,
    },
    SteeringMessage {
        id: String,
        parts: Vec<TextPart>,
    },
    MessageMetadata {
        message_metadata: Value,
    },
    Finish {
        finish_reason: &'static str,
    },
    Error {
        error_text: String,
    },
    Abort {
        reason: String,
    },
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub(super) enum TextPart {
    Text { text: String },
}

/// A chunk of data: a later one with the same id replaces it. A transient one is not kept in the message.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Data {
    #[serde(rename = "type")]
    pub(super) kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
    pub(super) data: Value,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) transient: bool,
}

impl Data {
    pub(super) fn new(kind: &str, id: impl Into<String>, data: Value) -> Self {
        Self { kind: format!("data-{kind}"), id: Some(id.into()), data, transient: false }
    }

    pub(super) fn transient(kind: &str, data: Value) -> Self {
        Self { kind: format!("data-{kind}"), id: None, data, transient: true }
    }
}
