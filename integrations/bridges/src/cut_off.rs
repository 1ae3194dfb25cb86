//! The loops that a limit has cut off: the result of their run may be incomplete.

use crate::projection::Item;

/// A fold of items.
#[derive(Debug, Clone, Default)]
pub(crate) struct CutOff {
    /// The paths of the loops, and which limit it was.
    loops: Vec<(String, &'static str)>,
}

impl CutOff {
    /// Folds an item.
    pub(crate) fn item(&mut self, item: &Item) {
        match item {
            // It begins again.
            Item::StageStarted { path } => self.loops.retain(|(cut_off, _)| *cut_off != path.as_str()),
            Item::Notice { name: name @ ("limit" | "max_iterations"), value } => {
                let path = value.get("path").and_then(serde_json::Value::as_str).unwrap_or_default();
                self.loops.push((path.to_owned(), name));
            }
            _ => {}
        }
    }

    /// Returns the loops, each with the limit that it has reached.
    pub(crate) fn loops(&self) -> &[(String, &'static str)] {
        &self.loops
    }

    /// Says which loops are cut off; `None` if none is.
    pub(crate) fn text(&self) -> Option<String> {
        let names: Vec<_> = self.loops.iter().map(|(path, _)| format!("`{path}`")).collect();
        let text = || format!("A limit has cut off {}; the result may be incomplete.", names.join(", "));
        (!names.is_empty()).then(text)
    }
}
