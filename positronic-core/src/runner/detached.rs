//! Tool calls that run apart from the worker of their run, for adapters of durable engines.
//!
//! ```text
//! worker   LOOP_TOOL_START (detached) ─▶ ToolExecutor::execute ────────────────────▶ LOOP_TOOL_RESULT
//!                                             │          ▲
//! the engine                                  ▼          │ outcome, as data
//!                                        Runner::prepare_call, PreparedCall::perform, in any process
//! ```
//!
//! The worker appends the intent, hands the call to its [`ToolExecutor`] and appends the outcome. When the worker ends
//! in between, the call is not in doubt: the next worker hands the same call to its executor, which attaches to the
//! call that is running or returns the outcome of the one that has ended. An executor therefore performs a call at
//! most once per `(run, path, attempt)`, and remembers its outcome.
//!
//! Only a tool's function runs apart. Plugins around the call run in the worker, as do the tools of plugins and brains
//! as tools. `cx.once` and files and widgets are appended to the log by the performer as they come;
//! `cx.progress` reaches readers in the performer's process only.
//!
//! A state update crosses processes as a patch. The performer computes it on the state at the end of the call. If
//! another call changes the same place before the worker applies it, the call's result is an error; appending to a
//! list never conflicts.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::detached_change;
pub use super::perform::PreparedCall;
use super::worker::Worker;
use crate::definition::{Invocation, StateValue, ToolBody, UntypedReply, Update, WaitDefinition};
use crate::error::{Error, Result};
use crate::machine::{Effect, RunState, detached};
use crate::record::{Path, RunId, TriggerChange, WaitSpec};

/// Performs tool calls apart from the workers of their runs.
pub trait ToolExecutor: Send + Sync + 'static {
    /// Returns whether the executor performs a call; the worker performs the others itself. By default it takes all.
    fn takes(&self, call: &DetachedCall) -> bool {
        _ = call;
        true
    }

    /// Performs a call, or attaches to it if it was begun before. The worker drops the future when the call is
    /// cancelled; [`PreparedCall::perform`] detects that in the log.
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
    output: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    brief: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    change: Option<json_patch::Patch>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    waits: Vec<(WaitSpec, Option<Duration>)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    triggers: Vec<TriggerChange>,
}

/// The error of a call whose outcome is unknown.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct InDoubt(pub(super) String);

impl DetachedReply {
    /// Converts the reply of a tool that changes `state`.
    pub(super) fn of(reply: UntypedReply, state: &StateValue) -> Result<Self> {
        // Plugins take part in a call around it, in the worker.
        let UntypedReply { output, brief, updates, plugin_updates: _, waits, triggers } = reply;
        let next = super::record_outcome::updated(state, updates)?;
        let change = next.map(|next| detached_change::between(state.json(), &next));
        let waits = waits.into_iter().map(|wait| (wait.spec, wait.valid_for)).collect();
        Ok(Self { output, brief, change, waits, triggers })
    }

    fn untyped(self) -> UntypedReply {
        let Self { output, brief, change, waits, triggers } = self;
        let update =
            |change| Box::new(move |state: &StateValue| detached_change::apply(state.json(), &change)) as Update;
        // The handler of an answer is found in the code when the answer arrives.
        let wait = |(spec, valid_for)| WaitDefinition { spec, valid_for, resume: None };
        UntypedReply {
            output,
            brief,
            updates: change.into_iter().map(update).collect(),
            plugin_updates: Vec::new(),
            waits: waits.into_iter().map(wait).collect(),
            triggers,
        }
    }
}

/// Returns the reply of a detached call.
pub(super) fn performed(
    executor: Option<Arc<dyn ToolExecutor>>,
    call: DetachedCall,
) -> BoxFuture<'static, Result<UntypedReply>> {
    Box::pin(async move {
        let may_repeat = call.may_repeat;
        let outcome = match executor {
            Some(executor) => executor.execute(call).await,
            None => DetachedOutcome::InDoubt {
                reason: "the call runs apart from its worker, and this worker has no executor to reach it; whether it \
                         had its effect is unknown"
                    .to_owned(),
            },
        };
        match outcome {
            DetachedOutcome::Returned(reply) => Ok(reply.untyped()),
            DetachedOutcome::Failed { message, transient: true } => Err(Error::transient(message)),
            DetachedOutcome::Failed { message, transient: false } => Err(Error::permanent(message)),
            DetachedOutcome::InDoubt { reason } if may_repeat => Err(Error::transient(reason)),
            DetachedOutcome::InDoubt { reason } => Err(Error::permanent(InDoubt(reason))),
        }
    })
}

impl Worker {
    /// Returns whether the executor performs a call that is about to start.
    pub(super) fn is_taken(&self, state: &RunState, path: &Path, attempt: u32) -> bool {
        let Some((executor, call)) = self.shared.runner.executor.as_ref().zip(state.call(path)) else { return false };
        let is_function = self
            .frames
            .tool(path, &call.tool)
            .is_some_and(|tool| tool.owner.is_none() && matches!(tool.body, ToolBody::Function { .. }));
        let (tool, arguments) = (call.tool.clone(), Arc::clone(&call.arguments));
        let invocation = Invocation { tool, arguments, flags: call.flags, attempt };
        is_function && executor.takes(&self.detached_call(path, &invocation))
    }

    pub(super) fn detached_call(&self, path: &Path, call: &Invocation) -> DetachedCall {
        DetachedCall {
            run: self.shared.run.clone(),
            brain: self.shared.summary().brain.to_string(),
            path: path.clone(),
            attempt: call.attempt,
            tool: call.tool.clone(),
            may_repeat: call.flags.may_repeat(),
        }
    }

    /// Attaches to the detached calls of earlier workers.
    pub(super) fn attach_detached(&mut self) {
        let calls = detached(&self.shared.state());
        for (path, attempt) in calls {
            self.start_effect(&Effect::Execute { path, attempt });
        }
    }
}
