//! Tests of each example: its bundled cassette, and other paths with a scripted model.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "in tests a panic is the message")]

#[cfg(unix)]
mod agentloop;
mod analyst;
mod blueprints;
mod bookshop;
#[cfg(unix)]
mod chat;
mod compaction;
mod concierge;
mod crash;
mod delegate;
mod durable;
mod flags;
mod guide;
#[allow(dead_code, clippy::expect_used, reason = "other tests use it too")]
#[path = "../../../tests/support/mod.rs"]
mod harness;
mod kitchen;
mod library;
mod mcp;
mod memory;
mod minimal;
mod modes;
mod nested;
mod offers;
mod readme;
mod release;
mod rover;
mod serve;
#[cfg(unix)]
mod shutdown;
mod strict;
mod support;
#[cfg(unix)]
mod terminal;
mod toolsets;
mod triggers;
mod warranty;
mod weather;
