//! What tools need beside their functions: the schemas of arguments, and the check of values against them.

mod absent;
mod order;
mod schema;
mod work;

pub use schema::{JsonSchemas, Schema};
