//! Lookup of a project's brain by its title or a beginning of it.

use super::project::{ProjectBrain, normal_title};
use super::{Failure, Project};
use crate::cli::did_you_mean;

/// Minimum length of a title's prefix.
const SHORTEST: usize = 3;

impl Project {
    /// Finds the brain of a run.
    pub(crate) fn titled(&self, title: &str) -> Result<&ProjectBrain, Failure> {
        let entry = self.brains.iter().find(|entry| entry.definition.title == title);
        entry.ok_or_else(|| Failure::usage(format!("unknown brain `{title}`")).hint(self.known_brains()).hint(
            "a run continues if the project has its brain, also a run that another one has started: add it with `Project::brain`",
        ))
    }

    /// Finds a brain by its title or an unambiguous prefix of it.
    pub(crate) fn find(&self, written: &str) -> Result<&ProjectBrain, Failure> {
        let wanted = normal_title(written);
        let exact = self.brains.iter().find(|entry| normal_title(&entry.definition.title) == wanted);
        let begins = |entry: &&ProjectBrain| {
            wanted.len() >= SHORTEST && normal_title(&entry.definition.title).starts_with(&wanted)
        };
        let mut beginning = self.brains.iter().filter(begins);
        let only = beginning.next().filter(|_| beginning.next().is_none());
        exact.or(only).ok_or_else(|| {
            let titles = self.brains.iter().map(|entry| entry.definition.title.as_str());
            let near = did_you_mean(written, titles, "");
            Failure::usage(format!("unknown brain `{written}`")).hints(near).hint(self.known_brains())
        })
    }

    /// Lists the brains for an error.
    fn known_brains(&self) -> String {
        if self.brains.is_empty() {
            return "the project has no brains; add one with `Project::brain`".to_owned();
        }
        let titles: Vec<_> = self.brains.iter().map(|entry| format!("`{}`", entry.definition.title)).collect();
        format!("the project has the brains {}", titles.join(", "))
    }
}
