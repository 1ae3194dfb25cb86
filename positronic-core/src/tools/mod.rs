//! Schemas of tool arguments, and validation against them.

mod absent;
mod order;
mod schema;
mod work;

pub use schema::{Schema, check_json};
