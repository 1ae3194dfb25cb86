//! Paths: locations in a run's tree.
//!
//! A path goes from the outside in: a stage's name, then for a loop the iteration or the call in it, then the
//! stages of the brain that the call runs, and so on: `Chat/3.1/Ask/0.2` is the third call of iteration 0 of the loop
//! `Ask` in the brain that was called as the second call of iteration 3 of the loop `Chat`. The root brain's path is
//! empty. `Chat/3~0` is the first question that the guards of the loop `Chat` asked a model about the answer or the calls of iteration 3. Stage
//! names are never numbers, so the kind of each part is unambiguous.

use std::fmt;

use derive_where::derive_where;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use smol_str::{SmolStr, SmolStrBuilder};

use crate::record::ids::{PublicId, RunId};

/// A location in the tree of a run: a brain, a stage, an iteration or a call. Maps by path accept text keys.
#[derive(Clone, Serialize)]
#[derive_where(PartialEq, Eq, PartialOrd, Ord, Hash)]
#[serde(transparent)]
pub struct Path {
    text: SmolStr,
    // It follows from the text. The state is looked up by paths many times an event, and each look needs it.
    #[serde(skip)]
    #[derive_where(skip)]
    last: Last,
}

/// The last part of a path, parsed.
#[derive(Debug, Clone, Copy)]
struct Last {
    /// Where it begins.
    begin: u32,
    kind: LastKind,
}

#[derive(Debug, Clone, Copy)]
enum LastKind {
    Root,
    Stage,
    Iteration(u32),
    Call(u32, u32),
    Question(u32, u32),
}

/// One part of a [`Path`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Segment<'a> {
    /// A stage of a brain, by its name.
    Stage(&'a str),
    /// An iteration of a loop, counted from 0.
    Iteration(u32),
    /// A call: its iteration and its index in the model's answer, both counted from 0.
    Call(u32, u32),
    /// A question of a guard to a model: its iteration and its number, both counted from 0.
    Question(u32, u32),
}

/// Error from parsing a [`Path`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a valid path: {reason}")]
pub struct PathError {
    text: String,
    reason: &'static str,
}

impl std::borrow::Borrow<str> for Path {
    fn borrow(&self) -> &str {
        &self.text
    }
}

impl Path {
    /// Returns a key by which paths are in the order of numbers: call 2 before call 10.
    pub(crate) fn sort_key(&self) -> Vec<(u8, u32, u32, String)> {
        self.segments()
            .map(|segment| match segment {
                Segment::Iteration(iteration) => (0, iteration, 0, String::new()),
                Segment::Call(iteration, index) => (1, iteration, index, String::new()),
                Segment::Question(iteration, index) => (2, iteration, index, String::new()),
                Segment::Stage(name) => (3, 0, 0, name.to_owned()),
            })
            .collect()
    }

    /// Returns the path of a run's root brain.
    #[must_use]
    pub fn root() -> Self {
        Self { text: SmolStr::default(), last: Last { begin: 0, kind: LastKind::Root } }
    }

    fn new(text: &str) -> Self {
        let begin = split_last(text).map_or(0, |(parent, _)| parent.len() + 1);
        let kind = match text.get(begin..).filter(|last| !last.is_empty()).map(parse_segment) {
            None => LastKind::Root,
            Some(Segment::Stage(_)) => LastKind::Stage,
            Some(Segment::Iteration(iteration)) => LastKind::Iteration(iteration),
            Some(Segment::Call(iteration, index)) => LastKind::Call(iteration, index),
            Some(Segment::Question(iteration, index)) => LastKind::Question(iteration, index),
        };
        Self { text: text.into(), last: Last::new(begin, kind) }
    }

