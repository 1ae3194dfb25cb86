//! The toolbox: each tool with its limits, approvals and invalid input. No network: servers listen on this machine
//! only, and programs run in folders of their own.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a helper of a test fails as the test does"
)]

#[cfg(target_os = "linux")]
mod attacks;
mod code;
mod desk;
mod files;
mod finish;
#[cfg(unix)]
mod fuzz;
mod plan;
#[cfg(unix)]
mod rooms;
mod sandbox;
mod search;
mod server;
#[allow(dead_code, reason = "other test binaries use the remaining items")]
#[path = "../../../../../tests/support/mod.rs"]
mod support;
mod web;
