//! What a caller gets of a run's result.
//!
//! A brain without a result of its own returns its last state, which may hold what only the server knows. So the state is a result for
//! callers only if the author says so: by `with_result_schema`, or by the public state.

use std::fmt;

use positronic_core::definition::BrainDefinition;
use positronic_core::record::{FileRef, RunId};
use positronic_server::REDACTED;
use positronic_server::extension::Viewer;
use serde_json::Value;

use crate::projection::PublicState;

/// Says which result of a brain callers get.
#[derive(Clone)]
pub(crate) struct CallerResult {
    brain: String,
    is_declared: bool,
    public_state: Option<PublicState>,
    /// The address of the server, for links to files.
    address: Option<String>,
}

impl fmt::Debug for CallerResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallerResult").field("brain", &self.brain).finish_non_exhaustive()
    }
}

impl CallerResult {
    /// Returns the rule for a brain. One that this server does not have has declared nothing.
    pub(crate) fn of(title: &str, definition: Option<&BrainDefinition>, public_state: Option<&PublicState>) -> Self {
        let is_declared = |brain: &BrainDefinition| brain.result.is_some() || brain.result_schema.is_some();
        Self {
            brain: title.to_owned(),
            is_declared: definition.is_some_and(is_declared),
            public_state: public_state.cloned(),
            address: None,
        }
    }

    /// Lets files have links, below the address at which the caller reaches the server.
    pub(crate) fn linked(self, address: Option<String>) -> Self {
        Self { address, ..self }
    }

    /// Returns the URL of a file of a run; `None` if the caller reaches the server without one, or the file is stored elsewhere.
    pub(crate) fn link(&self, run: &RunId, file: &FileRef) -> Option<String> {
        let address = self.address.as_ref().filter(|_| !file.sha256.is_empty())?;
        Some(file_url(address, run, file))
    }

    /// Returns the result, redacted; `None` if it is nothing, or a state that is not for callers.
    pub(crate) fn shown(&self, viewer: &Viewer, result: &Value, is_state: bool) -> Option<Value> {
        let shown = match is_state && !self.is_declared {
            true => self.public_state.as_ref().and_then(|public| public(&self.brain, result))?,
            false => result.clone(),
        };
        let shown = viewer.redacted(&shown).unwrap_or_else(|| REDACTED.into());
        Some(shown).filter(|shown| !shown.is_null())
    }
}

/// Returns the URL of a file of a run, below the address of the server.
pub(crate) fn file_url(address: &str, run: &RunId, file: &FileRef) -> String {
    format!("{address}/api/v1/runs/{run}/files/{}", file.sha256)
}

/// Returns a value as a text: a text as it is, and anything else as JSON.
pub(crate) fn as_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
