//! Which run is worked on when: the tasks of runs, servers of a store, triggers, and pauses after failures.

pub(super) mod background_service;
pub(super) mod backoffs;
pub(super) mod drive;
pub(super) mod find_runner;
pub(super) mod load_permits;
mod not_claimed;
pub(super) mod quarantine;
mod queue;
pub(super) mod run_task;
pub(super) mod runs_without_handle;
pub(super) mod serve_event;
pub(super) mod server;
pub(super) mod triggers;
