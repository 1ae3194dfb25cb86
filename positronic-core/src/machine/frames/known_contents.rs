//! Contents that events of a loop reference by hash.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::record::{ContentHash, ContextItem, Settings, ToolDecl};

/// The latest contents of a loop's iterations, for reference by hash. It is bounded, so that a loop
/// whose prompt changes in every iteration does not grow its state.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(in crate::machine) struct KnownContents(VecDeque<(ContentHash, KnownContent)>);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::machine) enum KnownContent {
    Text(Arc<str>),
    Item(ContextItem),
    Tool(ToolDecl),
    Settings(Arc<Settings>),
}

impl KnownContents {
    /// The maximum number of contents: enough for the tools of a large loop in two modes.
    const MOST: usize = 256;

    pub(in crate::machine) fn add(&mut self, hash: ContentHash, body: KnownContent) {
        if self.get(&hash).is_none() {
            self.0.push_back((hash, body));
        }
    }

    /// Drops the oldest contents. Called after a complete event, which may reference contents known before it.
    pub(in crate::machine) fn forget(&mut self) {
        let excess = self.0.len().saturating_sub(Self::MOST);
        self.0.drain(..excess);
    }

    pub(in crate::machine) fn get(&self, hash: &ContentHash) -> Option<&KnownContent> {
        self.0.iter().rev().find(|(known, _)| known == hash).map(|(_, body)| body)
    }
}
