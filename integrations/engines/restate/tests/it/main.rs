//! Runs on a real Restate server, with processes that are killed: the service, the server, and both.
//!
//! `.ci/restate` installs the server and runs these tests. Without it they are skipped, except in CI.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a helper of a test fails as the test does"
)]

mod bench;
mod errands;
mod kills;
mod server;
mod waits;
