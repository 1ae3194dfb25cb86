//! The promises of the design, each by a test that carries its number: given a log, when this comes, then that.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a helper of a test fails as the test does"
)]

mod bench;
mod crash;
mod decisions;
mod races;
mod stories;
#[allow(dead_code, reason = "other binaries use the rest")]
#[path = "../support/mod.rs"]
mod support;
