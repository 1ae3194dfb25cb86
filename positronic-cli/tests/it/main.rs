//! The `positronic` command as a process.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a failed test panics; clippy's own exception covers test bodies only, not helpers"
)]

mod new;
mod outside;
