//! Changes of runs, triggers and schedules.

pub(crate) mod fork;
pub(crate) mod prune;
pub(crate) mod retry;
pub(crate) mod schedule;
pub(crate) mod send;
pub(crate) mod signal;
pub(crate) mod triggers;
pub(crate) mod undo;
