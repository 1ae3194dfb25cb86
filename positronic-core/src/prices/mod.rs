//! What models cost: tables of prices, by which a runner charges each answer.

mod bundled;
mod file;
mod table;

pub(crate) use table::longest_match;
pub use table::{LongRequest, Price, PriceTable};
