//! Conversions between values and columns.

use positronic_core::record::{RunId, Seq};
use positronic_core::store::StoreError;

use crate::failure::DbError;

/// Converts an event number to a column.
pub(crate) fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Converts a limit to a column.
pub(crate) fn limit(most: usize) -> i64 {
    i64::try_from(most).unwrap_or(i64::MAX)
}

/// Converts a column to an event number.
pub(crate) fn seq(column: i64) -> Seq {
    Seq(u64::try_from(column).unwrap_or_default())
}

/// Encodes a value as JSON.
pub(crate) fn encode<T: serde::Serialize>(value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::Failed { message: error.to_string() })
}

/// Decodes a value from JSON.
pub(crate) fn decode<T: serde::de::DeserializeOwned>(what: &str, document: &str) -> Result<T, DbError> {
    serde_json::from_str(document).map_err(|error| DbError::unreadable(what, error))
}

/// Returns the error for a missing run.
pub(crate) fn no_such(run: &RunId) -> DbError {
    StoreError::NoSuchRun { run: run.clone() }.into()
}
