//! An event store for [Positronic](positronic_core) in PostgreSQL, which several machines share.
//!
//! A brain does not change: a runner gets a [`PostgresStore`] instead of the embedded store, and every process with the
//! same database sees and continues the same runs.
//!
//! ```no_run
//! use positronic_core::model::scripted::{Reply, ScriptedModel};
//! use positronic_core::prelude::*;
//! use positronic_core::runner::Runner;
//! use positronic_postgres::PostgresStore;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store = PostgresStore::open("postgres://app@db.example.com/agents").await?;
//! let model = ScriptedModel::new([Reply::text("Good morning.")]);
//! let runner = Runner::new(model).store(store);
//!
//! let greeter = brain("Greeter").r#loop("Greet", |cx| cx.system("Greet.").input("Hello!"));
//! let run = runner.start(&greeter, ()).await?;
//! run.result().await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Setup
//!
//! PostgreSQL 13 or later (tested with 15 and 18), with a database in UTF8. The first process that opens the store for writing creates the
//! [schema](PostgresOptions::schema) and its tables, and a newer release migrates them; several processes may do so at
//! once. The user needs the right to create a schema in the database, or all rights on an existing one. The feature `tls`
//! adds encrypted connections; the parameter `sslmode` of the address then decides about them, as in libpq.
//!
//! # Guarantees
//!
//! An append is one statement, so it is one transaction and one round trip. It locks the run's row, checks the expected
//! number and the epoch, and writes the events, the row, pending items, webhooks, timers, references to files, sinks and
//! the snapshot: all or nothing, as durable as the server's `synchronous_commit` says. If the answer is lost, the append fails
//! with [`StoreError::Unknown`](positronic_core::store::StoreError::Unknown); if it was never sent, with
//! [`StoreError::Failed`](positronic_core::store::StoreError::Failed).
//!
//! # Connections
//!
//! A store has a pool of [at most 10 connections](PostgresOptions::connections), and one that listens for notifications of
//! other processes. Where notifications do not arrive, a poll finds appends of other processes within a second.
//!
//! A pooler such as PgBouncer in session mode needs `ignore_startup_parameters = options`. In transaction mode it works from
//! 1.21 on with `max_prepared_statements`, and in any version with `prepared_statements=false` in the address
//! ([option](PostgresOptions::prepared_statements)): each statement is then a transaction of four round trips. Notifications
//! do not pass such a pooler, so only polls remain. Open the store once without the pooler to create or migrate the schema.
//!
//! # Search
//!
//! A search reads all events, those of the newest runs first, until it has found enough. With
//! [an index of trigrams](PostgresOptions::search_index) it reads candidates only, at the price of space and slower
//! appends.
//!
//! # Tables
//!
//! The tables can be queried. Events and documents are the JSON of the log, byte for byte, as `text`. Ids and names are
//! as they are, but `U+0000`, which PostgreSQL cannot store, is written as `U+0001 U+0001`, and `U+0001` as
//! `U+0001 U+0002`.

mod address;
mod append;
mod blobs;
mod columns;
mod connections;
mod entries;
mod failure;
mod figures;
mod leases;
mod mailbox;
mod notifications;
mod options;
mod query;
mod schema;
mod search;
mod sinks;
mod store;
mod sums;
mod text;
mod timers;
#[cfg(feature = "tls")]
mod tls;

pub use options::PostgresOptions;
pub use store::PostgresStore;
