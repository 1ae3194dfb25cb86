//! The promises of the design, each by a test that carries its number: given a log, when this comes, then that.

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
mod doubt;
mod faults;
mod follow;
mod limits;
mod mailbox;
mod mechanisms;
mod races;
mod random;
mod replay;
mod said;
mod sinks;
mod storage;
mod stores;
mod stories;
#[allow(dead_code, reason = "other binaries use the rest")]
#[path = "../support/mod.rs"]
mod support;
