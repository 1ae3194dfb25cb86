//! Tests against a PostgreSQL server, which they start themselves; see [`server`].
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "in tests a panic is the message"
)]

mod limits;
mod opening;
mod pooler;
#[allow(dead_code, reason = "the other tests use the rest")]
mod server;
mod suite;
#[cfg(feature = "tls")]
mod tls;
mod watching;
