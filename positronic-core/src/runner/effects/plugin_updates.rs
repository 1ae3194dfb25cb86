//! The updates of plugins that applications have sent: their plugins take them before an iteration, or before their loop ends.
//!
//! Both are moments at which no other code of the plugins runs, so no change is lost.

use serde_json::Value;

use crate::definition::LoopDefinition;
use crate::error::{Error, Result, caught_now};
use crate::machine::{OpenUpdate, plugin_updated};
use crate::record::{NewEvent, Path, PluginDocument, PluginStates};
use crate::runner::worker::Worker;

/// Returns whether a loop has updates that no plugin has taken.
pub(super) fn has_updates(worker: &Worker, path: &Path) -> bool {
    worker.state.loop_at(path).is_some_and(|frame| frame.path == *path && !frame.updates.is_empty())
}

/// Lets the plugins of a loop take the updates in the order in which they were sent, and returns the events of that.
pub(super) fn updated(worker: &Worker, path: &Path, definition: &LoopDefinition) -> Vec<NewEvent> {
    let frame = worker.state.loop_at(path).filter(|frame| frame.path == *path);
    let Some((frame, brain)) = frame.zip(worker.state.owner(path)) else { return Vec::new() };
    let (at, mut states) = (path.iteration(frame.iteration), brain.plugins.clone());
    let max_bytes = worker.shared.runner.settings.max_document_bytes;
    let mut new_events = Vec::with_capacity(frame.updates.len());
    for update in &frame.updates {
        let taken = taken(definition, &states, update, max_bytes);
        let result = taken.as_ref().map_err(|error| format!("the plugin {} refused an update: {error}", update.plugin));
        new_events.push(plugin_updated(&at, &states, update, result));
        if let Ok(next) = taken {
            states.set(&update.plugin, next);
        }
    }
    new_events
}

fn taken(
    definition: &LoopDefinition,
    states: &PluginStates,
    OpenUpdate { plugin: name, update, .. }: &OpenUpdate,
    max_bytes: usize,
) -> Result<PluginDocument> {
    let plugin = definition.plugins.get(name.as_str());
    let plugin = plugin.ok_or_else(|| Error::new("the loop does not have the plugin now"))?;
    let update: &Value = update;
    let next = caught_now(|| plugin.update(states.get(name), update, max_bytes))?;
    next.ok_or_else(|| Error::new("it has no state"))
}
