//! `/runs`: lists them, starts them, shows what they did, and changes them.

pub(crate) mod can_continue;
pub(crate) mod cost_estimate;
pub(crate) mod diff;
pub(crate) mod event_stream;
pub(crate) mod events;
pub(crate) mod files;
pub(crate) mod fork;
pub(crate) mod fork_decisions;
pub(crate) mod fork_preview;
pub(crate) mod hits;
pub(crate) mod list;
pub(crate) mod model_answer;
pub(crate) mod next_model;
pub(crate) mod playground;
pub(crate) mod requests;
pub(crate) mod retry;
pub(crate) mod run;
pub(crate) mod signals;
pub(crate) mod start;
pub(crate) mod start_rules;
pub(crate) mod state;
pub(crate) mod timeline;
pub(crate) mod wait;
