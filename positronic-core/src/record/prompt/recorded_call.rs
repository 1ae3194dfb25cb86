//! The call of a tool in a record.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::answer_without_text::AnswerWithoutText;
use super::approval::Approval;
use super::call::{CallFlags, CallState};
use crate::record::encoding::document;
use crate::record::encoding::skip::is_default;
use crate::record::event::result::ToolResult;
use crate::record::ids::PublicId;
use crate::record::path::Path;

/// A call, with its result if it has one.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ToolOutput {
    /// The call's path.
    pub path: Path,
    /// The tool, or the name that the model wrote if the tool does not exist.
    pub tool: String,
    /// The arguments that the model proposed.
    pub arguments: Arc<Value>,
    /// The arguments that ran, if a person edited them.
    #[serde(default, deserialize_with = "document::present")]
    pub edited: Option<Value>,
    /// The state of the call.
    pub state: CallState,
    /// What the tool promises.
    #[serde(default)]
    pub flags: CallFlags,
    /// Whether the brain that took the dialogue over with this call has handed it back. Then the call does not end its loop.
    #[serde(default)]
    pub handed_back: bool,
    /// The approval that it needs: the question, and what became of it.
    #[serde(default)]
    pub approval: Option<Box<Approval>>,
    /// Its result.
    #[serde(default)]
    pub result: Option<ToolResult>,
    /// The provider's id.
    #[serde(default)]
    pub provider_id: Option<String>,
    /// Provider data that is sent back unchanged.
    #[serde(default, deserialize_with = "document::present")]
    pub data: Option<Value>,
    /// The model's answer, if it has no text and this is its first call.
    #[serde(default)]
    pub answer: Option<Box<AnswerWithoutText>>,
}

impl ToolOutput {
    /// Returns the call's public id, which people and bridges use to address it; unique within its run. It follows from the
    /// path.
    #[must_use]
    pub fn public_id(&self) -> PublicId {
        self.path.public_id()
    }

    /// Returns whether its success ends its loop.
    pub(crate) const fn ends_loop(&self) -> bool {
        self.flags.exit && !self.handed_back
    }

    /// Returns whether its brain takes the dialogue over, and has not handed it back.
    pub(crate) const fn hands_over(&self) -> bool {
        self.flags.handoff && !self.handed_back
    }
}

/// Serializes with the public id. It is a hash, which would take a fifth of the time of recording a call, so the record has none.
impl Serialize for ToolOutput {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Fields<'a> {
            path: &'a Path,
            public_id: PublicId,
            tool: &'a str,
            arguments: &'a Value,
            #[serde(skip_serializing_if = "Option::is_none")]
            edited: Option<&'a Value>,
            state: CallState,
            #[serde(skip_serializing_if = "is_default")]
            flags: CallFlags,
            #[serde(skip_serializing_if = "is_default")]
            handed_back: bool,
            #[serde(skip_serializing_if = "Option::is_none")]
            approval: Option<&'a Approval>,
            #[serde(skip_serializing_if = "Option::is_none")]
            result: Option<&'a ToolResult>,
            #[serde(skip_serializing_if = "Option::is_none")]
            provider_id: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            data: Option<&'a Value>,
            #[serde(skip_serializing_if = "Option::is_none")]
            answer: Option<&'a AnswerWithoutText>,
        }
        let fields = Fields {
            path: &self.path,
            public_id: self.public_id(),
            tool: &self.tool,
            arguments: &self.arguments,
            edited: self.edited.as_ref(),
            state: self.state,
            flags: self.flags,
            handed_back: self.handed_back,
            approval: self.approval.as_deref(),
            result: self.result.as_ref(),
            provider_id: self.provider_id.as_deref(),
            data: self.data.as_ref(),
            answer: self.answer.as_deref(),
        };
        fields.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::record::{Gate, MadeBy, Part};

    /// Its `Serialize` and its `Deserialize` are made apart. A new field does not compile here, and one that is not written is found.
    #[test]
    fn call_is_read_as_it_was_written() {
        let full = ToolOutput {
            path: Path::root().stage("Chat").call(0, 1),
            tool: "pay".to_owned(),
            arguments: Arc::new(json!({ "amount": 1 })),
            edited: Some(json!({ "amount": 2 })),
            state: CallState::Done,
            flags: CallFlags { exit: true, handoff: true, ..CallFlags::default() },
            handed_back: true,
            approval: Some(
                Approval::of_gate(&Gate { reason: "money".to_owned(), valid_for: None, editable: true }).into(),
            ),
            result: Some(ToolResult::success("paid")),
            provider_id: Some("c1".to_owned()),
            data: Some(json!({ "signature": "s" })),
            answer: Some(Box::new(AnswerWithoutText {
                iteration: 0,
                parts: vec![Part::Call { index: 1 }].into(),
                cost: None,
                by: MadeBy::default(),
                duration: None,
            })),
        };
        let mut written = serde_json::to_value(&full).unwrap();
        assert_eq!(serde_json::from_value::<ToolOutput>(written.clone()).unwrap(), full);

        let public_id = written.as_object_mut().unwrap().remove("public_id");
        assert_eq!(public_id, Some(json!(full.public_id())));
        let ToolOutput {
            path,
            tool,
            arguments,
            edited,
            state,
            flags,
            handed_back,
            approval,
            result,
            provider_id,
            data,
            answer,
        } = &full;
        let fields = json!({
            "path": path,
            "tool": tool,
            "arguments": arguments,
            "edited": edited,
            "state": state,
            "flags": flags,
            "handed_back": handed_back,
            "approval": approval,
            "result": result,
            "provider_id": provider_id,
            "data": data,
            "answer": answer,
        });
        assert_eq!(written, fields);
    }

    #[test]
    fn empty_fields_of_a_call_are_left_out() {
        let plain = ToolOutput {
            path: Path::root().stage("Chat").call(0, 0),
            tool: "look".to_owned(),
            arguments: Arc::new(json!({})),
            edited: None,
            state: CallState::Queued,
            flags: CallFlags::default(),
            handed_back: false,
            approval: None,
            result: None,
            provider_id: None,
            data: None,
            answer: None,
        };
        let written = serde_json::to_value(&plain).unwrap();
        let fields: Vec<_> = written.as_object().unwrap().keys().collect();
        assert_eq!(fields, ["arguments", "path", "public_id", "state", "tool"]);
        assert_eq!(serde_json::from_value::<ToolOutput>(written).unwrap(), plain);
    }
}
