//! Newtypes for ids, sequence numbers and times, to prevent mixing them up.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(std::sync::Arc<str>);

        impl $name {
            /// Creates the id from its text.
            #[must_use]
            pub fn new(text: impl AsRef<str>) -> Self {
                Self(text.as_ref().into())
            }

            /// Returns the id as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self::new(text)
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }
    };
}

text_id! {
    /// The id of a run. The runtime assigns sortable UUIDs (version 7); tests use `run-1`, `run-2`, ….
    RunId
}
text_id! {
    /// The id of a signal. Sending the same id again has no further effect and gets the same reply.
    SignalId
}
text_id! {
    /// The id of a trigger, unique within a store.
    TriggerId
}
text_id! {
    /// The public id of a call or an output: short, safe in a URL, derived from its path.
    PublicId
}

/// The first letter of the ids of the engine's own signals.
const OF_ENGINE: char = '~';

impl SignalId {
    /// Creates the id of a signal of the engine. Only cancellations and the ends of children are admitted with such an id, so no other signal
    /// can make the engine's own a repetition.
    pub(crate) fn of_engine(text: &str) -> Self {
        Self::new(format!("{OF_ENGINE}{text}"))
    }

    /// Returns whether it is such an id.
    pub(crate) fn is_reserved(&self) -> bool {
        self.as_str().starts_with(OF_ENGINE)
    }
}

/// The number of an event in a run's log: the first event is 0 and no number is skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seq(pub u64);

impl Seq {
    /// Returns the next number, saturating.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// Returns the number as an index into a list with the complete log.
    #[must_use]
    pub fn index(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Counts the claims of a run. An outcome with an older epoch is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Epoch(pub u64);

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A time: microseconds since 1970-01-01 UTC. Within a run it never decreases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

/// Formats as `2026-11-22T12:08:39Z`, to the second.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_second(self.0.div_euclid(1_000_000)) {
            Ok(moment) => write!(f, "{moment}"),
            // Outside of the calendar's range.
            Err(_) => write!(f, "{} µs", self.0),
        }
    }
}

/// Parses RFC 3339, such as `2026-12-24T18:00:00+01:00`.
impl std::str::FromStr for Timestamp {
    type Err = jiff::Error;

    fn from_str(text: &str) -> Result<Self, jiff::Error> {
        Ok(Self(text.parse::<jiff::Timestamp>()?.as_microsecond()))
    }
}

impl Timestamp {
    /// Formats as a part of an id: `20260301T090000Z`.
    pub(crate) fn compact(self) -> String {
        let moment = jiff::Timestamp::from_microsecond(self.0).unwrap_or_default();
        moment.to_string().chars().filter(|letter| !matches!(letter, '-' | ':')).collect()
    }

    /// Returns the time that is `duration` later.
    #[must_use]
    pub fn after(self, duration: std::time::Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)))
    }

    /// Returns the duration from `earlier` to this time, zero if `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> std::time::Duration {
        std::time::Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}
