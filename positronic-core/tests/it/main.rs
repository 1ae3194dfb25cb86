//! The core from the outside: the promises of the design, one story each.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a helper of a test fails as the test does"
)]

mod actions;
mod agent_loop;
mod api;
mod approvals;
#[path = "../support/asks.rs"]
mod asks;
mod batches;
mod bfcl;
mod budget_events;
mod budgets;
mod cancel;
mod claims;
mod conversations;
mod costs;
mod crash;
mod crashes;
mod decisions;
mod deep;
mod dialogue;
mod errors;
mod event_format;
mod events;
mod exits;
mod faults;
mod files;
mod first;
mod format_1;
#[cfg(feature = "openai")]
mod fuzz;
mod layers;
mod limits;
mod nesting;
mod outputs;
mod plugins;
mod release;
mod replay;
mod report;
mod robust;
mod scripted;
mod served;
mod shown;
mod sinks;
mod steps;
mod structured;
#[allow(dead_code, reason = "other binaries use the rest")]
#[path = "../support/mod.rs"]
mod support;
mod testing;
mod tools;
mod traffic;
mod travel;
mod unattended;
mod waits;
mod why;
mod wrap;
