//! Facts in memory.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use positronic_core::Result;

use super::rank::{best, words};
use super::{Fact, FactId, FactOwner, FactStore};

/// Facts in memory, lost when the process ends; clones share them. The search is that of `SqliteFacts`.
#[derive(Debug, Clone, Default)]
pub struct MemoryFacts(Arc<Mutex<HashMap<FactOwner, Vec<Fact>>>>);

impl MemoryFacts {}

impl FactStore for MemoryFacts {
    async fn remember(&self, owner: &FactOwner, text: &str) -> Result<Fact> {
        let fact = Fact::new(text);
        let mut facts = self.0.lock();
        let own = facts.entry(owner.clone()).or_default();
        if !own.iter().any(|known| known.id == fact.id) {
            own.push(fact.clone());
        }
        Ok(fact)
    }

    async fn search(&self, owner: &FactOwner, query: &str, limit: usize) -> Result<Vec<Fact>> {
        let facts = self.0.lock();
        let own = facts.get(owner).map(Vec::as_slice).unwrap_or_default();
        Ok(best(own.to_vec(), own.len(), &words(query), limit))
    }

    async fn forget(&self, owner: &FactOwner, id: &FactId) -> Result<bool> {
        let mut facts = self.0.lock();
        let Some(own) = facts.get_mut(owner) else { return Ok(false) };
        let before = own.len();
        own.retain(|fact| fact.id != *id);
        Ok(own.len() < before)
    }

    async fn list(&self, owner: &FactOwner) -> Result<Vec<Fact>> {
        Ok(self.0.lock().get(owner).cloned().unwrap_or_default())
    }
}
