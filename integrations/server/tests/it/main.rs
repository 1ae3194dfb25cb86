//! The public behaviour of the server, over its router.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a helper of a test fails as the test does"
)]

mod authorisation;
mod browsers;
mod decisions;
mod lists;
mod openapi;
mod problems;
mod runs;
mod schedules;
mod streams;
mod support;
