//! Several machines on one store, with leases that lapse: what a machine does that is cut off, and a simulation of many
//! machines with partitions, lost messages and skewed clocks.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a helper of a test fails as the test does"
)]

mod leases;
mod network;
mod shop;
mod simulation;
