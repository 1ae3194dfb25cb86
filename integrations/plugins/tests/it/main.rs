//! The plugins of the library, in brains that run: what the model sees, what is stored, and what a crash leaves.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a helper of a test fails as the test does"
)]

mod blueprints;
mod compaction;
mod judge;
mod matches_schema;
mod memory;
mod modes;
mod patterns;
#[allow(dead_code, reason = "other test binaries use the remaining items")]
#[path = "../../../../tests/support/mod.rs"]
mod support;
mod toolsets;
mod triggers;
