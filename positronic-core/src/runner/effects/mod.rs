//! Effects: steps, model calls, tools, the preparation of iterations, and the code of plugins around them.
//!
//! An effect that takes time runs in a task of its own and sends reports to its worker. The others run in the worker.
pub(super) mod ask;
pub(super) mod async_effects;
mod charge;
mod child_run;
pub(super) mod continued;
mod edited_arguments;
mod files;
mod group;
mod guards;
pub(super) mod link;
mod model_call;
pub(super) mod plugin_hooks;
pub(super) mod prepare;
pub(super) mod questions;
pub(super) mod record_outcome;
pub(super) mod report;
mod state_owner;
mod structured;
pub(super) mod sync_effects;
mod tool_call;
mod undo;
mod validate_calls;
