//! The dialogue of another loop that a loop continues.

use serde::{Deserialize, Serialize};

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
}
