//! The text of a run's last answer, and the files that it has made: what a caller gets who does not follow the run.

use positronic_core::record::{FileRef, SideOutput};

use crate::projection::{Item, Placed, TextKind};

/// A fold of items. Only answers to the person count, since those of nested brains are answers to the run.
#[derive(Debug, Default)]
pub(crate) struct LastAnswer {
    /// The texts of the last answer, by their ids.
    texts: Vec<(String, String)>,
    files: Vec<FileRef>,
}

impl LastAnswer {
    /// Folds an item.
    pub(crate) fn item(&mut self, placed: &Placed) {
        let is_nested = !placed.in_dialogue;
        match &placed.item {
            Item::UserMessage { .. } | Item::IterationStarted | Item::Discarded { .. } if !is_nested => {
                self.texts.clear();
            }
            Item::TextStarted { id, kind: TextKind::Answer, .. } if !is_nested => {
                self.texts.push((id.clone(), String::new()));
            }
            Item::TextDelta { id, text } => {
                if let Some((_, known)) = self.texts.iter_mut().find(|(known, _)| known == id) {
                    known.push_str(text);
                }
            }
            Item::Output { output: SideOutput::File(file), .. } => self.files.push(file.file.clone()),
            _ => {}
        }
    }

    /// Returns the text; `None` if there is none.
    pub(crate) fn text(&self) -> Option<String> {
        let texts: Vec<_> = self.texts.iter().map(|(_, text)| text.trim()).filter(|text| !text.is_empty()).collect();
        (!texts.is_empty()).then(|| texts.join("\n\n"))
    }

    /// Returns the files, in the order in which they were shown.
    pub(crate) fn files(&self) -> &[FileRef] {
        &self.files
    }
}