    /// Parses a path.
    ///
    /// # Errors
    ///
    /// [`PathError`] when a part is empty, or an iteration or call does not follow a stage.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        let error = |reason| Err(PathError { text: text.to_owned(), reason });
        if !text.is_empty() {
            let mut after_stage = false;
            for part in text.split('/') {
                match parse_segment(part) {
                    _ if part.is_empty() => return error("a part is empty"),
                    Segment::Stage(_) => after_stage = true,
                    Segment::Iteration(_) | Segment::Call(..) | Segment::Question(..) if !after_stage => {
                        return error("an iteration, a call or a question must follow a loop's name");
                    }
                    Segment::Iteration(_) | Segment::Call(..) | Segment::Question(..) => after_stage = false,
                }
            }
        }
        Ok(Self::new(text))
    }

    /// Returns whether `name` is a valid stage name: not empty, without `/`, and not a number (`3`, `3.1` or `3~1`).
    #[must_use]
    pub fn is_stage_name(name: &str) -> bool {
        !name.is_empty() && !name.contains('/') && matches!(parse_segment(name), Segment::Stage(_))
    }

    /// Returns the path of the stage `name` in this brain.
    #[must_use]
    pub fn stage(&self, name: &str) -> Self {
        if self.text.is_empty() {
            return Self { text: name.into(), last: Last::new(0, LastKind::Stage) };
        }
        let last = Last::new(self.text.len() + 1, LastKind::Stage);
        let mut text = SmolStrBuilder::new();
        for part in [&self.text, "/", name] {
            text.push_str(part);
        }
        Self { text: text.finish(), last }
    }

    /// Returns the path of an iteration of this loop.
    #[must_use]
    pub fn iteration(&self, iteration: u32) -> Self {
        self.below(&[iteration], '.', LastKind::Iteration(iteration))
    }

    /// Returns the path of a call of this loop.
    #[must_use]
    pub fn call(&self, iteration: u32, index: u32) -> Self {
        self.below(&[iteration, index], '.', LastKind::Call(iteration, index))
    }

    /// Returns the path of a guard's question about an answer of this loop, or about one of its calls.
    #[must_use]
    pub fn question(&self, iteration: u32, index: u32) -> Self {
        self.below(&[iteration, index], '~', LastKind::Question(iteration, index))
    }

    /// Adds a part of numbers. Each event of a call makes such paths, and the machinery of `format!` takes three times as long.
    fn below(&self, numbers: &[u32], between: char, kind: LastKind) -> Self {
        let mut text = SmolStrBuilder::new();
        text.push_str(&self.text);
        for (number, separator) in numbers.iter().zip(['/', between]) {
            text.push(separator);
            push_number(&mut text, *number);
        }
        Self { text: text.finish(), last: Last::new(self.text.len() + 1, kind) }
    }

    /// Returns the parent path, `None` for the root.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        self.parent_text().map(Self::new)
    }

    /// Returns the last part, `None` for the root.
    #[must_use]
    pub fn last(&self) -> Option<Segment<'_>> {
        match self.last.kind {
            LastKind::Root => None,
            LastKind::Stage => self.text.get(self.last.begin()..).map(Segment::Stage),
            LastKind::Iteration(iteration) => Some(Segment::Iteration(iteration)),
            LastKind::Call(iteration, index) => Some(Segment::Call(iteration, index)),
            LastKind::Question(iteration, index) => Some(Segment::Question(iteration, index)),
        }
    }

    /// Returns the text of the parent path, `None` for the root.
    pub(crate) fn parent_text(&self) -> Option<&str> {
        match self.last.kind {
            LastKind::Root => None,
            _ => self.text.get(..self.last.begin().saturating_sub(1)),
        }
    }

    /// Returns the parts from the outside in.
    #[must_use]
    pub fn segments(&self) -> impl DoubleEndedIterator<Item = Segment<'_>> {
        segments_of(&self.text)
    }

    /// Returns whether this path is `ancestor` or below it.
    #[must_use]
    pub fn is_within(&self, ancestor: &Self) -> bool {
        ancestor.text.is_empty()
            || self.text.strip_prefix(ancestor.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// Returns the path as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the path at which guards ask about the answer of this iteration.
    pub(crate) fn about_answer(&self) -> Self {
        match self.last() {
            Some(Segment::Iteration(iteration)) => self.parent().unwrap_or_default().question(iteration, 0),
            _ => self.clone(),
        }
    }

    /// Returns whether this is the path of a guard's question.
    pub(crate) const fn is_question(&self) -> bool {
        matches!(self.last.kind, LastKind::Question(..))
    }

    /// Returns whether this is the path of the root brain.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.text.is_empty()
    }

    /// Returns a short id for this path that is safe in a URL: 13 characters of Crockford's base 32, the first
    /// 65 bits of the path's SHA-256.
    #[must_use]
    pub fn public_id(&self) -> PublicId {
        short_id(&self.text)
    }

    /// Returns a short id for this path of one run among those of others.
    #[must_use]
    pub fn id_in(&self, run: &RunId) -> PublicId {
        short_id(&format!("{run}:{}", self.text))
    }

    /// Returns a short id for an output of this call, counted from 0; it differs from all call ids.
    #[must_use]
    pub fn output_id(&self, index: usize) -> PublicId {
        short_id(&format!("{}#{index}", self.text))
    }
}

impl Last {
    fn new(begin: usize, kind: LastKind) -> Self {
        // A path is at most as long as a line of the log.
        Self { begin: u32::try_from(begin).unwrap_or(u32::MAX), kind }
    }

    fn begin(self) -> usize {
        usize::try_from(self.begin).unwrap_or(usize::MAX)
    }
}

