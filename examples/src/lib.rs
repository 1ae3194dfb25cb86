//! Example brains, one per file, each runnable without a key.
//!
//! Begin with [`minimal`], a loop with two tools. Then [`nested`] uses a brain as a stage of another, [`delegate`]
//! lets a model call brains as tools, [`release`] changes a loop's tools with the state, [`warranty`] has every kind of stage except those that run several brains, which are in [`offers`], and [`support`] combines
//! approvals, waits for a customer, and brains as tools and as stages.
//!
//! [`bookshop`] is a project as a whole: its brains, webhooks and prompts are fields of its services, and a webhook starts runs.
//!
//! [`kitchen`] and [`weather`] are for a chat: `chat kitchen`. [`flags`] looks at a picture. [`concierge`]
//! uses tools of the program that talks to it.
//!
//! Plugins of the library: [`toolsets`] offers tools in sets that the model activates and deactivates,
//! [`modes`] lets a loop work in one mode at a time, [`compaction`] keeps a long conversation short, [`blueprints`]
//! shows the documents that match the user's message, [`memory`] stores facts across runs, and
//! [`triggers`] starts prompts at set times.
//!
//! With structured actions, the model answers with an action and a reason: [`rover`] has a fixed set of actions as an
//! enum, and [`agentloop`] is an autonomous agent with the tools of the library's toolbox.
//!
//! [`analyst`] has all features of the agent loop's design in one brain, and `docs/guide/appendix/langgraph.md` compares it with a
//! graph.
//!
//! Each has a title, a function that builds the brain, and a cassette: the answers of the model, the people and the
//! webhooks without a configured model. The tests of this crate show how to test each.

pub mod acme;
pub mod agentloop;
pub mod analyst;
pub mod blueprints;
pub mod bookshop;
pub mod compaction;
pub mod concierge;
pub mod delegate;
pub mod flags;
pub mod kitchen;
pub mod library;
pub mod memory;
pub mod minimal;
pub mod modes;
pub mod nested;
pub mod offers;
pub mod release;
pub mod rover;
pub mod support;
pub mod toolsets;
pub mod triggers;
pub mod warranty;
pub mod weather;
