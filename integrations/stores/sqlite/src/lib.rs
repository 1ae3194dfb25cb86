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
mod columns;
mod connection;
mod due;
mod entries;
mod failure;
mod figures;
mod file_identity;
mod group_commit;
mod leases;
mod mailbox;
mod options;
mod pending;
mod query;
mod reader;
mod remove;
mod schema;
mod sinks;
mod store;
mod sums;
mod timers;
mod writer;

/// The SQLite library of the store, re-exported because a build can have only one `libsqlite3-sys`: it links the C library
/// `sqlite3`.
///
/// A project that uses `rusqlite` itself must use the version that is re-exported here, now 0.41 (`libsqlite3-sys` 0.39);
/// cargo refuses another one with *Only one package in the dependency graph may specify the same links value*. The feature
/// `sqlite` of `sqlx` needs an older `libsqlite3-sys` (`sqlx` 0.9: 0.30 to 0.37), so the two cannot be combined: use another
/// store, or use `sqlx` without its feature `sqlite`.
pub use rusqlite;

pub use options::{Durability, SqliteOptions};
pub use store::SqliteStore;
