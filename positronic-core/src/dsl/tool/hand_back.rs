//! What a model reads and writes to hand a dialogue back.

use schemars::JsonSchema;
use serde::Deserialize;

/// The description of a tool with which a model hands the dialogue back.
pub(super) const HAND_BACK: &str = "Hand the conversation back when you cannot help with the request.";

/// The arguments of that tool.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct HandBack {
    /// What the person wants, and why you hand it back.
    pub(super) reason: String,
}
