//! The events of what plugins store.

use crate::machine::OpenUpdate;
use crate::record::{Change, EventKind, NewEvent, Path, PluginChange, PluginDocument, PluginStates, Seq};

/// Returns the events that lead from what plugins store to what they store next.
pub(crate) fn plugin_steps(path: &Path, before: &PluginStates, after: &PluginStates) -> Vec<NewEvent> {
    let step = |(plugin, kept): (&str, _)| {
        let step = before.step(plugin, kept)?;
        Some(NewEvent::new(path.clone(), plugin_changed(plugin, step, None)))
    };
    after.iter().filter_map(step).collect()
}

/// Returns the event of what a plugin makes of an update that an application has sent: its next state, or why it refuses the update.
pub(crate) fn plugin_updated(
    path: &Path,
    before: &PluginStates,
    OpenUpdate { seq, plugin, .. }: &OpenUpdate,
    taken: Result<&PluginDocument, String>,
) -> NewEvent {
    let kind = match taken {
        Ok(after) => {
            let version = after.version;
            // That the plugin has taken it is recorded also if its state is the same.
            let same = || PluginChange { version, change: Change::Patch(json_patch::Patch(Vec::new())) };
            plugin_changed(plugin, before.step(plugin, after).unwrap_or_else(same), Some(*seq))
        }
        Err(message) => EventKind::LoopPluginFailed { plugin: plugin.clone(), message, update: Some(*seq) },
    };
    NewEvent::new(path.clone(), kind)
}

fn plugin_changed(plugin: &str, step: PluginChange, update: Option<Seq>) -> EventKind {
    EventKind::LoopPluginChanged { plugin: plugin.to_owned(), step, update }
}
