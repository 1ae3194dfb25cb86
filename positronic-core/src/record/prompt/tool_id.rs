//! The id of a tool, and its name for providers.

use std::borrow::{Borrow, Cow};
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The id of a tool: 1 to 64 letters, digits, `_`, `-` and `.`. People and events see the id; a provider sees
/// [`ToolId::wire_name`]. Maps by tool id accept text keys.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct ToolId(Arc<str>);

/// Error from parsing a tool id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a valid tool name: use 1 to 64 letters, digits, `_`, `-` and `.`")]
pub struct ToolIdError(String);

impl ToolId {
    /// Creates an id from its text.
    ///
    /// # Errors
    ///
    /// [`ToolIdError`] when the text is empty, longer than 64 characters, or contains another character.
    pub fn new(text: &str) -> Result<Self, ToolIdError> {
        if Self::is_valid(text) { Ok(Self(text.into())) } else { Err(ToolIdError(text.to_owned())) }
    }

    /// Returns whether a text can be an id.
    pub(crate) fn is_valid(text: &str) -> bool {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        (1..=64).contains(&text.len()) && text.bytes().all(fits)
    }

    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name for providers, which allow no dots: each becomes `_`. Tools with equal wire names in one set
    /// are rejected, so the name is unambiguous.
    #[must_use]
    pub fn wire_name(&self) -> Cow<'_, str> {
        Self::wire_name_of(&self.0)
    }

    /// Returns the name for providers of the id with this text.
    pub(crate) fn wire_name_of(id: &str) -> Cow<'_, str> {
        if id.contains('.') { id.replace('.', "_").into() } else { id.into() }
    }
}

impl Borrow<str> for ToolId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ToolId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl<'de> Deserialize<'de> for ToolId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        Self::new(&text).map_err(serde::de::Error::custom)
    }
}
