//! Durations, which are stored as whole microseconds.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Returns a duration in microseconds; `u64::MAX` is 584,000 years.
pub(crate) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Rounds a measured duration down to the stored precision, so that it is equal after a restart.
pub(crate) fn whole(time: Duration) -> Duration {
    Duration::from_micros(micros(time))
}

/// Serializes a duration; for serde's `with`.
pub(crate) fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    micros(*time).serialize(to)
}

/// Deserializes a duration; for serde's `with`.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    u64::deserialize(from).map(Duration::from_micros)
}

/// For serde's `with` on optional durations; an absent field needs `default`, too.
pub(crate) mod optional {
    use super::{Deserialize as _, Deserializer, Duration, Serialize as _, Serializer, micros};

    #[expect(clippy::ref_option, reason = "serde's `with` passes a reference")]
    pub(crate) fn serialize<S: Serializer>(time: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
        time.map(micros).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(from)?.map(Duration::from_micros))
    }
}
