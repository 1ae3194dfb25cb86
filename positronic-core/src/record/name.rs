//! Valid names: ids of runs and signals, users, conversations, and identifiers of webhooks.

use super::is_invisible;

/// The most characters of a name. A run's id has to fit into a URL.
pub const MAX_NAME_CHARS: usize = 200;

/// The reason why a name is invalid: it is displayed, written to logs and parsed as one short line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidName {
    /// It has no visible character.
    #[error("is empty")]
    Empty,
    /// It has a control character.
    #[error("contains a line break or another control character")]
    Control,
    /// It has a character that is not displayed.
    #[error("contains an invisible character: U+{:04X}", u32::from(*.0))]
    Invisible(char),
    /// It has only dots, which name other places in URLs and paths.
    #[error("consists only of dots")]
    Dots,
    /// It is too long.
    #[error("has {chars} characters; the maximum is {most}")]
    TooLong {
        /// Its number of characters.
        chars: usize,
        /// The maximum.
        most: usize,
    },
}

/// Checks a name of at most so many characters.
///
/// ```
/// use positronic_core::record::{MAX_NAME_CHARS, check_name};
///
/// assert!(check_name("order 17 / ü", MAX_NAME_CHARS).is_ok());
/// assert_eq!(check_name(" ", MAX_NAME_CHARS).unwrap_err().to_string(), "is empty");
/// ```
///
/// # Errors
///
/// [`InvalidName`].
pub fn check_name(name: &str, most: usize) -> Result<(), InvalidName> {
    if name.trim().is_empty() {
        return Err(InvalidName::Empty);
    }
    if name.chars().all(|letter| letter == '.') {
        return Err(InvalidName::Dots);
    }
    if name.contains(char::is_control) {
        return Err(InvalidName::Control);
    }
    if let Some(letter) = name.chars().find(|letter| is_invisible(*letter)) {
        return Err(InvalidName::Invisible(letter));
    }
    match name.chars().count() {
        chars if chars > most => Err(InvalidName::TooLong { chars, most }),
        _ => Ok(()),
    }
}
