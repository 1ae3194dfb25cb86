//! The conversation before a run, for any model.

use std::ops::Deref;
use std::sync::Arc;

use crate::record::{Message, Output};

/// The conversation before a run, as messages for models without a projection of their own.
///
/// For models with one it holds the records of the earlier loops, so that the model asked now creates their messages.
/// The result of a compaction stays unchanged.
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

    /// Returns its messages for a model with a projection of its own; `None` if the model has none.
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
