//! The actions of a project: tools that any of its brains can choose by name.

use std::fmt;
use std::sync::Arc;

use indexmap::IndexMap;

use super::{
    AnyServices, BrainDefinition, NestedDefinition, Provide, Scope, StageBody, StateValue, ToolBody, ToolDefinition,
    WaitsFn,
};
use crate::record::ToolId;

/// The actions that a project has, by name.
#[derive(Clone, Default)]
pub struct ActionSet(IndexMap<ToolId, Arc<ToolDefinition>>);

/// Says that a brain names an action that its project does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the brain `{brain}` names the action `{action}`, and the project has {}", listed(.known))]
pub struct UnknownAction {
    /// The brain's title.
    pub brain: String,
    /// The name.
    pub action: String,
    /// The names that there are.
    pub known: Vec<String>,
}

/// Lists names for a sentence.
fn listed(known: &[String]) -> String {
    match known {
        [] => "none; give it some with `.action(…)`".to_owned(),
        known => known.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
    }
}

impl ActionSet {
    /// Adds a tool over JSON.
    pub(crate) fn add(&mut self, tool: Arc<ToolDefinition>) {
        let tool = anywhere(Arc::unwrap_or_clone(tool));
        self.0.insert(tool.decl.id.clone(), Arc::new(tool));
    }

    /// Finds an action by its name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<ToolDefinition>> {
        self.0.get(name)
    }

    /// Lists the names, in the order in which the actions were added.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.0.keys().map(|id| id.as_str().to_owned()).collect()
    }

    /// Checks that there is an action for every name that a brain, or one that is a stage in it, says.
    ///
    /// # Errors
    ///
    /// [`UnknownAction`] for the first name that is unknown.
    pub fn check(&self, definition: &BrainDefinition) -> Result<(), UnknownAction> {
        if let Some(action) = definition.actions.iter().find(|name| self.get(name).is_none()) {
            return Err(UnknownAction { brain: definition.title.clone(), action: action.clone(), known: self.names() });
        }
        definition.stages.iter().try_for_each(|stage| match &stage.body {
            StageBody::Brain(nested) => self.check(&nested.definition),
            StageBody::Step(_) | StageBody::Loop(_) => Ok(()),
        })
    }
}

/// Makes a tool over JSON fit into every brain: it sees the state and the options as JSON, and no services.
fn anywhere(mut tool: ToolDefinition) -> ToolDefinition {
    if let Some(gate) = tool.gate.take() {
        tool.gate = Some(Arc::new(move |arguments, scope| gate(arguments, bare(scope))));
    }
    tool.body = match tool.body {
        ToolBody::Function { execute, waits } => ToolBody::Function {
            execute: Arc::new(move |arguments, scope| execute(arguments, bare(scope))),
            waits: waits
                .map(|waits| -> WaitsFn { Arc::new(move |arguments, scope| waits(arguments, &bare(scope.clone()))) }),
        },
        ToolBody::Brain(NestedDefinition { definition, input, output }) => {
            let inner = definition.provide.clone();
            let provide: Provide = Arc::new(move |_| match &inner {
                Some(inner) => inner(nothing()),
                None => nothing(),
            });
            ToolBody::Brain(NestedDefinition {
                definition: Arc::new(BrainDefinition { provide: Some(provide), ..BrainDefinition::clone(&definition) }),
                input,
                output,
            })
        }
    };
    tool
}

fn nothing() -> AnyServices {
    Arc::new(())
}

/// Takes from a scope what has the types of its brain.
fn bare(scope: Scope) -> Scope {
    // Documents of their own: what was decoded from the brain's stays decoded as its types.
    let fresh = |document: &StateValue| StateValue::new(Arc::clone(document.json()));
    Scope { state: fresh(&scope.state), options: fresh(&scope.options), services: nothing(), ..scope }
}

impl fmt::Debug for ActionSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.keys()).finish()
    }
}
