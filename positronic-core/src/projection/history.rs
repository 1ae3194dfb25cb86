//! The conversation before a run, for whichever model is asked.

use std::ops::Deref;
use std::sync::Arc;

use crate::record::{Message, Output};

/// The conversation before a run. It reads as the messages that models get who do not make them in a way of their own.
///
/// For those who do, it holds what the loops before have recorded, so that their messages are made by the model that is
/// asked now, and not by the one that was asked then. What a compaction has kept stays as it is.
#[derive(Debug, Clone, Default)]
pub struct History {
    messages: Arc<[Message]>,
    parts: Arc<[Past]>,
}

/// A part of a conversation.
#[derive(Debug, Clone)]
pub(super) enum Past {
    /// Messages that are the same for every model.
    Said(Vec<Message>),
    /// Consecutive outputs of one loop.
    Done(Arc<[Output]>),
}

impl History {
    pub(super) fn new(messages: Vec<Message>, parts: Vec<Past>) -> Self {
        Self { messages: messages.into(), parts: parts.into() }
    }

    /// Returns its messages for a model that makes them in its own way; none where it does not.
    #[must_use]
    pub fn messages_by(&self, mut project: impl FnMut(&[Output]) -> Option<Vec<Message>>) -> Option<Vec<Message>> {
        let mut messages = Vec::with_capacity(self.messages.len());
        for part in &*self.parts {
            match part {
                Past::Said(said) => messages.extend(said.iter().cloned()),
                Past::Done(outputs) => messages.extend(project(outputs)?),
            }
        }
        Some(messages)
    }

    pub(super) fn parts(&self) -> &[Past] {
        &self.parts
    }
}

impl Deref for History {
    type Target = [Message];

    fn deref(&self) -> &Self::Target {
        &self.messages
    }
}

impl From<Vec<Message>> for History {
    fn from(messages: Vec<Message>) -> Self {
        Self::new(messages.clone(), vec![Past::Said(messages)])
    }
}
