//! Conversions between values and columns.

use positronic_core::record::{Epoch, RunId, Seq};
use positronic_core::store::StoreError;

use super::failure::DbError;

/// The maximum number of events of a run: a run's key and an event's number share the 63 bits of a row's id.
pub(super) const EVENTS: i64 = 1 << 32;

/// Returns the id of a run's event.
pub(super) const fn event_id(key: i64, number: i64) -> i64 {
    key * EVENTS + number
}

/// Converts an event number to a column.
pub(super) fn column(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Converts a limit to a column.
pub(super) fn limit(most: usize) -> i64 {
    i64::try_from(most).unwrap_or(i64::MAX)
}

/// Converts a column to an event number.
pub(super) fn seq(column: i64) -> Seq {
    Seq(u64::try_from(column).unwrap_or_default())
}

/// Converts a column to an epoch.
pub(super) fn epoch(column: i64) -> Epoch {
    Epoch(u64::try_from(column).unwrap_or_default())
}

/// Encodes a value as JSON.
pub(super) fn encode<T: serde::Serialize>(value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::Failed { message: error.to_string() })
}

/// Decodes a value from JSON.
pub(super) fn decode<T: serde::de::DeserializeOwned>(what: &str, document: &str) -> Result<T, DbError> {
    serde_json::from_str(document).map_err(|error| DbError::unreadable(what, error))
}

/// Returns the error for a missing run.
pub(super) fn no_such(run: &RunId) -> DbError {
    StoreError::NoSuchRun { run: run.clone() }.into()
}
