//! The embedded store: one SQLite file, which several processes may share.
//!
//! One thread writes. It commits all waiting jobs of all runs in one transaction, each append in a savepoint of its own,
//! and replies after the commit. Where a commit does not wait for the disk, a run without concurrent writers is written on
//! the caller's thread instead. Another thread checkpoints the write-ahead log. Two threads read, and a third one searches,
//! so that no executor waits for a disk.
//!
//! The rest of an append (the run's row, pending items, delivered webhooks, timers, file references, a snapshot) is
//! written in its transaction. Events are ordered by run and number; the rows have indexes for the fields of the filters.

mod append;
mod backup;
mod blobs;
mod checkpointer;
mod connection;
mod due;
mod entries;
mod failure;
mod file_identity;
mod group;
mod leases;
mod mailbox;
mod options;
mod pending;
mod query;
mod reader;
mod remove;
mod rows;
mod schema;
mod sinks;
mod store;
mod timers;
mod writer;

pub use options::{Durability, SqliteOptions};
pub use store::SqliteStore;
