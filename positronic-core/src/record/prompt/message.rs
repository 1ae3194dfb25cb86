//! Messages to a model, and the append-only transcript that all requests of a loop share.
//!
//! The runner and its requests share the list, and each request sees the first `len` messages; a message is encoded for the
//! wire only once.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, OnceLock};

use parking_lot::{RwLock, RwLockReadGuard};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::file::Attachment;
use super::made_by::{MadeBy, Recipient};
use crate::record::encoding::document;
use crate::record::encoding::scratch::with_scratch;

/// One message of a conversation with a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// A message of the user, or of the engine instead of the user.
    User {
        /// The text.
        text: String,
        /// The files. Adapters send them before the text, so that their bytes stay in the prefix that a provider has cached.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        files: Vec<Attachment>,
    },
    /// A message of the model.
    Assistant {
        /// Its parts in order.
        parts: Vec<Assistant>,
        /// The model that gave it, which alone gets the private data of its parts back.
        #[serde(default, skip_serializing_if = "MadeBy::is_unknown")]
        by: MadeBy,
    },
    /// The result of a call.
    Tool {
        /// The provider's id of the call.
        call: String,
        /// The tool's wire name.
        name: String,
        /// The text for the model.
        text: String,
        /// The files.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        files: Vec<Attachment>,
    },
}

impl Message {
    /// Creates a message of the user without files.
    pub fn user(text: impl Into<String>) -> Self {
        Self::User { text: text.into(), files: Vec::new() }
    }

    /// Creates a message of an unknown model.
    #[must_use]
    pub fn assistant(parts: Vec<Assistant>) -> Self {
        Self::Assistant { parts, by: MadeBy::default() }
    }

    /// Returns the files of the message, in order.
    pub fn files(&self) -> impl Iterator<Item = &Attachment> {
        let (files, parts) = match self {
            Self::User { files, .. } | Self::Tool { files, .. } => (files.as_slice(), [].as_slice()),
            Self::Assistant { parts, .. } => ([].as_slice(), parts.as_slice()),
        };
        let made = parts.iter().filter_map(|part| match part {
            Assistant::File { file, .. } => Some(file),
            _ => None,
        });
        files.iter().chain(made)
    }
}

/// A part of a model's message, as it is sent back to the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Assistant {
    /// Natural language.
    Text {
        /// The text.
        text: String,
    },
    /// Reasoning, with provider data.
    Reasoning {
        /// The visible part of the reasoning.
        text: String,
        /// Provider data that is sent back unchanged.
        #[serde(default, deserialize_with = "document::present", skip_serializing_if = "Option::is_none")]
        data: Option<Value>,
    },
    /// A call.
    Call {
        /// The provider's id of the call.
        call: String,
        /// The tool's wire name.
        name: String,
        /// The arguments, encoded as JSON.
        arguments: String,
        /// Provider data that is sent back unchanged.
        #[serde(default, deserialize_with = "document::present", skip_serializing_if = "Option::is_none")]
        data: Option<Value>,
    },
    /// A file that the model made.
    File {
        /// The file.
        file: Attachment,
        /// Provider data that is sent back unchanged.
        #[serde(default, deserialize_with = "document::present", skip_serializing_if = "Option::is_none")]
        data: Option<Value>,
    },
    /// An item that only the provider understands.
    Opaque {
        /// The item.
        data: Value,
    },
}

/// A message in a [`Transcript`], with its cached encoding.
#[derive(Debug)]
pub struct TranscriptEntry {
    /// The message.
    pub message: Message,
    wire: WireCache,
}

