//! The ranges of time that an overview can have.

use std::time::Duration;

use positronic_core::record::Timestamp;
use positronic_core::store::FigureFilter;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A range of time up to now.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, JsonSchema)]
pub(super) enum Range {
    #[serde(rename = "1h")]
    Hour,
    #[default]
    #[serde(rename = "24h")]
    Day,
    #[serde(rename = "7d")]
    Week,
    #[serde(rename = "30d")]
    Month,
}

impl Range {
    /// Returns the length of a bucket in minutes, and the number of buckets.
    const fn buckets(self) -> (u64, u32) {
        match self {
            Self::Hour => (1, 60),
            Self::Day => (30, 48),
            Self::Week => (3 * 60, 56),
            Self::Month => (12 * 60, 60),
        }
    }

    /// Returns the filter of the range up to a time. Buckets begin at whole multiples of their length, in UTC, so that they stay
    /// the same from one request to the next; the last one is not over yet.
    pub(super) fn filter(self, now: Timestamp) -> FigureFilter {
        let (minutes, buckets) = self.buckets();
        let bucket = Duration::from_mins(minutes);
        let micros = i64::try_from(bucket.as_micros()).unwrap_or(i64::MAX);
        let last = now.0 - now.0.rem_euclid(micros);
        let from = Timestamp(last - micros * (i64::from(buckets) - 1));
        FigureFilter::builder().from(from).bucket(bucket).buckets(buckets).now(now).build()
    }
}
