//! Typed, durable agent workflows.

pub mod machine;
pub mod model;
pub mod record;
