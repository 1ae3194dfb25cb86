//! Plugins that come with the library. Each is registered with [`Loop::plugin`](crate::dsl::Loop::plugin), and written on
//! nothing but what [`dsl`](crate::dsl) gives to every [`Plugin`](crate::dsl::Plugin).
//!
//! | plugin | what it does | what it keeps |
//! |---|---|---|
//! | [`Memory`] | facts about a user, over all runs: the model stores, searches and forgets them, and is shown those that fit | [`RecalledFacts`] |

mod memory;

#[cfg(feature = "sqlite")]
pub use memory::SqliteFacts;
pub use memory::{Fact, FactId, FactOwner, FactStore, Memory, MemoryFacts, RecalledFacts};
