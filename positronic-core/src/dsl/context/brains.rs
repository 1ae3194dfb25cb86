//! The brains of a project, by name.

use serde_json::Value;

use crate::definition::Scope;
use crate::dsl::brain::Brain;
use crate::error::{Error, Result};

/// The brains of a project, by name.
#[derive(Debug)]
pub struct Brains<'a>(&'a Scope);

impl<'a> Brains<'a> {
    pub(in crate::dsl) const fn of(scope: &'a Scope) -> Self {
        Self(scope)
    }

    /// Finds a brain by its title. Its options and its result are JSON, and it is bound to its own services.
    ///
    /// # Errors
    ///
    /// An [`Error`] that lists the existing brains.
    pub fn find(&self, title: &str) -> Result<Brain<Value, Value>> {
        let definition = self.0.link.brain(title).ok_or_else(|| {
            let known: Vec<_> = self.titles().iter().map(|title| format!("`{title}`")).collect();
            let known =
                if known.is_empty() { "none; register them with `Runner::brain`".to_owned() } else { known.join(", ") };
            Error::new(format!("the project has no brain `{title}`; it has {known}"))
        })?;
        Ok(Brain::of(definition))
    }

    /// Lists the titles of the project's brains.
    #[must_use]
    pub fn titles(&self) -> Vec<String> {
        self.0.link.brains()
    }
}
