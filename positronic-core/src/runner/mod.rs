//! Performs the effects that the machine asks for, and appends their outcomes.
//!
//! ```text
//! start ─▶ worker ── next(state) ──▶ effects ──▶ author's code, models, tools
//!            ▲                                        │
//!            └── commit ◀── draft ◀── settle ◀── outcomes (one channel, one committer)
//! ```
//!
//! A run has at most one worker. Its claim fences off earlier workers, and only it appends outcomes: in order of
//! completion, or in lockstep, which awaits everything in flight and then appends in path order, so that logs are
//! reproducible. Outcomes that have arrived together are drafted on top of each other and appended once. Signals are
//! appended by their senders, and the worker reads them from the store. The intent of an effect is in the store before the
//! effect starts, with the outcomes that led to it. A waiting run is released, and claimed again when there is work, by its
//! task: `run_task`, or without a handle `runs_without_handle`.
//!
//! `Runner` is defined in `config`, and its methods are in `methods`.
//!
//! | folder | |
//! |---|---|
//! | `worker` | one run: claim, restore, append, release |
//! | `effects`, `detached` | what a worker performs: steps, models, tools, plugins |
//! | `serve` | which run is worked on when: tasks of runs, servers, triggers, pauses |
//! | `client` | access from outside: handles, signals, readers, sinks, forks, retries |
//! | `conversation`, `schedules` | what starts runs after other runs, and at set times |

mod client;
mod clock;
mod code_check;
mod config;
mod conversation;
pub mod detached;
mod effects;
mod methods;
mod resume;
#[cfg(feature = "schedules")]
mod schedules;
mod serve;
mod start;
mod start_on;
mod worker;

pub use client::answers_in_flight::AnswerReader;
pub use client::client::Client;
pub use client::deliver_webhook::Delivered;
pub use client::follow::RunUpdate;
pub use client::fork::{Fork, ForkError};
pub use client::handle::{RunError, RunHandle};
pub use client::retry::{Retried, RetryError};
pub use client::settled::Settled;
pub use client::signals::SignalError;
pub use client::undo::UndoError;
pub use clock::{Clock, Ids, SystemClock, UuidIds};
pub use code_check::CodeCheck;
pub use config::Runner;
pub use conversation::conversation::Conversation;
pub use conversation::conversations::{ConversationSummary, Conversations};
pub use conversation::error::ConversationError;
#[cfg(feature = "schedules")]
pub use schedules::{ScheduleError, ScheduleList, Schedules, UnreadableSchedule};
pub use serve::background_service::Service;
pub use serve::drive::Driven;
pub use serve::find_runner::{FindRunner, NoRunner};
pub use serve::serve_event::{ClaimError, NotFired, ServeEvent};
pub use serve::server::Server;
pub use serve::triggers::{DueTrigger, FireError, Firing};
pub use start::{Difference, StartError};
pub use start_on::DeliveryError;
pub use worker::claimed_runs::Release;
pub use worker::stop_reason::ResumeError;

pub use crate::definition::UnknownAction;
pub use crate::record::Busy;
