//! Answers that are older than their questions.

use serde::{Deserialize, Serialize};

use crate::record::{Path, Seq, Timestamp};

/// An answer that was received before its call waited for it: a late one, perhaps, to a question that was asked before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OlderAnswer {
    /// The call.
    pub call: Path,
    /// Its tool.
    pub tool: String,
    /// When the answer was received.
    pub received: Timestamp,
    /// The event that gave it to the call.
    pub seq: Seq,
}
