//! Repairs of calls that a model wrote almost right.

use serde::{Deserialize, Serialize};

/// What was repaired in a call, where what the model wrote has one possible meaning.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Repair {
    /// The name that the model wrote, if it is not the tool's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The mistakes in the arguments, in the order of their repair.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<ArgumentMistake>,
}

/// A mistake in the arguments of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ArgumentMistake {
    /// They were JSON in a string.
    InString,
    /// They were in a code fence.
    InCodeFence,
    /// They had one closing bracket too many.
    ExtraBracket,
    /// An argument of another type was in a string.
    ValueInString,
}

impl Repair {
    /// Returns whether nothing was repaired.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Says what was repaired, as a clause for people.
    #[must_use]
    pub fn clause(&self) -> String {
        let name = self.name.iter().map(|name| format!("the model wrote the name `{}`", name.escape_debug()));
        let arguments = self.arguments.iter().map(|mistake| {
            match mistake {
                ArgumentMistake::InString => "its arguments were JSON in a string",
                ArgumentMistake::InCodeFence => "its arguments were in a code fence",
                ArgumentMistake::ExtraBracket => "its arguments had one closing bracket too many",
                ArgumentMistake::ValueInString => "an argument of another type was in a string",
            }
            .to_owned()
        });
        name.chain(arguments).collect::<Vec<_>>().join("; ")
    }
}
