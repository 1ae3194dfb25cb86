//! Event stores: where the logs of runs are persisted.
//!
//! This module is for adapters of stores; an author of brains needs [`MemoryStore`] of it, or the
//! `SqliteStore` of the crate `positronic-sqlite`. An adapter implements eight traits, whose sum is [`EventStore`]:
//! [`EventLog`], [`RunIndex`], [`LeaseStore`], [`MailboxStore`], [`TimerStore`], [`BlobStore`], [`EntryStore`] and
//! [`SinkStore`]. One around another store implements [`StoreWrapper`].
//!
//! An append is atomic and states the number of its first event: a writer that loses a race for a number reads the new
//! events, decides again and retries. The outcome of an effect also carries the epoch of its worker's claim, so that a
//! worker that lost its run can no longer write; a signal carries no epoch.
//!
//! In the same transaction a store updates what lists show: a row for each run and an entry for each pending item, so
//! that listing never loads a log. Six things are not derived from a log: the mailbox, where a webhook stays until a run
//! waits for it, the bytes of files, timers, which outlive the runs that set them, the leases of workers, which runs are
//! reserved, paused or refused, and entries: small documents such as schedules and the hashes of access tokens.

mod append;
mod blob;
mod counts;
mod deferral;
mod entry;
mod error;
mod event_log;
mod event_store;
mod figures;
mod grown;
mod lease;
mod mailbox;
mod memory;
mod pages;
pub mod prelude;
mod query;
mod run_index;
mod sink;
mod sums;
mod timer;
mod watchers;
mod wrapper;

pub use futures::future::BoxFuture;

pub use crate::record::LARGEST_BLOB;

pub use append::{Append, Index, SavedPrompts, Snapshot, TimerChange};
pub use blob::{BLOB_GRACE, BlobStore, content_hash, swept_before, verify_content};
pub use counts::RunCounts;
pub use deferral::{Deferral, REFUSALS};
pub(crate) use deferral::{LONGEST_PAUSE, pause_after};
pub use entry::{Entry, EntryFilter, EntryStore};
pub use error::StoreError;
pub use event_log::{EventLog, Watcher};
pub use event_store::EventStore;
pub use figures::{
    EndedFold, EndedRun, EndedRuns, FigureFilter, Figures, ModelFold, ModelRuns, ModelShare, OpenRuns, WaitingItems,
};
pub use grown::GrownRuns;
pub use lease::{DueFilter, DueRun, Lease, LeaseStore};
pub use mailbox::{DeliveryState, InboundWebhook, MailboxEntry, MailboxStore, PostOutcome};
pub use memory::MemoryStore;
pub use pages::{PendingPages, RunPages};
pub use query::{
    EventMatch, EventMatches, EventSearch, PendingCursor, PendingFilter, PendingItem, RunCursor, RunFilter,
    TimerFilter, TimerOwner, WaitingRun,
};
pub use run_index::RunIndex;
pub use sink::SinkStore;
pub use sums::RunSums;
pub use timer::TimerStore;
pub use watchers::Watchers;
pub use wrapper::StoreWrapper;
