//! Extends the loops of Positronic. Each plugin is registered with [`Loop::plugin`](positronic_core::dsl::Loop::plugin), and
//! uses only the public API, as any other [`Plugin`](positronic_core::dsl::Plugin) does.
//!
//! | plugin | purpose | state |
//! |---|---|---|
//! | [`Blueprints`] | documents that match the latest user input, as context | [`FoundBlueprints`] |
//! | [`Compaction`] | a summary of the older part of a long conversation | [`Compacted`] |
//! | [`Memory`] | facts about a user, across runs: the model stores, searches and deletes them, and sees those that match | [`RecalledFacts`] |
//! | [`Modes`] | one way of working at a time: a prompt, allowed tools, transitions, with waits and exits | [`CurrentMode`] |
//! | [`Toolsets`] | named sets of tools that the model activates and deactivates during a conversation | [`ActiveToolsets`] |
//! | [`Triggers`] | prompts that start at a given time or repeatedly: the model sets, lists and deletes them | none |
//!
//! Three values make checks for the guards of a loop, which need no state and so no plugin:
//!
//! | guard | purpose |
//! |---|---|
//! | [`Patterns`] | refuses or replaces API keys, card numbers, IBANs, e-mail addresses, and what your regular expressions match |
//! | [`MatchesSchema`] | requires JSON that fits the schema of a type |
//! | [`Judge`] | lets a model judge by a rule, or by a list of topics |

mod blueprints;
mod compaction;
mod judge;
mod matches_schema;
mod memory;
mod modes;
mod patterns;
mod toolsets;
mod triggers;
mod usage_panic;

use positronic_core::record::{OutputKind, Prompt};

pub use blueprints::{Blueprints, Document, DocumentSource, FoundBlueprints, MarkdownFolder, MemoryIndex};
pub use compaction::{Compacted, Compaction};
pub use judge::Judge;
pub use matches_schema::MatchesSchema;
#[cfg(feature = "sqlite")]
pub use memory::SqliteFacts;
pub use memory::{Fact, FactId, FactOwner, FactStore, Memory, MemoryFacts, RecalledFacts};
pub use modes::{CurrentMode, Mode, Modes};
pub use patterns::Patterns;
pub use toolsets::{ActiveToolsets, Toolsets};
pub use triggers::{NoTriggerState, Triggers};

/// Returns the latest user input of a loop.
fn latest_input(record: Prompt) -> Option<String> {
    let said = record.output.into_iter().rev().find_map(|output| match output.kind {
        OutputKind::Message { text, engine: false, .. } => Some(text),
        _ => None,
    });
    said.or(record.input)
}

/// Formats a list of names in backticks.
fn listed(names: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let names: Vec<_> = names.into_iter().map(|name| format!("`{}`", name.as_ref())).collect();
    names.join(", ")
}
