//! Performs the effects that the machine asks for, and appends their outcomes.
//!
//! ```text
//! start ─▶ worker ── next(state) ──▶ effects ──▶ author's code, models, tools
//!            ▲                                        │
//!            └── commit ◀── events ◀── settle ◀── outcomes (one channel, one committer)
//! ```
//!
//! A run has at most one worker. Its claim fences off earlier workers, and only it appends outcomes: in order of
//! completion, or in lockstep, which awaits everything in flight and then appends in path order, so that logs are
//! reproducible. Signals are appended by their senders, and the worker reads them from the store. The intent of an
//! effect is in the store before the effect starts, its outcome before the next decision. A waiting run is released,
//! and claimed again when there is work, by its task (`run_task`) or, without a handle, by its runner (`unattended`).

mod append;
mod ask;
mod async_effects;
mod bill;
mod catch;
mod claim;
mod client;
mod clock;
mod commit;
mod config;
mod conversation;
mod conversation_budget;
mod conversations;
pub mod detached;
mod drive;
mod due;
mod durable_sinks;
mod early_webhooks;
mod edited_arguments;
mod feed;
mod files;
mod firing;
mod follow;
mod follower;
mod fork;
mod frames;
mod handle;
mod histories;
mod lease;
mod link;
mod live;
mod load;
mod open;
mod plugin_hooks;
mod prepare;
mod prune;
mod quarantine;
mod questions;
mod record_outcome;
mod registry;
mod release;
mod report;
mod restore;
mod resume_backoff;
mod resume_options;
mod retry;
mod run_task;
mod saved;
#[cfg(feature = "schedules")]
mod schedules;
mod serve;
mod serve_event;
mod server;
mod shared;
mod signals;
mod start;
mod state_owner;
mod stop;
mod structured;
mod sync_effects;
mod timers;
mod trigger_backoffs;
mod triggers;
mod unattended;
mod validate_calls;
mod worker;

pub use client::{Client, Delivered};
pub use clock::{Clock, Ids, SystemClock, UuidIds};
pub use config::Runner;
pub use conversation::{Conversation, ConversationError};
pub use conversations::ConversationSummary;
pub use drive::Driven;
pub use firing::DueTrigger;
pub use follow::RunUpdate;
pub use fork::{Fork, ForkError};
pub use handle::{RunError, RunHandle, Settled};
pub use open::CodeCheck;
pub use registry::Release;
pub use retry::{Retried, RetryError};
#[cfg(feature = "schedules")]
pub use schedules::{ScheduleError, ScheduleList, Schedules, UnreadableSchedule};
pub use serve::Service;
pub use serve_event::{ClaimError, FindRunner, NoRunner, NotFired, ServeEvent};
pub use server::Server;
pub use signals::SignalError;
pub use start::{Difference, StartError};
pub use stop::ResumeError;
pub use triggers::{FireError, Firing};

pub use crate::definition::UnknownAction;
pub use crate::record::Busy;
