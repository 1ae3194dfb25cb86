//! Schemas of tool arguments, and validation against them.
//!
//! This module is for adapters of models and of tool servers; an author of brains does not need it.

mod absent;
mod call_repair;
mod declaration_order;
mod flat;
mod foreign;
mod integer_bounds;
mod mismatch;
mod schema;
mod validation_work;

pub(crate) use call_repair::{near_name, parse_arguments};
pub(crate) use foreign::check_caller_tools;
pub use foreign::{CallerToolError, foreign_description, foreign_schema};
pub use integer_bounds::with_integer_bounds;
pub use schema::Schema;
pub(crate) use schema::check_json;
