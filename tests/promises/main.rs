//! The promises of the design; each test name carries the number of its promise.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a helper of a test fails as the test does"
)]

#[path = "../support/asks.rs"]
mod asks;
mod batches;
mod bench;
mod code;
mod crash;
mod decisions;
mod detached;
mod faults;
mod follow;
mod interrupted;
mod limits;
mod mailbox;
mod mechanisms;
mod races;
mod random;
mod replay;
mod signals;
mod sinks;
mod storage;
mod stores;
mod stories;
#[allow(dead_code, reason = "other test binaries use the remaining items")]
#[path = "../support/mod.rs"]
mod support;
