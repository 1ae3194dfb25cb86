//! Typed, durable agent workflows.

pub mod model;
pub mod record;
