//! Numbers and documents as columns.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::failure::Trouble;
use crate::record::{Epoch, Gate, LimitKind, PendingKind, RunId, Seq, Timestamp, WaitSpec};
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

/// What a call waits for, as a column. Its tag stands outside, so that it is read in one go: of a list of what waits,
/// most of the time is spent on this.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind<'a> {
    /// A person's approval.
    Approval {
        gate: Cow<'a, Gate>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires: Option<Timestamp>,
    },
    /// More than a limit allows.
    More {
        kind: LimitKind,
        limit: u64,
        used: u64,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        shared: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires: Option<Timestamp>,
    },
    /// A webhook or a reply.
    Answer { waits: Cow<'a, [WaitSpec]> },
}

impl<'a> Kind<'a> {
    /// Turns what a call waits for into a column.
    pub(super) fn of(kind: &'a PendingKind) -> Self {
        match kind {
            PendingKind::Approval { gate, expires } => Self::Approval { gate: Cow::Borrowed(gate), expires: *expires },
            PendingKind::More { kind, limit, used, shared, expires } => {
                Self::More { kind: *kind, limit: *limit, used: *used, shared: *shared, expires: *expires }
            }
            PendingKind::Answer { waits } => Self::Answer { waits: Cow::Borrowed(waits) },
        }
    }

    /// Turns the column into what a call waits for.
    pub(super) fn into_kind(self) -> PendingKind {
        match self {
            Self::Approval { gate, expires } => PendingKind::Approval { gate: gate.into_owned(), expires },
            Self::More { kind, limit, used, shared, expires } => {
                PendingKind::More { kind, limit, used, shared, expires }
            }
            Self::Answer { waits } => PendingKind::Answer { waits: waits.into_owned() },
        }
    }
}
