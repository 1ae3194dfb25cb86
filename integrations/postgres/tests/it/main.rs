//! Tests against a PostgreSQL server, which they start themselves; see [`server`].
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    reason = "in tests a panic is the message"
)]

mod limits;
mod opening;
mod server;
mod suite;
mod watching;
