//! Several machines, as processes with one PostgreSQL server: workers that are killed, stopped, cut off and replaced.
//!
//! A worker is this program again; see [`worker`]. Its tools write to a ledger, which a test compares with the logs.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::exit,
    reason = "in tests a panic is the message, and processes have clocks of their own"
)]

mod brains;
mod chaos;
mod checks;
mod cluster;
#[path = "../../../../../tests/support/suspects.rs"]
mod culprits;
mod deployments;
#[path = "../../../../../tests/support/dialogues.rs"]
#[allow(dead_code, reason = "the tests of the core use the rest")]
mod dialogues;
mod leases;
mod ledger;
mod outages;
mod proxy;
#[path = "../it/server.rs"]
#[allow(dead_code, reason = "the other tests use the rest")]
mod server;
mod suspects;
mod worker;
