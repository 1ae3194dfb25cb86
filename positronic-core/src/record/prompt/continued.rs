//! The dialogue of another loop that a loop continues, and the brain with which a conversation stays.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::record::encoding::skip::is_default;
use crate::record::path::Path;

/// The loop whose dialogue precedes that of another one. It is read from the log, so nothing is copied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContinuedLoop {
    /// The loop. If one of its calls runs the continuing loop, its dialogue ends before the answer with that call.
    pub path: Path,
    /// How much of its dialogue is read.
    #[serde(default, skip_serializing_if = "is_default")]
    pub dialogue: Dialogue,
    /// How many messages of people, which none of its iterations has sent, the continuing loop begins with.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unread: u32,
}

/// How much of a dialogue another loop reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialogue {
    /// All of it, with calls and results.
    #[default]
    Whole,
    /// The last messages, and more if the first of them is the result of a call.
    Last(u32),
    /// What was said: the texts and files of people and models, up to the last message of a person, without calls and reasoning.
    Said,
    /// The last message of a person alone, for a brain that gets a summary of the rest as an option.
    Message,
}

/// The call with which a loop handed its conversation over for good: the loop makes it again in the next run, before it asks a model.
#[expect(clippy::use_self, reason = "the page of the event format names the types of fields")]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HandedOver {
    /// The stage of the loop.
    pub stage: String,
    /// The tool that runs the brain.
    pub tool: String,
    /// The arguments of the call.
    #[serde(default, skip_serializing_if = "is_default")]
    pub arguments: Arc<Value>,
    /// The version of the brain that took over.
    #[serde(default, skip_serializing_if = "is_default")]
    pub version: u32,
    /// Its last state, also of a brain that does not keep it; one that does begins with it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub state: Arc<Value>,
    /// The same of the brain that took over, if it has handed over, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inner: Option<Box<HandedOver>>,
}

impl HandedOver {
    /// Returns whether it is of a call of this tool in the loop of this stage.
    pub(crate) fn is_of(&self, stage: &str, tool: &str) -> bool {
        self.stage == stage && self.tool == tool
    }
}
