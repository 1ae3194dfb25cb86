//! A tool's function in a task of its own, with the plugins around it and its time limit.

use std::sync::Arc;

use super::guards::check_result;
use super::plugin_hooks::around;
use super::recheck_edited_arguments::check_edit;
use super::report::EffectOutcome;
use super::state_owner::owner_scope;
use crate::definition::{Invocation, ToolBody};
use crate::error::Error;
use crate::record::Path;
use crate::runner::detached::attach::{detached_call, performed};
use crate::runner::worker::Worker;

pub(super) fn spawn(worker: &mut Worker, path: &Path, attempt: u32) {
    let invoked = worker.state.call(path).map(|call| {
        let (tool, arguments) = (call.tool.clone(), Arc::clone(&call.arguments));
        (Invocation { tool, arguments, flags: call.flags, attempt }, call.edited, call.detached.is_some())
    });
    let Some((call, edited, detached)) = invoked else { return };
    let detached = detached.then(|| detached_call(worker, path, &call));
    let definition = worker.frames.tool(path, &call.tool).cloned();
    let loop_at = worker.frames.enclosing_loop(path).cloned();
    let Some(scope) = worker.scope(path.clone()) else { return };
    let (shared, link) = (Arc::clone(&worker.shared), Arc::clone(&worker.link));
    worker.launch(
        path.clone(),
        true,
        Box::pin(async move {
            let started = shared.now();
            // What few calls need is boxed, so that the futures of the others are small.
            let checked = match definition.as_deref().filter(|_| edited) {
                Some(definition) => {
                    let clock = &*shared.runner.clock;
                    Box::pin(check_edit(clock, loop_at.as_deref(), definition, &scope, &call)).await
                }
                None => Ok(()),
            };
            let mut replaced = Vec::new();
            let result = match (checked, definition.as_ref().map(|definition| (&definition.body, definition.timeout))) {
                (Err(refused), _) => Err(refused),
                (Ok(()), Some((ToolBody::Function { execute, .. }, timeout))) => {
                    let (tool, execute) = (definition.as_ref().map(Arc::clone), Arc::clone(execute));
                    let (arguments, inner) = (Arc::clone(&call.arguments), scope.clone());
                    let executor = shared.runner.code.executor.clone();
                    let is_detached = detached.is_some();
                    let running = around(loop_at.as_deref(), &scope, &call, move || match detached {
                        Some(call) => link.outside(&inner.path, performed(executor, call)),
                        None => Box::pin(async move { execute(arguments, owner_scope(tool.as_deref(), inner)?).await }),
                    });
                    let mut result = None;
                    let work = Box::pin(async { result = Some(running.await) });
                    // The performer of a detached call limits the time of the tool, and the runner that of the plugins around it.
                    let (what, limited) = match is_detached {
                        true => ("a plugin around the tool", scope.link.limit(&scope.path, work).await),
                        false => {
                            ("the tool", shared.runner.clock.limit(timeout, work).await.then_some(()).ok_or(timeout))
                        }
                    };
                    let limit = limited.err().unwrap_or(timeout);
                    result.filter(|_| limited.is_ok()).unwrap_or_else(|| {
                        Err(Error::new(format!(
                            "{what} took longer than {limit:?}; whether it had its effect is unknown"
                        )))
                    })
                }
                (Ok(()), Some((ToolBody::Brain(_), _)) | None) => {
                    Err(Error::new(format!("the tool `{}` no longer exists", call.tool)))
                }
            };
            let is_guarded = loop_at.as_deref().is_some_and(|definition| !definition.guards.is_empty());
            let result = match result {
                Ok(mut reply) if is_guarded => {
                    let checking = check_result(loop_at.as_deref(), &scope, &call.tool, &mut reply, &mut replaced);
                    Box::pin(checking).await.map(|()| reply)
                }
                result => result,
            };
            EffectOutcome::Tool { result, replaced, attempt, took: shared.since(started) }
        }),
    );
}
