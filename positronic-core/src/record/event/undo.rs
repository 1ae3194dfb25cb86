//! The undoing of a brain's completed stages.

use serde::{Deserialize, Serialize};

use super::failure::Failure;
use crate::record::encoding::skip::is_default;
use crate::record::ids::SignalId;
use crate::record::path::Path;
use crate::record::run::actor::Actor;

/// Why a brain undoes its completed stages. It ends so afterwards.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UndoCause {
    /// It failed.
    Failed(Failure),
    /// It was cancelled, lost a race, or a person undoes what it has done.
    Cancelled {
        /// The signal that cancelled the run; `None` for a nested brain.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signal: Option<SignalId>,
        /// Who sent it.
        #[serde(default, skip_serializing_if = "is_default")]
        actor: Actor,
        /// The reason.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}

/// A step that undoes a completed stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndoStep {
    /// Its name, unique among the stages of the brain that undoes it.
    pub name: String,
    /// The stage that it undoes, of the brain or of one that completed in it.
    pub undoes: Path,
}
