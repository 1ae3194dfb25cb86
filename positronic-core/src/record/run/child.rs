//! Child runs: runs with logs of their own that a step or a tool of another run has started.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::record::encoding::skip::is_default;
use crate::record::event::failure::Failure;
use crate::record::ids::RunId;
use crate::record::path::Path;

/// What connects a child run to its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ChildLink {
    /// It is cancelled when its parent ends.
    #[default]
    Linked,
    /// It is linked, and its end is a message to the loop whose call has started it; the loop waits for that.
    Background,
    /// It goes on after the end of its parent.
    Detached,
}

/// A child run, as its parent's log names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildRun {
    /// The author's name for it, or the tool that has started it.
    pub name: String,
    /// Its id.
    pub run: RunId,
    /// The title of its brain.
    pub title: String,
    /// What connects it to this run.
    #[serde(default, skip_serializing_if = "is_default")]
    pub link: ChildLink,
}

/// The run that has started a child run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParentRun {
    /// Its id.
    pub run: RunId,
    /// The step or call that has started the child.
    pub path: Path,
    /// What connects the child to it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub link: ChildLink,
}

/// How a child run has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChildEnd {
    /// It has completed, with this result.
    Completed(Value),
    /// It has failed.
    Failed(Failure),
    /// It was cancelled.
    Cancelled,
}
