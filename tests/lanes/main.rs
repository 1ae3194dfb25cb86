//! Brains over HTTP against third-party mock servers, which are not adapted to this code.
//!
//! `.ci/lanes` installs the servers, starts them and runs this. [`dialogue`] plays a complete support case, [`faults`]
//! faults, [`verdict`] uses a server that judges its clients, [`mcp`] uses the tools of two servers. A missing server
//! is a failure, never a skipped test.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "in tests a panic is the message")]

mod address;
mod aimock;
mod dialogue;
mod faults;
mod log;
mod mcp;
mod support;
mod tap;
mod verdict;
