//! Tools of MCP servers, with servers of these tests: in this process, as shell scripts, and over local HTTP.
//! `tests/lanes` covers third-party servers.

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
#[allow(dead_code, reason = "other test binaries use the remaining items")]
#[path = "../../../../../tests/support/mod.rs"]
mod support;
