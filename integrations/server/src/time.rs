//! Times in the API: RFC 3339 in UTC, with microseconds; and times before others.

use std::time::Duration;

use positronic_core::record::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A time in the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Time(pub(crate) Timestamp);

impl From<Timestamp> for Time {
    fn from(at: Timestamp) -> Self {
        Self(at)
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match jiff::Timestamp::from_microsecond(self.0.0) {
            Ok(at) => serializer.collect_str(&format_args!("{at:.6}")),
            // Outside of the calendar's range.
            Err(_) => serializer.serialize_none(),
        }
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let invalid = |_| {
            format!(
                "`{text}` is not a time; write it as `2026-05-01T12:00:00Z`, at the latest {}",
                jiff::Timestamp::MAX
            )
        };
        let at: jiff::Timestamp = text.parse().map_err(invalid).map_err(serde::de::Error::custom)?;
        Ok(Self(Timestamp(at.as_microsecond())))
    }
}

impl JsonSchema for Time {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Time".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date-time" })
    }
}

/// Returns the time that is `duration` earlier.
pub(crate) fn earlier(at: Timestamp, duration: Duration) -> Timestamp {
    Timestamp(at.0.saturating_sub_unsigned(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_microseconds_and_are_read_again() {
        let time = Time(Timestamp(1_790_000_000_120_000));

        let text = serde_json::to_string(&time).unwrap();

        assert_eq!(text, "\"2026-09-21T14:13:20.120000Z\"");
        assert_eq!(serde_json::from_str::<Time>(&text).unwrap(), time);
        assert_eq!(serde_json::from_str::<Time>("\"2026-09-21T16:13:20.12+02:00\"").unwrap(), time);
        assert!(serde_json::from_str::<Time>("\"yesterday\"").is_err());
    }
}
