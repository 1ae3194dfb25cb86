//! The macros, seen by the compiler.
//!
//! The binary is its own `positronic_core` (see [`dsl`]), so it tests the paths and calls that the macros write, and the
//! places that compiler and panics name, against a DSL of a few lines.
#![allow(
    missing_docs,
    missing_debug_implementations,
    clippy::must_use_candidate,
    clippy::return_self_not_must_use,
    clippy::missing_errors_doc,
    clippy::missing_panics_doc,
    reason = "the stand-in for the DSL has no readers outside"
)]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "in tests a panic is the message")]
#![allow(clippy::never_loop, reason = "`0..loop { break 5 }` is what has to stay as it is")]

extern crate self as positronic_core;

pub mod dsl;
mod places;
mod tools;

/// What `brain!` calls.
pub mod prelude {
    pub use crate::dsl::brain;
}

/// What `#[tool]` derives with.
#[doc(hidden)]
pub mod __private {
    pub use {schemars, serde};
}
