//! Schemas of tool arguments, and validation against them.

mod absent;
mod order;
mod schema;
mod work;

pub use schema::{JsonSchemas, Schema};
