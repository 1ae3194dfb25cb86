//! Tools of MCP servers from the outside, with servers of these tests: in this process, as shell scripts, and over HTTP on this
//! machine. `tests/lanes` plays with servers that others wrote.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a helper of a test fails as the test does"
)]

mod answers;
mod approvals;
mod desk;
mod failures;
mod fake;
mod http;
mod lists;
#[cfg(target_os = "linux")]
mod process;
mod restarts;
#[allow(dead_code, reason = "other binaries use the rest")]
#[path = "../support/mod.rs"]
mod support;
