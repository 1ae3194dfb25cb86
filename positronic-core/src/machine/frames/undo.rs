//! What can be undone in a brain, and what is being undone.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::record::encoding::skip::is_default;
use crate::record::{Path, StageShape, UndoCause};

/// A completed stage that can be undone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Undoable {
    /// The stage.
    pub path: Path,
    /// The arms that the branches around it have taken, from the outside in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arms: Vec<String>,
    /// The options of its brain.
    pub options: Arc<Value>,
    /// The state of its brain after it.
    pub state: Arc<Value>,
}

/// A brain that undoes its completed stages before it ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Undoing {
    /// Why, and so how it ends.
    pub cause: UndoCause,
    /// The steps, in order: the stage that completed last is undone first.
    pub steps: Vec<(StageShape, Undoable)>,
    /// The index of the current step.
    #[serde(default, skip_serializing_if = "is_default")]
    pub index: usize,
    /// The stages whose undo failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<Path>,
}

impl Undoing {
    /// Returns what its steps have not undone.
    pub(in crate::machine) fn rest(&self) -> impl DoubleEndedIterator<Item = &Undoable> {
        self.steps.iter().skip(self.index).map(|(_, undoes)| undoes)
    }

    /// Returns what the current step undoes.
    pub(crate) fn current(&self) -> Option<&Undoable> {
        self.steps.get(self.index).map(|(_, undoes)| undoes)
    }
}
