//! The embedded store: one SQLite file.
//!
//! One thread writes. It takes everything that waits to be written, of all runs, into one transaction, each append in a
//! savepoint of its own; who asked is answered after the commit. Where a commit does not wait for the disk, a run that is
//! alone is written to without it. Another thread copies the log of commits into the file. Two threads read, and searches
//! have a third, so that no executor waits for a disk.
//! Other processes may use the same file at the same time.
//!
//! What an append says beside its events (the run's row, what waits, mail that was taken, timers, which files are the
//! run's, a snapshot) is written in its transaction. Events lie in the order of their run and number; the rows have indexes for what lists filter by.

mod append;
mod blobs;
mod connection;
mod copier;
mod failure;
mod gone;
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
mod store;
mod timers;
mod writer;

pub use options::{Durability, SqliteOptions};
pub use store::SqliteStore;
