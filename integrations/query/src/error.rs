//! The error of a search that cannot be read.

use std::ops::Range;

use strsim::osa_distance;

/// A word of a search that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{word}`: {reason}{}", hint.as_ref().map_or_else(String::new, |hint| format!("; {hint}")))]
#[non_exhaustive]
pub struct QueryError {
    /// The bytes of the word in the search.
    pub at: Range<usize>,
    /// The word.
    pub word: String,
    /// What is wrong with it, as a clause.
    pub reason: String,
    /// What was probably meant, or how to write it.
    pub hint: Option<String>,
}

impl QueryError {
    pub(super) fn new(at: Range<usize>, word: &str, reason: impl Into<String>) -> Self {
        Self { at, word: word.to_owned(), reason: reason.into(), hint: None }
    }

    #[must_use]
    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Why a value cannot be read, and what was probably meant.
pub type RefusedValue = (String, Option<String>);

/// Returns the known word that is nearest to a written one, if it is near.
pub(super) fn nearest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = if written.chars().count() > 4 { 2 } else { 1 };
    let far = known.into_iter().map(|word| (osa_distance(written, word), word));
    far.filter(|(far, _)| *far <= allowed).min().map(|(_, word)| word)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn nearest_word_differs_in_few_letters() {
        assert_eq!(nearest("sttus", ["status", "tag"]), Some("status"));
        assert_eq!(nearest("gat", ["tag"]), None);
        assert_eq!(nearest("atg", ["tag"]), Some("tag"), "two letters are swapped");
        assert_eq!(nearest("brian", ["brain", "tag"]), Some("brain"));
        assert_eq!(nearest("amount", ["brain", "tag"]), None);
    }
}
