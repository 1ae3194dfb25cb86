//! What is known of a run as a whole: its start, signals, limits, summary, and what starts others.

pub(in crate::record) mod actor;
pub(in crate::record) mod budget;
pub(in crate::record) mod child;
pub(in crate::record) mod loop_limits;
pub(in crate::record) mod pending_kind;
pub(in crate::record) mod scheduled;
pub(in crate::record) mod signal;
pub(in crate::record) mod starter;
pub(in crate::record) mod summary;
mod trace_context;
pub(in crate::record) mod trigger;
pub(in crate::record) mod webhook_delivery;
