//! The plugins of a loop in order of registration, around an iteration, an answer and a call.

use futures::future::BoxFuture;

use super::guards::{Refused, apply};
use super::hook_limit::in_time;
use crate::definition::{
    AnyPlugin, Inspected, Invocation, LoopDefinition, NextCall, PluginName, Scope, UntypedReply, Verdict,
};
use crate::error::{Error, Result, caught, caught_now};
use crate::machine::{Overdue, Replaced, Veto};
use crate::record::{ModelResponse, Part, PluginDocument, PluginStates};

/// An iteration with the additions of its plugins.
pub(in crate::runner) struct PreparedIteration {
    pub(super) definition: LoopDefinition,
    /// The next states of the plugins.
    pub(super) plugins: PluginStates,
}

/// Lets the plugins of a loop prepare an iteration, and then check its whole request.
pub(super) async fn prepared(mut definition: LoopDefinition, mut scope: Scope) -> Result<PreparedIteration> {
    let plugins = definition.plugins.clone();
    for (name, plugin) in &plugins {
        begin(name, &**plugin, &mut scope).map_err(|error| failed(name, &error))?;
    }
    for (name, plugin) in &plugins {
        let prepared = prepare(name, &**plugin, &scope, &mut definition).await;
        set(&mut scope, name, prepared.map_err(|error| failed(name, &error))?);
    }
    caught_now(|| definition.mark_exits())?;
    for (name, plugin) in &plugins {
        let named = |error: Error| match error.source().is::<Overdue>() {
            true => failed(name, &error),
            false => Error::permanent(Veto(format!("the plugin `{name}` refused the request: {error}"))),
        };
        let kept = request(name, &**plugin, &scope, &mut definition).await.map_err(named)?;
        set(&mut scope, name, kept);
    }
    Ok(PreparedIteration { definition, plugins: scope.plugins })
}

fn failed(name: &str, error: &Error) -> Error {
    let message = format!("the plugin `{name}` failed: {error}");
    if error.source().is::<Overdue>() { Error::permanent(Overdue(message)) } else { Error::new(message) }
}

async fn prepare(
    name: &PluginName,
    plugin: &dyn AnyPlugin,
    scope: &Scope,
    definition: &mut LoopDefinition,
) -> Result<Option<PluginDocument>> {
    in_time(scope, &scope.path, "its hook `prepare`", plugin.prepare(name.clone(), scope.clone(), definition)).await
}

async fn request(
    name: &PluginName,
    plugin: &dyn AnyPlugin,
    scope: &Scope,
    definition: &mut LoopDefinition,
) -> Result<Option<PluginDocument>> {
    in_time(scope, &scope.path, "its hook `request`", plugin.request(name.clone(), scope.clone(), definition)).await
}

/// Sets the state with which a plugin begins, so that those before it can read it.
fn begin(name: &PluginName, plugin: &dyn AnyPlugin, scope: &mut Scope) -> Result<()> {
    if scope.plugins.get(name).is_none() {
        let initial = caught_now(|| plugin.initial(scope.max_bytes()))?;
        set(scope, name, initial);
    }
    Ok(())
}

fn set(scope: &mut Scope, name: &str, kept: Option<PluginDocument>) {
    if let Some(kept) = kept {
        scope.plugins.set(name, kept);
    }
}

/// Restores the tools that plugins have added to an iteration. A plugin that fails now only lacks its tools: the rest
/// is in the log.
pub(in crate::runner) async fn found_again(mut definition: LoopDefinition, mut scope: Scope) -> LoopDefinition {
    let plugins = definition.plugins.clone();
    for (name, plugin) in &plugins {
        // Its `prepare` fails in the same way.
        _ = begin(name, &**plugin, &mut scope);
    }
    for (name, plugin) in &plugins {
        match prepare(name, &**plugin, &scope, &mut definition).await {
            Ok(kept) => set(&mut scope, name, kept),
            Err(error) => {
                tracing::warn!(run = %scope.run, path = %scope.path, plugin = %name, %error, "cannot restore the plugin's tools");
            }
        }
    }
    // A name without a tool marks nothing.
    _ = caught_now(|| definition.mark_exits());
    for (name, plugin) in &plugins {
        if let Ok(kept) = request(name, &**plugin, &scope, &mut definition).await {
            set(&mut scope, name, kept);
        }
    }
    definition
}

/// An answer that the plugins of a loop have let pass.
pub(super) struct Passed {
    /// The next states of the plugins.
    pub(super) plugins: PluginStates,
    /// The plugins that failed to look at it, and their errors.
    pub(super) failed: Vec<(String, String)>,
}

/// Lets the plugins of a loop inspect an answer, and adds the sources that they name, unless one of them refuses it.
pub(super) async fn inspected(
    definition: &LoopDefinition,
    mut scope: Scope,
    response: &mut ModelResponse,
    replaced: &mut Vec<Replaced>,
) -> Result<Passed, Refused> {
    let (mut failed, mut all) = (Vec::new(), Vec::new());
    for (name, plugin) in &definition.plugins {
        let mut inspected = Inspected::default();
        let inspecting = plugin.response(name.clone(), scope.clone(), response, &mut inspected);
        match in_time(&scope, &scope.path.about_answer(), "its hook `response`", inspecting).await {
            Ok(kept) => {
                apply(name, inspected.verdict, response, replaced)?;
                set(&mut scope, name, kept);
                all.extend(inspected.citations);
            }
            // What could not be checked does not pass.
            Err(error) if plugin.guards() => {
                apply(name, Verdict::Stop(format!("the guard failed: {error}")), response, replaced)?;
            }
            Err(error) => failed.push((name.to_string(), error.to_string())),
        }
    }
    if !all.is_empty() {
        response.parts.push(Part::Citations { citations: all, data: None });
    }
    Ok(Passed { plugins: scope.plugins, failed })
}

/// Runs a call with the plugins of its loop around it, the first one outermost.
pub(super) async fn around<'a>(
    definition: Option<&'a LoopDefinition>,
    scope: &Scope,
    call: &'a Invocation,
    tool: impl FnOnce() -> BoxFuture<'static, Result<UntypedReply>> + Send + 'a,
) -> Result<UntypedReply> {
    let Some(definition) = definition.filter(|definition| !definition.plugins.is_empty()) else {
        return caught(caught_now(|| Ok(tool()))?).await;
    };
    let mut next: NextCall<'a> = Box::new(|| match caught_now(|| Ok(tool())) {
        Ok(running) => Box::pin(caught(running)),
        Err(error) => Box::pin(std::future::ready(Err(error))),
    });
    for (name, plugin) in definition.plugins.iter().rev() {
        let (inner, name, scope) = (next, name.clone(), scope.clone());
        next = Box::new(move || Box::pin(async move { caught(plugin.call(name, scope, call, inner)).await }));
    }
    next().await
}