fn short_id(text: &str) -> PublicId {
    const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let digest = Sha256::digest(text.as_bytes());
    let mut bits = digest.iter().take(16).fold(0_u128, |bits, byte| (bits << 8) | u128::from(*byte));
    let mut id = String::with_capacity(13);
    for _ in 0..13 {
        let five = usize::try_from(bits >> 123).unwrap_or(0);
        id.push(char::from(ALPHABET.get(five).copied().unwrap_or(b'0')));
        bits <<= 5;
    }
    PublicId::from(id)
}

fn push_number(text: &mut SmolStrBuilder, number: u32) {
    if number > 9 {
        push_number(text, number / 10);
    }
    text.push(char::from(b'0' + u8::try_from(number % 10).unwrap_or_default()));
}

/// Returns the text of the parent path, without allocating.
pub(crate) fn parent_of(path: &str) -> Option<&str> {
    if path.is_empty() {
        return None;
    }
    Some(split_last(path).map_or("", |(parent, _)| parent))
}

/// Splits a path's text before its last part. It searches bytes, since the setup of a string search takes longer for such
/// short texts.
fn split_last(path: &str) -> Option<(&str, &str)> {
    let slash = path.bytes().rposition(|byte| byte == b'/')?;
    Some((path.get(..slash)?, path.get(slash + 1..)?))
}

/// Returns the parts of a path's text.
pub(crate) fn segments_of(path: &str) -> impl DoubleEndedIterator<Item = Segment<'_>> {
    path.split('/').filter(|part| !part.is_empty()).map(parse_segment)
}

/// Parses a part in one pass over its bytes, since every access to a run's tree does it.
fn parse_segment(part: &str) -> Segment<'_> {
    let (mut before, mut is_call, mut number, mut digits) = (None, true, 0_u32, 0_u32);
    for byte in part.bytes() {
        match byte {
            b'0'..=b'9' => {
                let Some(next) = number.checked_mul(10).and_then(|tens| tens.checked_add(u32::from(byte - b'0')))
                else {
                    return Segment::Stage(part);
                };
                (number, digits) = (next, digits + 1);
            }
            b'.' | b'~' if digits > 0 && before.is_none() => {
                (before, is_call, number, digits) = (Some(number), byte == b'.', 0, 0);
            }
            _ => return Segment::Stage(part),
        }
    }
    match before {
        _ if digits == 0 => Segment::Stage(part),
        Some(iteration) if is_call => Segment::Call(iteration, number),
        Some(iteration) => Segment::Question(iteration, number),
        None => Segment::Iteration(number),
    }
}

impl Default for Path {
    fn default() -> Self {
        Self::root()
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Path").field(&self.text).finish()
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl std::str::FromStr for Path {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        Self::parse(text)
    }
}

impl<'de> Deserialize<'de> for Path {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_nested_call_are_parsed() {
        let path = Path::root().stage("Chat").call(3, 1).stage("Ask").call(0, 2);

        assert_eq!(path.as_str(), "Chat/3.1/Ask/0.2");
        assert_eq!(
            path.segments().collect::<Vec<_>>(),
            [Segment::Stage("Chat"), Segment::Call(3, 1), Segment::Stage("Ask"), Segment::Call(0, 2)]
        );
        assert_eq!(path.parent().unwrap().as_str(), "Chat/3.1/Ask");
        assert!(path.is_within(&Path::parse("Chat/3.1").unwrap()));
        assert!(!path.is_within(&Path::parse("Chat/3").unwrap()));
        assert_eq!(Path::root().stage("Chat").call(u32::MAX, 10).as_str(), "Chat/4294967295.10");
        assert_eq!(Path::root().stage("Chat").iteration(209).as_str(), "Chat/209");
    }

    #[test]
    fn question_of_a_guard_belongs_to_its_loop() {
        let question = Path::root().stage("Chat").question(3, 12);

        assert_eq!(question.as_str(), "Chat/3~12");
        assert_eq!(Path::parse("Chat/3~12").unwrap(), question);
        assert_eq!(question.last(), Some(Segment::Question(3, 12)));
        assert_eq!(question.parent(), Some(Path::root().stage("Chat")));
        assert!(!Path::is_stage_name("3~12"));
        assert!(Path::is_stage_name("~3"));
    }

    #[test]
    fn invalid_path_is_rejected() {
        for text in ["/", "Chat//Ask", "3.1", "Chat/3/1"] {
            assert!(Path::parse(text).is_err(), "{text}");
        }
        assert!(!Path::is_stage_name("12.5"));
        assert!(Path::is_stage_name("Version 1.2"));
    }

    #[test]
    fn short_id_depends_only_on_the_path() {
        let id = Path::parse("Chat/3.1").unwrap().public_id();

        assert_eq!(id.as_str().len(), 13);
        assert_eq!(id, Path::parse("Chat/3.1").unwrap().public_id());
        assert_ne!(id, Path::parse("Chat/3.2").unwrap().public_id());
    }
}
