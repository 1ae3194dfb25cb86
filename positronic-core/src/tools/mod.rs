//! Schemas of tool arguments, and validation against them.
//!
//! This module is for adapters of models and of tool servers; an author of brains does not need it.

mod absent;
mod field_order;
mod integer_bounds;
mod schema;
mod validation_work;

pub use integer_bounds::with_integer_bounds;
pub use schema::{Schema, check_json};
