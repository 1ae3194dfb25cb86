//! The macros together with the library.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "in tests a panic is the message")]

mod actions;
mod bench;
mod places;
mod runs;
mod tools;
