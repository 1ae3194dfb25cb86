//! The search of runs as people type it: `brain:support status:failed cost:>0.1 "two words"`.
//!
//! The command line and the API read the same language here. [`RunQuery::parse`] makes a filter of it, and points at the word
//! that it cannot read; [`find_runs`] lists the runs that match.

mod error;
mod find;
mod needle;
mod parse;
mod value;

pub use error::QueryError;
pub use find::{FoundRuns, RunSearch, count_runs, find_runs, sum_runs};
pub use parse::{QUERY_KEYS, QueryClock, RunQuery};

#[cfg(test)]
mod tests;
