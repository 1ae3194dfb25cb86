//! The worker's side of detached calls: hands them to the executor, and attaches to those of earlier workers.

use std::sync::Arc;

use futures::future::BoxFuture;

use super::call::{DetachedCall, DetachedOutcome, DetachedReply, InDoubt, ToolExecutor};
use super::change;
use crate::definition::{Invocation, StateValue, ToolBody, UntypedReply, Update, WaitDefinition, recordable};
use crate::error::{Error, Result};
use crate::record::Path;
use crate::runner::worker::Worker;

/// Returns the reply of a detached call.
pub(in crate::runner) fn performed(
    executor: Option<Arc<dyn ToolExecutor>>,
    call: DetachedCall,
) -> BoxFuture<'static, Result<UntypedReply>> {
    Box::pin(async move {
        let outcome = match executor {
            Some(executor) => executor.execute(call).await,
            None => DetachedOutcome::InDoubt {
                reason: "the call runs apart from its worker, and this worker has no executor to reach it; whether it \
                         had its effect is unknown"
                    .to_owned(),
            },
        };
        match outcome {
            DetachedOutcome::Returned(reply) => Ok(untyped(*reply)),
            DetachedOutcome::Failed { message, transient: true } => Err(Error::transient(message)),
            DetachedOutcome::Failed { message, transient: false } => Err(Error::permanent(message)),
            DetachedOutcome::InDoubt { reason } => Err(Error::permanent(InDoubt(reason))),
        }
    })
}

/// Returns whether the executor performs a call that is about to start.
pub(in crate::runner) fn is_taken(worker: &Worker, path: &Path, attempt: u32) -> bool {
    let Some(executor) = &worker.shared.runner.code.executor else { return false };
    let Some(call) = worker.state.call(path) else { return false };
    let is_function = worker
        .frames
        .tool(path, &call.tool)
        .is_some_and(|tool| tool.owner.is_none() && !tool.foreign && matches!(tool.body, ToolBody::Function { .. }));
    let (tool, arguments) = (call.tool.clone(), Arc::clone(&call.arguments));
    let invocation = Invocation { tool, arguments, flags: call.flags, attempt };
    is_function && executor.takes(&detached_call(worker, path, &invocation))
}

/// Returns whether the call at a path outlives the worker.
pub(in crate::runner) fn is_detached(worker: &Worker, path: &Path) -> bool {
    worker.state.call(path).is_some_and(|call| call.detached.is_some())
}

pub(in crate::runner) fn detached_call(worker: &Worker, path: &Path, call: &Invocation) -> DetachedCall {
    DetachedCall {
        run: worker.shared.run.clone(),
        brain: worker.shared.summary().brain.to_string(),
        path: path.clone(),
        attempt: call.attempt,
        tool: call.tool.clone(),
        may_repeat: call.flags.may_repeat(),
    }
}

/// Converts a reply from data. Its update of the state is a patch, which no code has encoded.
fn untyped(reply: DetachedReply) -> UntypedReply {
    let DetachedReply { output, brief, change, waits, triggers } = reply;
    let update = |patch| {
        Box::new(move |state: &StateValue| {
            let next = change::apply(state.json(), &patch)?;
            recordable("the next state", &next, state.max_bytes()).map(|()| next)
        }) as Update
    };
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