impl TranscriptEntry {
    /// Returns the encoded message; the encoding of the first dialect is cached.
    pub fn wire(&self, dialect: &'static str, encode: impl FnOnce(&Message) -> Box<str>) -> WireText<'_> {
        self.wire.get(dialect, || encode(&self.message))
    }

    /// Returns the length in bytes of the cached encoding, if there is one.
    pub fn wire_len(&self) -> Option<usize> {
        self.wire.len()
    }

    /// Returns the encoded message as other models than its own read it ([`Message::for_others`]); `None` if nothing remains.
    pub fn for_others(&self, dialect: &'static str, encode: impl FnOnce(&Message) -> Box<str>) -> Option<WireText<'_>> {
        let encoded =
            self.wire(dialect, |message| message.for_others().map(|message| encode(&message)).unwrap_or_default());
        (!encoded.is_empty()).then_some(encoded)
    }
}

/// Caches the encoding for one dialect.
#[derive(Default)]
pub(crate) struct WireCache(OnceLock<(&'static str, Box<str>)>);

/// An encoded text: cached, or new for another dialect.
pub type WireText<'a> = Cow<'a, str>;

/// Encodes a value as JSON, for the cache of a message or of a set of tools; `null` if it cannot be encoded.
pub fn wire_text<T: Serialize + ?Sized>(value: &T) -> Box<str> {
    with_scratch(|buffer| {
        let encoded = serde_json::to_writer(&mut *buffer, value).ok().and_then(|()| str::from_utf8(buffer).ok());
        encoded.unwrap_or("null").into()
    })
}

impl WireCache {
    pub(crate) fn get(&self, dialect: &'static str, encode: impl FnOnce() -> Box<str>) -> WireText<'_> {
        let mut encode = Some(encode);
        let cached = self.0.get_or_init(|| (dialect, encode.take().map(|encode| encode()).unwrap_or_default()));
        match encode.filter(|_| cached.0 != dialect) {
            Some(encode) => WireText::Owned(encode().into()),
            None => WireText::Borrowed(&cached.1),
        }
    }

    pub(crate) fn len(&self) -> Option<usize> {
        self.0.get().map(|(_, text)| text.len())
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
    list: Arc<RwLock<SharedMessages>>,
    len: usize,
    has_files: bool,
}

/// The messages that transcripts share.
#[derive(Debug, Default)]
struct SharedMessages {
    entries: Vec<Arc<TranscriptEntry>>,
    /// The first message with a call of an id, by the id's hash: enough to know that an id is new.
    calls: HashMap<u64, usize>,
    /// The models of the answers, each once.
    makers: Vec<MadeBy>,
}

impl SharedMessages {
    fn push(&mut self, entry: Arc<TranscriptEntry>) {
        if let Message::Assistant { parts, by } = &entry.message {
            if !self.makers.iter().any(|known| known.is_same(by)) {
                self.makers.push(by.clone());
            }
            for part in parts {
                if let Assistant::Call { call, .. } = part {
                    self.calls.entry(hash(call)).or_insert(self.entries.len());
                }
            }
        }
        self.entries.push(entry);
    }

    /// Copies the first messages.
    fn first(&self, len: usize) -> Self {
        Self {
            entries: self.entries.iter().take(len).cloned().collect(),
            calls: self.calls.iter().filter(|(_, at)| **at < len).map(|(id, at)| (*id, *at)).collect(),
            makers: self.makers.clone(),
        }
    }
}

fn hash(id: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}

impl Transcript {
    /// Creates a transcript.
    pub fn new(messages: impl IntoIterator<Item = Message>) -> Self {
        let mut transcript = Self::default();
        for message in messages {
            transcript.push(message);
        }
        transcript
    }

    /// Appends a message. Existing clones do not see it. If another clone has already grown by an equal message, that one is
    /// shared; if by a different one, the list is copied, and both share its messages.
    pub fn push(&mut self, message: Message) {
        self.has_files |= message.files().next().is_some();
        self.push_entry(Arc::new(TranscriptEntry { message, wire: WireCache::default() }));
    }

    fn push_entry(&mut self, entry: Arc<TranscriptEntry>) {
        let mut own = 'own: {
            let mut list = self.list.write();
            match list.entries.get(self.len) {
                None => list.push(entry),
                // A run sends the messages of its turn before they become a part of its conversation.
                Some(known) if known.message == entry.message => {}
                Some(_) => break 'own list.first(self.len),
            }
            self.len += 1;
            return;
        };
        own.push(entry);
        self.len = own.entries.len();
        self.list = Arc::new(RwLock::new(own));
    }

    /// Returns [`Recipient::made`] as a closure for the messages of this transcript. It compares nothing if no answer is of another model.
    pub fn made_by<'a>(&self, to: Recipient<'a>) -> impl Fn(&Message) -> bool + use<'a> {
        let is_only = self.list.read().makers.iter().all(|by| to.is(by));
        move |message| is_only || to.made(message)
    }

    /// Returns whether a message has a call with this id.
    pub(crate) fn has_call(&self, id: &str) -> bool {
        self.list.read().calls.get(&hash(id)).is_some_and(|at| *at < self.len)
    }

    /// Appends a text to the last message if it is the user's and has no files, and returns whether it did. Existing clones keep
    /// the old message.
    pub(crate) fn join_user(&mut self, text: &str) -> bool {
        let joined = match self.read().last().map(|entry| &entry.message) {
            Some(Message::User { text: before, files }) if files.is_empty() => [before, "\n\n", text].concat(),
            _ => return false,
        };
        let before = self.list.read().first(self.len - 1);
        self.list = Arc::new(RwLock::new(before));
        self.len -= 1;
        self.push(Message::user(joined));
        true
    }

    /// Returns the number of messages.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no messages.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns whether a message has a file.
    #[must_use]
    pub const fn has_files(&self) -> bool {
        self.has_files
    }

    /// Returns whether this transcript is known to extend `earlier` without comparing messages:
    /// both share one list.
    #[must_use]
    pub fn extends(&self, earlier: &Self) -> bool {
        Arc::ptr_eq(&self.list, &earlier.list) && self.len >= earlier.len
    }

    /// Locks the messages for reading; do not hold the guard across an `await`.
    #[must_use]
    pub fn read(&self) -> TranscriptGuard<'_> {
        TranscriptGuard { list: self.list.read(), len: self.len }
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
    list: RwLockReadGuard<'a, SharedMessages>,
    len: usize,
}

impl std::ops::Deref for TranscriptGuard<'_> {
    type Target = [Arc<TranscriptEntry>];

    fn deref(&self) -> &[Arc<TranscriptEntry>] {
        self.list.entries.get(..self.len).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(text: &str) -> Message {
        Message::user(text)
    }

    #[test]
    fn clone_keeps_its_length_and_shares_the_list() {
        let mut transcript = Transcript::new([user("a")]);
        let request = transcript.clone();
        transcript.push(user("b"));

        assert_eq!(request.messages(), [user("a")]);
        assert_eq!(transcript.messages(), [user("a"), user("b")]);
        assert!(transcript.extends(&request));
        assert!(!request.extends(&transcript));
    }

    #[test]
    fn clones_that_both_grow_diverge() {
        let mut one = Transcript::new([user("a")]);
        let mut other = one.clone();
        one.push(user("b"));
        other.push(user("c"));

        assert_eq!(one.messages(), [user("a"), user("b")]);
        assert_eq!(other.messages(), [user("a"), user("c")]);
    }

    #[test]
    fn clones_that_grow_by_the_same_messages_share_them() {
        let mut one = Transcript::new([user("a")]);
        let mut other = one.clone();
        one.push(user("b"));
        other.push(user("b"));
        other.push(user("c"));

        assert_eq!(one.messages(), [user("a"), user("b")]);
        assert_eq!(other.messages(), [user("a"), user("b"), user("c")]);
        assert!(Arc::ptr_eq(&one.list, &other.list));
    }

    #[test]
    fn message_is_encoded_once_for_its_first_dialect() {
        let transcript = Transcript::new([user("a")]);
        let guard = transcript.read();

        assert_eq!(guard[0].wire("chat", |_| "1".into()), "1");
        assert_eq!(guard[0].wire("chat", |_| "2".into()), "1");
        assert_eq!(guard[0].wire("responses", |_| "3".into()), "3");
    }
}
