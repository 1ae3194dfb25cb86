//! Access to runs from outside of their workers: handles, signals, readers, sinks, forks and retries.

pub(super) mod answers_in_flight;
pub(super) mod child_ends;
pub(super) mod client;
pub(super) mod deliver_webhook;
pub(super) mod follow;
mod follower;
pub(super) mod fork;
pub(super) mod handle;
pub(super) mod live;
mod prune;
pub(super) mod retry;
mod run_methods;
pub(super) mod settled;
mod shared_log;
mod signal_methods;
pub(super) mod signals;
pub(super) mod sink_feed;
pub(super) mod undelivered_events;
pub(super) mod undo;
