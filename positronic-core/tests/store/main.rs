//! SQLite: the suite of all stores, and its own specifics.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a helper of a test fails as the test does"
)]

#[cfg(feature = "sqlite")]
mod sqlite;
