//! What a model reads: messages, and the growing list of them that all requests of a loop share.
//!
//! A request's history grows only by appending. The list is shared between the runner and the requests it hands
//! out, each of which sees the first `len` messages; a message is encoded for the wire once and kept.

use std::fmt;
use std::sync::{Arc, OnceLock, RwLock, RwLockReadGuard};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// One message of a conversation with a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// What the user, or the engine in the user's place, says.
    User {
        /// The text.
        text: String,
    },
    /// What the model said.
    Assistant {
        /// Its parts in order.
        parts: Vec<Assistant>,
    },
    /// The result of a call.
    Tool {
        /// The id by which the provider knows the call.
        call: String,
        /// The tool's wire name.
        name: String,
        /// What the model reads.
        text: String,
    },
}

/// A part of what a model said, as it goes back to the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Assistant {
    /// Natural language.
    Text {
        /// The text.
        text: String,
    },
    /// What the model thought, with what the provider wants back.
    Reasoning {
        /// The thoughts as far as they are known.
        text: String,
        /// What the provider wants back unchanged.
        #[serde(default, deserialize_with = "super::canonical::present", skip_serializing_if = "Option::is_none")]
        data: Option<Value>,
    },
    /// A call.
    Call {
        /// The id by which the provider knows the call.
        call: String,
        /// The tool's wire name.
        name: String,
        /// The arguments, encoded as JSON.
        arguments: String,
        /// What the provider wants back unchanged.
        #[serde(default, deserialize_with = "super::canonical::present", skip_serializing_if = "Option::is_none")]
        data: Option<Value>,
    },
    /// An item only the provider understands.
    Opaque {
        /// The item.
        data: Value,
    },
}

/// A message in a [`Transcript`], with its encoded form once there is one.
#[derive(Debug)]
pub struct TranscriptEntry {
    /// The message.
    pub message: Message,
    wire: WireCache,
}

impl TranscriptEntry {
    /// Returns the message as a provider's dialect encodes it; the first dialect that asks is remembered.
    pub fn wire(&self, dialect: &'static str, encode: impl FnOnce(&Message) -> Box<RawValue>) -> WireText<'_> {
        self.wire.get(dialect, || encode(&self.message))
    }
}

/// Keeps what was encoded once for one dialect.
#[derive(Default)]
pub(crate) struct WireCache(OnceLock<(&'static str, Box<RawValue>)>);

/// An encoded text: a remembered one, or a fresh one for a second dialect.
pub type WireText<'a> = std::borrow::Cow<'a, RawValue>;

impl WireCache {
    pub(crate) fn get(&self, dialect: &'static str, encode: impl FnOnce() -> Box<RawValue>) -> WireText<'_> {
        let mut encode = Some(encode);
        let kept = self
            .0
            .get_or_init(|| (dialect, encode.take().map_or_else(|| RawValue::NULL.to_owned(), |encode| encode())));
        match encode.filter(|_| kept.0 != dialect) {
            Some(encode) => WireText::Owned(encode()),
            None => WireText::Borrowed(&kept.1),
        }
    }
}

impl fmt::Debug for WireCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.get().is_some() { "encoded" } else { "not encoded" })
    }
}

/// The messages of one loop, append-only and shared. Cloning it is cheap and freezes its length.
#[derive(Clone, Default)]
pub struct Transcript {
    entries: Arc<RwLock<Vec<TranscriptEntry>>>,
    len: usize,
}

impl Transcript {
    /// Makes a transcript of the given messages.
    pub fn new(messages: impl IntoIterator<Item = Message>) -> Self {
        let mut transcript = Self::default();
        for message in messages {
            transcript.push(message);
        }
        transcript
    }

