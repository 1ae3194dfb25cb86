//! The actions of a project: tools that all of its brains can use by name.

use std::fmt;
use std::sync::Arc;

use indexmap::IndexMap;

use super::{BrainDefinition, ToolDefinition};
use crate::record::ToolId;

/// The actions of a project, by name.
#[derive(Clone, Default)]
pub struct ActionSet(IndexMap<ToolId, Arc<ToolDefinition>>);

/// A brain uses an action that its project does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the brain `{brain}` uses the unknown action `{action}`; the project has {}", listed(.known))]
pub struct UnknownAction {
    /// The brain's title.
    pub brain: String,
    /// The unknown name.
    pub action: String,
    /// The existing names.
    pub known: Vec<String>,
}

/// Lists names for a sentence.
fn listed(known: &[String]) -> String {
    match known {
        [] => "no actions; add it with `.action(…)`".to_owned(),
        known => known.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
    }
}

impl ActionSet {
    /// Adds an untyped tool.
    pub(crate) fn add(&mut self, tool: Arc<ToolDefinition>) {
        self.0.insert(tool.decl.id.clone(), tool);
    }

    /// Finds an action by its name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<ToolDefinition>> {
        self.0.get(name)
    }

    /// Lists the names in the order in which the actions were added.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.0.keys().map(|id| id.as_str().to_owned()).collect()
    }

    /// Checks that every action of a brain and its nested brains exists.
    ///
    /// # Errors
    ///
    /// [`UnknownAction`] for the first unknown name.
    pub fn check(&self, definition: &BrainDefinition) -> Result<(), UnknownAction> {
        if let Some(action) = definition.actions.iter().find(|name| self.get(name).is_none()) {
            return Err(UnknownAction { brain: definition.title.clone(), action: action.clone(), known: self.names() });
        }
        let nested = definition.stages.iter().flat_map(|stage| stage.body.brains());
        nested.map(|nested| &nested.definition).try_for_each(|definition| self.check(definition))
    }
}

impl fmt::Debug for ActionSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.keys()).finish()
    }
}
