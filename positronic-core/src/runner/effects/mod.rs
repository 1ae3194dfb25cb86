//! Effects: steps, model calls, tools, the preparation of iterations, and the code of plugins around them.
//!
//! An effect that takes time runs in a task of its own and sends reports to its worker. The others run in the worker.

pub(super) mod async_effects;
mod branch;
pub(super) mod caller_tools;
mod charge;
mod child_run;
pub(super) mod continued;
mod files;
mod group;
mod guards;
mod hook_limit;
pub(super) mod link;
mod model_call;
mod nested_brain;
pub(super) mod plugin_hooks;
mod plugin_updates;
pub(super) mod prepare;
pub(super) mod questions_and_values;
mod recheck_edited_arguments;
pub(super) mod record_outcome;
pub(super) mod report;
pub(super) mod send_request;
pub(super) mod state_owner;
mod step;
mod structured_actions;
pub(super) mod sync_effects;
mod tool_call;
mod undo;
mod validate_calls;
mod wait;
