//! The public behaviour of the core.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a helper of a test fails as the test does"
)]

mod actions;
mod active_time;
mod agent_loop;
mod api;
mod approvals;
#[path = "../../../tests/support/asks.rs"]
mod asks;
mod attachments;
mod author_mistakes;
mod batches;
mod bfcl;
mod branches;
mod broken_answers;
mod budget_events;
mod budgets;
mod caller_tools;
mod cancel;
mod children;
mod claims;
mod conversations;
mod costs;
#[path = "../../../tests/support/counting.rs"]
mod counting;
mod crash;
mod crashes;
mod deep;
mod dialogue;
mod drafts;
mod durable_sinks;
mod errors;
mod event_format;
mod events;
mod exits;
mod failures;
mod faults;
mod files;
mod first;
mod fork_deadlines;
mod format_1;
mod fuzz;
mod groups;
mod guards;
mod handoffs;
mod hook_limits;
mod input_guards;
mod judged_calls;
mod judges;
mod limits;
mod long_conversations;
mod loop_guards;
mod loop_outputs;
mod macros;
mod model_texts;
mod near_misses;
mod nesting;
mod outputs;
mod plugins;
mod ports;
mod projects;
mod prompt_stages;
mod records;
mod release;
mod replay;
mod retries;
mod run_figures;
#[cfg(feature = "schedules")]
mod schedules;
mod scripted;
mod serve;
mod sinks;
mod stage_waits;
mod stays;
mod step_policies;
mod steps;
mod structured_actions;
mod structured_combinations;
mod submits;
#[allow(dead_code, reason = "other test binaries use the remaining items")]
#[path = "../../../tests/support/mod.rs"]
mod support;
mod testing;
mod time_travel;
mod timeline;
mod tools;
mod traffic;
mod tries;
mod unattended;
mod undo;
mod waiting_status;
mod waits;
mod widgets;
mod wrap;
