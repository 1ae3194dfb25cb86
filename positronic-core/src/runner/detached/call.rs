//! Detached calls as data, and the trait of those that perform them.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::record::{Path, RunId, TriggerChange, WaitSpec};

/// Performs tool calls apart from the workers of their runs.
pub trait ToolExecutor: Send + Sync + 'static {
    /// Returns whether the executor performs a call; the worker performs the others itself. By default it takes all.
    fn takes(&self, call: &DetachedCall) -> bool {
        _ = call;
        true
    }

    /// Performs a call, or attaches to it if it was begun before. The worker drops the future when the call is
    /// cancelled; [`PreparedCall::perform`](super::PreparedCall::perform) detects that in the log.
    fn execute(&self, call: DetachedCall) -> BoxFuture<'static, DetachedOutcome>;
}

impl<E: ToolExecutor + ?Sized> ToolExecutor for Arc<E> {
    fn takes(&self, call: &DetachedCall) -> bool {
        (**self).takes(call)
    }

    fn execute(&self, call: DetachedCall) -> BoxFuture<'static, DetachedOutcome> {
        (**self).execute(call)
    }
}

/// A tool call that runs apart from the worker of its run. `(run, path, attempt)` identifies it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DetachedCall {
    /// The run.
    pub run: RunId,
    /// The title of the run's brain.
    pub brain: String,
    /// The path of the call.
    pub path: Path,
    /// The try, from 0.
    pub attempt: u32,
    /// The tool.
    pub tool: String,
    /// Whether the tool may run again if it is unknown whether it had its effect: it is read-only or idempotent.
    pub may_repeat: bool,
}

/// The outcome of a detached call.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DetachedOutcome {
    /// The tool's function returned.
    Returned(Box<DetachedReply>),
    /// It failed, timed out, or could not be called.
    Failed {
        /// The error.
        message: String,
        /// Whether a retry may succeed.
        transient: bool,
    },
    /// Its process ended during the call, so it is unknown whether it had its effect.
    InDoubt {
        /// What happened.
        reason: String,
    },
}

/// The reply of a tool, as data.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DetachedReply {
    pub(super) output: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) brief: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) change: Option<json_patch::Patch>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) waits: Vec<(WaitSpec, Option<Duration>)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) triggers: Vec<TriggerChange>,
}

/// The error of a call whose outcome is unknown.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(in crate::runner) struct InDoubt(pub(in crate::runner) String);