    /// Adds a message. Clones that were made before do not see it. A clone that is pushed to while another has
    /// grown becomes a list of its own.
    pub fn push(&mut self, message: Message) {
        let entry = TranscriptEntry { message, wire: WireCache::default() };
        {
            let mut entries = self.entries.write().unwrap_or_else(std::sync::PoisonError::into_inner);
            if entries.len() == self.len {
                entries.push(entry);
                self.len += 1;
                return;
            }
        }
        let mut own: Vec<_> = self
            .read()
            .iter()
            .map(|entry| TranscriptEntry { message: entry.message.clone(), wire: WireCache::default() })
            .collect();
        own.push(entry);
        self.len = own.len();
        self.entries = Arc::new(RwLock::new(own));
    }

    /// Joins a text to the last message where that is the user's, and says whether it did. Clones that were made before keep
    /// the message as it was.
    pub(crate) fn join_user(&mut self, text: &str) -> bool {
        let joined = match self.read().last().map(|entry| &entry.message) {
            Some(Message::User { text: before }) => [before, "\n\n", text].concat(),
            _ => return false,
        };
        let kept = self.len - 1;
        let mut messages: Vec<_> = self.read().iter().take(kept).map(|entry| entry.message.clone()).collect();
        messages.push(Message::User { text: joined });
        *self = Self::new(messages);
        true
    }

    /// Returns how many messages there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Says whether there is no message.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Says whether this transcript is `earlier` with messages added, as far as that is known without reading them:
    /// both share one list.
    #[must_use]
    pub fn extends(&self, earlier: &Self) -> bool {
        Arc::ptr_eq(&self.entries, &earlier.entries) && self.len >= earlier.len
    }

    /// Gives access to the messages for as long as the guard lives; do not hold it across an `await`.
    #[must_use]
    pub fn read(&self) -> TranscriptGuard<'_> {
        TranscriptGuard {
            entries: self.entries.read().unwrap_or_else(std::sync::PoisonError::into_inner),
            len: self.len,
        }
    }

    /// Returns copies of the messages.
    #[must_use]
    pub fn messages(&self) -> Vec<Message> {
        self.read().iter().map(|entry| entry.message.clone()).collect()
    }
}

impl fmt::Debug for Transcript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.read().iter().map(|entry| &entry.message)).finish()
    }
}

impl PartialEq for Transcript {
    fn eq(&self, other: &Self) -> bool {
        let (left, right) = (self.read(), other.read());
        left.iter().map(|entry| &entry.message).eq(right.iter().map(|entry| &entry.message))
    }
}

/// The messages that a [`Transcript`] had when it was cloned.
#[derive(Debug)]
pub struct TranscriptGuard<'a> {
    entries: RwLockReadGuard<'a, Vec<TranscriptEntry>>,
    len: usize,
}

impl std::ops::Deref for TranscriptGuard<'_> {
    type Target = [TranscriptEntry];

    fn deref(&self) -> &[TranscriptEntry] {
        self.entries.get(..self.len).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(text: &str) -> Message {
        Message::User { text: text.to_owned() }
    }

    #[test]
    fn a_clone_keeps_its_length_and_the_list_is_shared() {
        let mut transcript = Transcript::new([user("a")]);
        let request = transcript.clone();
        transcript.push(user("b"));

        assert_eq!(request.messages(), [user("a")]);
        assert_eq!(transcript.messages(), [user("a"), user("b")]);
        assert!(transcript.extends(&request));
        assert!(!request.extends(&transcript));
    }

    #[test]
    fn two_clones_that_both_grow_part_ways() {
        let mut one = Transcript::new([user("a")]);
        let mut other = one.clone();
        one.push(user("b"));
        other.push(user("c"));

        assert_eq!(one.messages(), [user("a"), user("b")]);
        assert_eq!(other.messages(), [user("a"), user("c")]);
    }

    #[test]
    fn a_message_is_encoded_once_for_its_first_dialect() {
        let transcript = Transcript::new([user("a")]);
        let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        let guard = transcript.read();

        assert_eq!(guard[0].wire("chat", |_| raw("1")).get(), "1");
        assert_eq!(guard[0].wire("chat", |_| raw("2")).get(), "1");
        assert_eq!(guard[0].wire("responses", |_| raw("3")).get(), "3");
    }
}
