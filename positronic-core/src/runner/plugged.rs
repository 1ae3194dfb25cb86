//! The plugins of a loop, in the order of registration: around an iteration, an answer and a call.

use futures::future::BoxFuture;

use super::async_effects::{caught, caught_now};
use crate::definition::{Invocation, LoopDefinition, NextCall, Scope, UntypedReply};
use crate::error::{Error, Result};
use crate::record::{ModelResponse, PluginStates};

/// An iteration with what its plugins have added.
pub(super) struct PreparedIteration {
    pub(super) definition: LoopDefinition,
    /// What the plugins keep from then on.
    pub(super) plugins: PluginStates,
}

/// Lets the plugins of a loop add to an iteration, and then look at its whole request.
pub(super) async fn prepared(mut definition: LoopDefinition, mut scope: Scope) -> Result<PreparedIteration> {
    let plugins = definition.plugins.clone();
    for (name, plugin) in &plugins {
        let named = |error: Error| Error::new(format!("the plugin `{name}` failed: {error}"));
        let kept = caught(plugin.prepare(scope.clone(), &mut definition)).await.map_err(named)?;
        scope.plugins.set(name, kept);
    }
    definition.mark_exits()?;
    for (name, plugin) in &plugins {
        let named = |error: Error| Error::new(format!("the plugin `{name}` refused the request: {error}"));
        let kept = caught(plugin.request(scope.clone(), &mut definition)).await.map_err(named)?;
        scope.plugins.set(name, kept);
    }
    Ok(PreparedIteration { definition, plugins: scope.plugins })
}

/// Finds the tools that the plugins of a loop have added to an iteration that has begun. What a plugin says about it is in the
/// log, so one that fails now only lacks its tools.
pub(super) async fn found_again(mut definition: LoopDefinition, mut scope: Scope) -> LoopDefinition {
    let plugins = definition.plugins.clone();
    for (name, plugin) in &plugins {
        match caught(plugin.prepare(scope.clone(), &mut definition)).await {
            Ok(kept) => scope.plugins.set(name, kept),
            Err(error) => {
                tracing::warn!(run = %scope.run, path = %scope.path, plugin = name, %error, "its tools are not found again");
            }
        }
    }
    // A name that no tool has any more marks nothing.
    _ = definition.mark_exits();
    for (name, plugin) in &plugins {
        if let Ok(kept) = caught(plugin.request(scope.clone(), &mut definition)).await {
            scope.plugins.set(name, kept);
        }
    }
    definition
}

/// Lets the plugins of a loop look at an answer. Answers with what they keep, and what those that failed say.
pub(super) async fn inspected(
    definition: &LoopDefinition,
    mut scope: Scope,
    response: &ModelResponse,
) -> (PluginStates, Vec<(&'static str, String)>) {
    let mut failed = Vec::new();
    for (name, plugin) in &definition.plugins {
        match caught(plugin.response(scope.clone(), response)).await {
            Ok(kept) => scope.plugins.set(name, kept),
            Err(error) => failed.push((*name, error.to_string())),
        }
    }
    (scope.plugins, failed)
}

/// Runs a call with the plugins of its loop around it; the one that was registered first is the outermost.
pub(super) async fn around<'a>(
    definition: Option<&'a LoopDefinition>,
    scope: &Scope,
    call: &'a Invocation,
    tool: impl FnOnce() -> BoxFuture<'static, Result<UntypedReply>> + Send + 'a,
) -> Result<UntypedReply> {
    let mut next: NextCall<'a> = Box::new(|| match caught_now(|| Ok(tool())) {
        Ok(running) => Box::pin(caught(running)),
        Err(error) => Box::pin(std::future::ready(Err(error))),
    });
    for plugin in definition.iter().flat_map(|definition| definition.plugins.values().rev()) {
        let (inner, scope) = (next, scope.clone());
        next = Box::new(move || Box::pin(async move { caught(plugin.call(scope, call, inner)).await }));
    }
    next().await
}
