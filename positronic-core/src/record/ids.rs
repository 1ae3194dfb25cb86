//! Newtypes for ids, sequence numbers and times, so that none is passed for another.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(std::sync::Arc<str>);

        impl $name {
            /// Makes the id from its text.
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
    /// Names one run. The runtime gives sortable UUIDs (version 7); tests give `run-1`, `run-2`, ….
    RunId
}
text_id! {
    /// Names one signal. The same id sent twice is the same signal and gets the same answer.
    SignalId
}
text_id! {
    /// Names one trigger, in a whole store.
    TriggerId
}
text_id! {
    /// Names a call or an output in public: short, safe in a URL, derived from its path.
    PublicId
}

/// A place in a run's log: the first event is 0 and no number is skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seq(pub u64);

impl Seq {
    /// Returns the number after this one; after the last there is none, and it stays.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// Returns the number as an index into a list that holds the whole log.
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

/// Counts the attachments of workers to a run. An outcome written under an older epoch is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Epoch(pub u64);

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A moment: microseconds since 1970-01-01 UTC. Within a run it never decreases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

/// As `2026-11-22T12:08:39Z`, to the second.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_second(self.0.div_euclid(1_000_000)) {
            Ok(moment) => write!(f, "{moment}"),
            // No calendar goes so far.
            Err(_) => write!(f, "{} µs", self.0),
        }
    }
}

impl Timestamp {
    /// Returns the moment that lies `duration` later.
    #[must_use]
    pub fn after(self, duration: std::time::Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)))
    }

    /// Returns the time from `earlier` to this moment, zero if `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> std::time::Duration {
        std::time::Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}
