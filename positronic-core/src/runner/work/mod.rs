//! Which run is worked on when: the tasks of runs, servers of a store, triggers, and pauses after failures.

pub(super) mod drive;
mod due;
pub(super) mod firing;
pub(super) mod quarantine;
mod release;
pub(super) mod resume_backoff;
pub(super) mod resume_options;
pub(super) mod run_task;
pub(super) mod serve;
pub(super) mod serve_event;
pub(super) mod server;
pub(super) mod trigger_backoffs;
pub(super) mod triggers;
pub(super) mod unattended;
