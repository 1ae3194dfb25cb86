//! Stored states of plugins, by the plugin's name.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::record::encoding::skip::is_default;
use crate::record::encoding::state_patch::{Change, ChangeError};

/// The stored state of a plugin.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PluginDocument {
    /// The version of the plugin's state type that wrote it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub version: u32,
    /// The state, canonical JSON.
    pub state: Arc<Value>,
}

/// The plugin states of a brain, by plugin name. Clones share them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PluginStates(Arc<BTreeMap<String, PluginDocument>>);

/// A change of a plugin's state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PluginChange {
    /// The version of the new state.
    #[serde(default, skip_serializing_if = "is_default")]
    pub version: u32,
    /// The change; the first one starts from `null`.
    #[serde(flatten)]
    pub change: Change,
}

impl PluginStates {
    /// Returns whether no plugin has a state.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the state of a plugin.
    #[must_use]
    pub fn get(&self, plugin: &str) -> Option<&PluginDocument> {
        self.0.get(plugin)
    }

    /// Lists the states, sorted by plugin name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &PluginDocument)> {
        self.0.iter().map(|(name, document)| (name.as_str(), document))
    }

    /// Sets the state of a plugin.
    pub fn set(&mut self, plugin: &str, document: PluginDocument) {
        Arc::make_mut(&mut self.0).insert(plugin.to_owned(), document);
    }

    /// Returns the change from a plugin's state to the next, `None` if it is the same.
    #[must_use]
    pub fn step(&self, plugin: &str, next: &PluginDocument) -> Option<PluginChange> {
        let version = next.version;
        let change = match self.get(plugin) {
            None => Some(Change::State(Value::clone(&next.state))),
            Some(before) if before.version != version => Some(Change::State(Value::clone(&next.state))),
            Some(before) => Change::between(&before.state, &next.state),
        };
        change.map(|change| PluginChange { version, change })
    }

    /// Applies a change.
    ///
    /// # Errors
    ///
    /// [`ChangeError`] when the change does not match the plugin's state, which is then unchanged.
    pub fn apply(&mut self, plugin: &str, step: &PluginChange) -> Result<(), ChangeError> {
        let mut document = self.get(plugin).cloned().unwrap_or_default();
        step.change.apply(Arc::make_mut(&mut document.state))?;
        document.version = step.version;
        self.set(plugin, document);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn document(version: u32, state: Value) -> PluginDocument {
        PluginDocument { version, state: Arc::new(state) }
    }

    #[test]
    fn change_leads_to_the_next_state_also_through_json() {
        let mut states = PluginStates::default();
        let long = "a sentence that would be costly to repeat in every event";
        for next in [
            document(0, json!({"note": long, "n": 1})),
            document(0, json!({"note": long, "n": 2})),
            document(1, json!({"count": 2})),
        ] {
            let step = states.step("counter", &next).unwrap();
            let line = serde_json::to_string(&step).unwrap();
            states.apply("counter", &serde_json::from_str(&line).unwrap()).unwrap();

            assert_eq!(states.get("counter"), Some(&next));
            assert_eq!(states.step("counter", &next), None);
        }
    }
}
