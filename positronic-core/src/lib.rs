//! Typed, durable agent workflows.

pub mod dsl;
mod error;
pub mod machine;
pub mod model;
pub mod plan;
pub mod prelude;
pub mod projection;
pub mod record;
pub mod runner;
pub mod sink;
pub mod store;
pub mod tools;

pub use error::{Error, Result};

#[doc(hidden)]
pub mod __private {
    pub use {schemars, serde};
}
