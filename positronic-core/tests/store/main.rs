//! The stores: one suite for all, and the specifics of SQLite.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a helper of a test fails as the test does"
)]

mod memory {
    positronic_core::store_suite!({
        let store = positronic_core::store::MemoryStore::new();
        move || store.clone()
    });
}

#[cfg(feature = "sqlite")]
mod sqlite;
