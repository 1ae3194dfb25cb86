//! Tests of the crate's public API.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]

mod answers;
mod azure;
mod calls;
mod conversations;
mod fallback;
mod foreign;
mod options;
mod played;
mod reported;
mod schemas;
mod strings;
mod support_agent;
