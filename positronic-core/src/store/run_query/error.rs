//! The error of a search that cannot be read.

use std::fmt;
use std::ops::Range;

/// A word of a search that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
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

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}", self.word, self.reason)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "; {hint}"))
    }
}

impl std::error::Error for QueryError {}

/// Returns the known word that is nearest to a written one, if it is near.
pub(super) fn nearest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = if written.chars().count() > 4 { 2 } else { 1 };
    let far = known.into_iter().map(|word| (distance(written, word), word));
    far.filter(|(far, _)| *far <= allowed).min().map(|(_, word)| word)
}

/// Returns how many letters two words differ in: inserted, left out, replaced or swapped with the next one.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.iter().enumerate() {
        let mut next = vec![i + 1];
        for (j, other) in b.iter().enumerate() {
            let at = |row: &[usize], index: usize| row.get(index).copied().unwrap_or(usize::MAX);
            let replaced = at(&row, j) + usize::from(letter != other);
            let mut best = replaced.min(at(&row, j + 1) + 1).min(at(&next, j) + 1);
            if i > 0 && j > 0 && a.get(i - 1) == Some(other) && b.get(j - 1) == Some(letter) {
                best = best.min(at(&before, j - 1).saturating_add(1));
            }
            next.push(best);
        }
        before = std::mem::replace(&mut row, next);
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{distance, nearest};

    #[test]
    fn nearest_word_differs_in_few_letters() {
        for (a, b, far) in [("status", "status", 0), ("stats", "status", 1), ("sttaus", "status", 1), ("", "tag", 3)] {
            assert_eq!(distance(a, b), far, "{a} {b}");
        }
        assert_eq!(nearest("brian", ["brain", "tag"]), Some("brain"));
        assert_eq!(nearest("amount", ["brain", "tag"]), None);
    }
}
