//! What models cost: tables of prices, by which a runner charges each answer.
//!
//! This module is for authors who limit or report costs: a runner takes a [`PriceTable`], and a client reads bills by one.

mod bundled;
mod file;
mod table;

pub use table::{LongRequest, Price, PriceTable, longest_match};
