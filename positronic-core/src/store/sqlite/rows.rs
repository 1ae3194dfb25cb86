//! Numbers and documents as columns.

use super::failure::Trouble;
use crate::record::{Epoch, RunId, Seq};
use crate::store::StoreError;

/// How many events a run can have: a run's key and an event's number share the 63 bits of a row's id.
pub(super) const EVENTS: i64 = 1 << 32;

/// Returns the id of a run's event.
pub(super) const fn event_id(key: i64, number: i64) -> i64 {
    key * EVENTS + number
}

/// Turns a number of the log into a column.
pub(super) fn column(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Turns how much is asked for into a column.
pub(super) fn limit(most: usize) -> i64 {
    i64::try_from(most).unwrap_or(i64::MAX)
}

/// Turns a column into a number of the log.
pub(super) fn seq(column: i64) -> Seq {
    Seq(u64::try_from(column).unwrap_or_default())
}

/// Turns a column into the count of an attachment.
pub(super) fn epoch(column: i64) -> Epoch {
    Epoch(u64::try_from(column).unwrap_or_default())
}

/// Encodes what is kept as one document.
pub(super) fn encode<T: serde::Serialize>(value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::Failed { message: error.to_string() })
}

/// Decodes what is kept as one document.
pub(super) fn decode<T: serde::de::DeserializeOwned>(what: &str, document: &str) -> Result<T, Trouble> {
    serde_json::from_str(document).map_err(|error| Trouble::unreadable(what, error))
}

/// Says that there is no such run.
pub(super) fn no_such(run: &RunId) -> Trouble {
    StoreError::NoSuchRun { run: run.clone() }.into()
}
