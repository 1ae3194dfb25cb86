//! Tools of a run's caller, who answers their calls.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::call::{CallFlags, ToolDecl};
use super::tool_id::ToolId;
use crate::record::encoding::skip::is_default;

/// A tool of a run's caller. A loop that takes [such tools](crate::dsl::BrainBuilder::caller_tools) offers it to its model, and a call of it
/// waits for the caller's result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallerTool {
    /// Its id.
    pub(crate) id: ToolId,
    /// The description for the model.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) description: String,
    /// The JSON schema of its arguments.
    pub(crate) parameters: Arc<Value>,
}

impl CallerTool {
    /// Returns its id.
    #[must_use]
    pub const fn id(&self) -> &ToolId {
        &self.id
    }

    /// Returns its description for the model.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Returns the JSON schema of its arguments.
    #[must_use]
    pub const fn parameters(&self) -> &Arc<Value> {
        &self.parameters
    }

    /// Returns the declaration that the model reads. A call may be repeated: it only asks the caller.
    pub(crate) fn decl(&self) -> ToolDecl {
        ToolDecl {
            id: self.id.clone(),
            title: None,
            description: self.description.clone(),
            parameters: Arc::clone(&self.parameters),
            flags: CallFlags { caller: true, ..CallFlags::default() },
        }
    }

    /// Returns the first of a caller's tools whose name a provider cannot tell from that of a tool of the loop, with that one.
    pub(crate) fn collision<'a>(callers: &'a [Self], own: &[&'a ToolDecl]) -> Option<(&'a ToolId, &'a ToolId)> {
        callers.iter().find_map(|tool| {
            let name = tool.id.wire_name();
            own.iter().find(|own| own.id.wire_name() == name).map(|own| (&tool.id, &own.id))
        })
    }
}
