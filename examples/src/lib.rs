//! Brains to read and to run, one a file, each without a key.
//!
//! Begin with [`minimal`], a loop with two tools. Then [`nested`] puts a brain into another as a stage, [`delegate`]
//! lets a model call brains as tools, [`release`] changes a loop's tools with the state, and [`support`] is everything
//! at work: approvals, a customer who is waited for, brains as tools and as stages.
//!
//! [`kitchen`] and [`weather`] are to talk with: `chat kitchen`.
//!
//! Of the plugins that come with the library, [`skills`] gives tools in sets that the model takes and lays down,
//! [`modes`] lets a loop work in one way at a time, [`compaction`] keeps a long conversation short, [`blueprints`]
//! shows the documents that fit what the user says, [`memory`] remembers over all runs what that was, and
//! [`triggers`] starts a prompt at its time.
//!
//! In decisions, the model answers with an action and the reason for it: [`rover`] has a fixed space of actions as an enum, and
//! [`agentloop`] is an autonomous agent with the tools of the library's toolbox.
//!
//! [`analyst`] has all of the agent loop's design in one brain, and `docs/guide/appendix/langgraph.md` compares it with a graph.
//!
//! Each has a title, a function that makes the brain, and a cassette: what the model, the people and the webhooks say
//! where no model is configured. The tests of this crate show how each is tested.

pub mod acme;
pub mod agentloop;
pub mod analyst;
pub mod blueprints;
pub mod compaction;
pub mod delegate;
pub mod kitchen;
pub mod memory;
pub mod minimal;
pub mod modes;
pub mod nested;
pub mod release;
pub mod rover;
pub mod skills;
pub mod support;
pub mod triggers;
pub mod weather;
