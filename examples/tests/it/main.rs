//! Each example as a test: its bundled cassette, and its other ways with a scripted model.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "in tests a panic is the message")]

mod delegate;
mod durable;
mod minimal;
mod nested;
mod readme;
mod release;
mod support;
