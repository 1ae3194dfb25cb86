//! Contents that the log has by hash.

use std::collections::HashMap;

use positronic_core::record::{Content, ContentHash};

/// Contents by hash: the log has each body once, and later only its hash.
#[derive(Debug)]
pub(super) struct BodiesByHash<T> {
    known: HashMap<ContentHash, T>,
    pub(super) current: Option<T>,
}

impl<T> Default for BodiesByHash<T> {
    fn default() -> Self {
        Self { known: HashMap::new(), current: None }
    }
}

impl<T: Clone> BodiesByHash<T> {
    pub(super) fn follow(&mut self, content: Option<&Content<T>>) {
        let Some(content) = content else { return };
        if let Some(body) = &content.body {
            self.known.insert(content.hash.clone(), body.clone());
        }
        self.current = self.known.get(&content.hash).cloned();
    }
}
