//! The contents that a hash alone can stand for.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::record::{ContentHash, ContextItem, Settings, ToolDecl};

/// The last contents that a loop's iterations brought, so that a hash alone can stand for them. It is bounded, so a loop
/// whose prompt changes every iteration does not grow its state.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct Known(VecDeque<(ContentHash, KnownContent)>);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum KnownContent {
    Text(Arc<str>),
    Item(ContextItem),
    Tool(ToolDecl),
    Settings(Arc<Settings>),
}

impl Known {
    /// How many contents are remembered: room for the tools of a large loop in two modes.
    const MOST: usize = 256;

    pub(super) fn add(&mut self, hash: ContentHash, body: KnownContent) {
        if self.get(&hash).is_none() {
            self.0.push_back((hash, body));
        }
    }

    /// Forgets the oldest. It comes after a whole event, which may name by their hashes what was known before it.
    pub(super) fn forget(&mut self) {
        let excess = self.0.len().saturating_sub(Self::MOST);
        self.0.drain(..excess);
    }

    pub(super) fn get(&self, hash: &ContentHash) -> Option<&KnownContent> {
        self.0.iter().rev().find(|(known, _)| known == hash).map(|(_, body)| body)
    }
}
