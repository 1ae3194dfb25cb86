//! Open brains and stages: those around an item, how they begin and end, and the ids that items get there.

use positronic_core::record::{Path, Segment};

use super::{BrainOutcome, Item, Open, Projection};

impl Projection {
    /// Returns the id of the innermost nested brain around a path.
    pub(crate) fn brain_of(&self, path: &Path) -> Option<String> {
        let around = self.open.iter().rev().find_map(|open| match open {
            Open::Brain { path: own, id, .. } if own != path && path.is_within(own) => Some(id),
            Open::Brain { .. } | Open::Stage { .. } => None,
        });
        around.cloned()
    }

    /// Returns whether what happens at a path belongs to the dialogue with the person.
    pub(super) fn in_dialogue(&self, path: &Path) -> bool {
        self.open.iter().all(|open| match open {
            Open::Brain { path: own, .. } if own != path && path.is_within(own) => self.handoffs.contains(own),
            Open::Brain { .. } | Open::Stage { .. } => true,
        })
    }

    /// Returns the id of a call, which differs from those of all other runs.
    pub(crate) fn call_id(&self, call: &Path) -> String {
        call.id_in(&self.run).to_string()
    }

    /// Returns the id of an answer: of its run, its iteration and its try.
    pub(super) fn answer_id(&self, iteration: &Path, attempt: u32) -> String {
        format!("{}:{iteration}#{attempt}", self.run)
    }

    pub(super) fn is_hidden(&self, path: &Path) -> bool {
        self.hidden.iter().any(|hidden| path.is_within(hidden))
    }

    pub(super) fn begin_stage(&mut self, path: &Path) {
        let is_open = |open: &Open| matches!(open, Open::Stage { path: known } if known == path);
        if !self.open.iter().any(is_open) {
            self.push(path, Item::StageStarted { path: path.clone() });
            self.open.push(Open::Stage { path: path.clone() });
        }
    }

    pub(super) fn end_stage(&mut self, path: &Path) {
        let is_open = |open: &Open| matches!(open, Open::Stage { path: known } if known == path);
        if let Some(index) = self.open.iter().rposition(is_open) {
            self.open.remove(index);
            self.push(path, Item::StageEnded { path: path.clone() });
        }
    }

    pub(super) fn begin_brain(&mut self, path: &Path, title: &str) {
        let count = self.begun.entry(path.clone()).or_default();
        let id = if *count == 0 { path.to_string() } else { format!("{path}#{count}") };
        *count += 1;
        let is_call = matches!(path.last(), Some(Segment::Call(..))) && self.calls.contains(path);
        let call = is_call.then(|| self.call_id(path));
        self.push(path, Item::BrainStarted { id: id.clone(), title: title.to_owned(), call });
        self.open.push(Open::Brain { path: path.clone(), id, title: title.to_owned() });
    }

    /// Ends a nested brain, and what is still open in it.
    pub(super) fn end_brain(&mut self, path: &Path, outcome: BrainOutcome) {
        let is_own = |open: &Open| matches!(open, Open::Brain { path: known, .. } if known == path);
        let Some(index) = self.open.iter().rposition(is_own) else { return };
        while let Some(last) = self.open.iter().rposition(|open| open.path().is_within(path)) {
            if last <= index {
                break;
            }
            self.close(last);
        }
        if let Open::Brain { id, .. } = self.open.remove(index) {
            self.push(path, Item::BrainEnded { id, outcome });
        }
    }

    fn close(&mut self, index: usize) {
        match self.open.remove(index) {
            Open::Stage { path } => self.push(&path.clone(), Item::StageEnded { path }),
            Open::Brain { path, id, .. } => {
                self.push(&path, Item::BrainEnded { id, outcome: BrainOutcome::Cancelled });
            }
        }
    }
}
