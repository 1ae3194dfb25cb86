//! Schemas of tool arguments, and validation against them.
//!
//! This module is for adapters of models and of tool servers; an author of brains does not need it.

mod absent;
mod declaration_order;
mod flat;
mod foreign;
mod integer_bounds;
mod mismatch;
mod near_miss;
mod schema;
mod validation_work;

pub(crate) use foreign::check_caller_tools;
pub use foreign::{CallerToolError, foreign_description, foreign_schema};
pub use integer_bounds::with_integer_bounds;
pub(crate) use near_miss::{near_name, parse_arguments};
pub use schema::Schema;
pub(crate) use schema::check_json;
