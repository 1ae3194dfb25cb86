//! The state that a tool sees and changes: that of its brain, or that of the plugin that added it.

use std::sync::Arc;

use serde_json::Value;

use crate::definition::{Scope, StateOwner, StateValue, ToolDefinition, Update};
use crate::error::{Result, caught_now};
use crate::machine::{StateChanges, plugin_steps};
use crate::record::{Change, Path, PluginStates};
use crate::runner::worker::Worker;

/// The states that the result of a call can change.
pub(super) struct CallStates {
    /// The state of the tool's owner.
    pub(super) document: StateValue,
    owner: Option<StateOwner>,
    plugins: PluginStates,
}

/// Returns the states that the result of a call can change; those of the brain for a stage.
pub(super) fn states(worker: &mut Worker, path: &Path) -> Option<Result<CallStates>> {
    let brain = worker.state.owner(path)?;
    let tool = worker.state.call(path).and_then(|call| worker.frames.tool(path, &call.tool));
    let (owner, plugins) = (tool.and_then(|tool| tool.owner.clone()), brain.plugins.clone());
    let document = match &owner {
        Some(owner) => owner.document(plugins.get(&owner.plugin), worker.shared.runner.settings.max_document_bytes),
        None => Ok(worker.frames.document(brain)),
    };
    Some(document.map(|document| CallStates { document, owner, plugins }))
}

/// Applies updates of a state in order, all or none. Returns the state after them; `None` without any.
pub(in crate::runner) fn updated(document: &StateValue, updates: Vec<Update>) -> Result<Option<Value>> {
    let (mut current, mut next) = (document.clone(), None);
    for update in updates {
        if let Some(next) = next {
            current = current.with_json(Arc::new(next));
        }
        next = Some(caught_now(|| update(&current))?);
    }
    Ok(next)
}

/// Replaces the state in a tool's scope by that of its owner: the plugin that added it, or the brain.
pub(in crate::runner) fn owner_scope(tool: Option<&ToolDefinition>, mut scope: Scope) -> Result<Scope> {
    if let Some(owner) = tool.and_then(|tool| tool.owner.as_ref()) {
        scope.state = owner.document(scope.plugins.get(&owner.plugin), scope.max_bytes())?;
    }
    Ok(scope)
}

impl CallStates {
    /// Applies the updates of a tool to the state of its owner, then those of plugins.
    pub(super) fn updated(
        self,
        path: &Path,
        updates: Vec<Update>,
        plugin_updates: Vec<(StateOwner, Update)>,
    ) -> Result<StateChanges> {
        let next = updated(&self.document, updates)?;
        self.step(path, next, plugin_updates)
    }

    /// Applies the next state of the owner, then the updates of the plugins that took part in the call.
    pub(super) fn step(
        self,
        path: &Path,
        next: Option<Value>,
        updates: Vec<(StateOwner, Update)>,
    ) -> Result<StateChanges> {
        let max_bytes = self.document.max_bytes();
        let mut after = self.plugins.clone();
        let mut changes = StateChanges::default();
        match (self.owner, next) {
            (Some(owner), Some(next)) if owner.has_state => after.set(&owner.plugin, owner.keep(Arc::new(next))),
            (None, Some(next)) => changes.change = Change::between(self.document.json(), &next),
            (Some(_), Some(_)) | (_, None) => {}
        }
        for (owner, update) in updates {
            let document = owner.document(after.get(&owner.plugin), max_bytes)?;
            let next = caught_now(|| update(&document))?;
            after.set(&owner.plugin, owner.keep(Arc::new(next)));
        }
        changes.new_events = plugin_steps(path, &self.plugins, &after);
        Ok(changes)
    }
}
