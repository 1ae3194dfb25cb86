//! The search of runs as people type it: `brain:support status:failed cost:>0.1 "two words"`.
//!
//! The command line and the API read the same language here. [`RunQuery::parse`] makes a filter of it, and points at the word
//! that it cannot read; [`find_runs`] lists the runs that match.
//!
//! ```
//! use positronic_core::record::Timestamp;
//! use positronic_core::store::MemoryStore;
//! use positronic_query::{QueryClock, RunQuery, RunSearch, find_runs};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let clock = QueryClock { now: Timestamp(1_795_822_200_000_000), utc_offset: 0 };
//! let query = RunQuery::parse("brain:support status:failed since:7d", clock)?;
//! let found = find_runs(&MemoryStore::new(), &RunSearch::new(&query, 20)).await?;
//! assert!(found.rows.is_empty());
//! # Ok(())
//! # }
//! ```

mod error;
mod find;
mod parse;
mod standing;
mod term_match;
mod value;

pub use error::{QueryError, RefusedValue};
pub use find::{FoundRuns, RunSearch, count_runs, find_runs, sum_runs};
pub use parse::{QUERY_KEYS, QueryClock, RunQuery};
pub use standing::Standing;

#[cfg(test)]
mod tests;
