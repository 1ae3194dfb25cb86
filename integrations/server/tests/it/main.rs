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
mod code;
mod connections;
mod decisions;
mod forks;
mod history;
mod idempotency;
mod large;
mod lists;
mod openapi;
mod overview;
mod playground;
mod plugin_updates;
mod policies;
mod problems;
mod project_webhooks;
mod redaction;
mod retries;
mod runs;
mod schedules;
mod streams;
mod support;
