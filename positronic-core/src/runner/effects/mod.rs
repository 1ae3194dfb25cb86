//! Effects: steps, model calls, tools, the preparation of iterations, and the code of plugins around them.
//!
//! An effect that takes time runs in a task of its own and sends reports to its worker. The others run in the worker.

mod ask;
mod async_effects;
mod edited_arguments;
mod files;
pub(super) mod link;
pub(super) mod plugin_hooks;
mod prepare;
mod questions;
pub(super) mod record_outcome;
pub(super) mod report;
mod state_owner;
mod structured;
mod sync_effects;
mod validate_calls;
