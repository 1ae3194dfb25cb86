//! Plugins that come with the library. Each is registered with [`Loop::plugin`](crate::dsl::Loop::plugin), and written on
//! nothing but what [`dsl`](crate::dsl) gives to every [`Plugin`](crate::dsl::Plugin).
//!
//! | plugin | what it does | what it keeps |
//! |---|---|---|
//! | [`Blueprints`] | the documents that fit the latest user input, as context | [`FoundBlueprints`] |
//! | [`Compaction`] | the older part of a long conversation as one message, which can be whole again | [`Compacted`] |
//! | [`Memory`] | metadata about a user, over all runs: the model stores, searches and forgets them, and is shown those that fit | [`RecalledFacts`] |
//! | [`Modes`] | one way to work at a time: a prompt, the tools allowed, the ways out, with waits and exits | [`CurrentMode`] |
//! | [`Skills`] | named sets of tools that the model activates and deactivates in mid-conversation | [`ActiveSkills`] |
//! | [`Triggers`] | prompts that start at a time or again and again: the model sets, lists and deletes them | nothing |

mod blueprints;
mod compaction;
mod memory;
mod modes;
mod skills;
mod triggers;

use crate::record::{OutputKind, Prompt};

pub use blueprints::{Blueprints, Document, DocumentSource, FoundBlueprints, MarkdownFolder, MemoryIndex};
pub use compaction::{Compacted, Compaction};
#[cfg(feature = "sqlite")]
pub use memory::SqliteFacts;
pub use memory::{Fact, FactId, FactOwner, FactStore, Memory, MemoryFacts, RecalledFacts};
pub use modes::{CurrentMode, Mode, Modes};
pub use skills::{ActiveSkills, Skills};
pub use triggers::{NoTriggerState, Triggers};

/// Returns what the user has said last in a loop.
fn latest_input(record: Prompt) -> Option<String> {
    let said = record.output.into_iter().rev().find_map(|output| match output.kind {
        OutputKind::Message { text, engine: false } => Some(text),
        _ => None,
    });
    said.or(record.input)
}

/// Lists names in a sentence: each in backticks.
fn listed(names: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let names: Vec<_> = names.into_iter().map(|name| format!("`{}`", name.as_ref())).collect();
    names.join(", ")
}
