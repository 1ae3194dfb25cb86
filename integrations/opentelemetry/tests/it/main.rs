//! Tests of the exported traces and metrics, with the real exporter and a receiver of OTLP in the test.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "in tests a panic is the message")]

mod bench;
mod contexts;
mod delivery;
mod machines;
mod metrics;
mod prometheus;
mod receiver;
mod served;
mod traces;
mod tree;
