//! Facts and their owners.

use std::fmt;

use positronic_core::record::{RunId, hash_text};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A known fact about a user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fact {
    /// Its id.
    pub id: FactId,
    /// The text.
    pub text: String,
}

impl Fact {
    /// Creates a fact, with the id of its text.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { id: FactId::of(&text), text }
    }
}

/// The id of a fact, unique for its owner.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct FactId(String);

impl FactId {
    /// Returns the id of a fact: the first 12 digits of its text's hash, so a text has the same id wherever it is stored.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self(hash_text(text).as_str().chars().take(12).collect())
    }

    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for FactId {
    fn from(id: String) -> Self {
        Self(id)
    }
}

impl From<&str> for FactId {
    fn from(id: &str) -> Self {
        Self(id.to_owned())
    }
}

impl fmt::Display for FactId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The owner of facts. As text: `user/NAME` or `run/ID`, so the two cannot be confused.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum FactOwner {
    /// A user, across runs.
    User(String),
    /// A run.
    Run(RunId),
}

impl fmt::Display for FactOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(user) => write!(f, "user/{user}"),
            Self::Run(run) => write!(f, "run/{run}"),
        }
    }
}
