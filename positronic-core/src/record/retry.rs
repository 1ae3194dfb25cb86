//! Policy for sending failed requests again.

use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBuilder};

use super::usage::ModelError;

/// Says how often and how patiently a request is sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, typed_builder::TypedBuilder)]
pub struct RetryPolicy {
    /// How often at most; 3.
    #[builder(default = 3)]
    pub limit: u32,
    /// The wait before the first retry; each further one is twice as long. 500 ms.
    #[builder(default = Duration::from_millis(500))]
    pub first: Duration,
    /// The longest wait that the doubling comes to; 30 s.
    #[builder(default = Duration::from_secs(30))]
    pub longest: Duration,
    /// The longest wait that a provider may ask for; 2 minutes. Where it asks for more the request fails, since sending
    /// it earlier would be refused again.
    #[builder(default = Duration::from_mins(2))]
    pub patience: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self::builder().build()
    }
}

impl RetryPolicy {
    /// Returns how long to wait before the request is sent again, `None` where it is not to be. `attempt` is the number
    /// of the try that failed, from 0; `jitter`, from 0 to 1, spreads requests that failed together: it takes up to half
    /// off our own wait, and adds up to a tenth to one that the provider asked for.
    #[must_use]
    pub fn delay(&self, error: &ModelError, attempt: u32, jitter: f64) -> Option<Duration> {
        if !error.is_retryable() || attempt >= self.limit {
            return None;
        }
        let jitter = if jitter.is_finite() { jitter.clamp(0.0, 1.0) } else { 0.0 };
        if let Some(asked) = error.wait() {
            return (asked <= self.patience).then(|| asked.mul_f64(1.0 + jitter / 10.0));
        }
        let mut waits = ExponentialBuilder::default()
            .with_factor(2.0)
            .with_min_delay(self.first)
            .with_max_delay(self.longest)
            .without_max_times()
            .build();
        waits.nth(usize::try_from(attempt).ok()?).map(|wait| wait.mul_f64(1.0 - jitter / 2.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::ModelErrorKind;

    fn error(kind: ModelErrorKind, retry_after: Option<Duration>) -> ModelError {
        let retry_after = retry_after.map(|wait| u64::try_from(wait.as_micros()).unwrap());
        ModelError { retry_after, ..ModelError::new(kind, "no") }
    }

    #[test]
    fn waits_twice_as_long_each_time_up_to_the_limits() {
        let policy = RetryPolicy::builder().limit(9).longest(Duration::from_secs(3)).build();
        let failed = error(ModelErrorKind::Server, None);
        let waits: Vec<_> = (0..5).filter_map(|attempt| policy.delay(&failed, attempt, 0.0)).collect();

        assert_eq!(waits, [500, 1000, 2000, 3000, 3000].map(Duration::from_millis));
        assert_eq!(policy.delay(&failed, 0, 1.0), Some(Duration::from_millis(250)));
        assert_eq!(policy.delay(&failed, 0, f64::NAN), Some(Duration::from_millis(500)));
        assert_eq!(policy.delay(&failed, 9, 0.0), None);
    }

    #[test]
    fn waits_as_long_as_the_provider_asks_but_not_for_ever() {
        let policy = RetryPolicy::default();
        let asked = |wait| policy.delay(&error(ModelErrorKind::RateLimited, Some(wait)), 0, 0.0);

        assert_eq!(asked(Duration::from_secs(7)), Some(Duration::from_secs(7)));
        assert_eq!(asked(Duration::ZERO), Some(Duration::ZERO));
        assert_eq!(asked(Duration::from_hours(1)), None);
    }

    #[test]
    fn what_cannot_help_is_not_tried_again() {
        for kind in [ModelErrorKind::QuotaExhausted, ModelErrorKind::Auth, ModelErrorKind::ContextTooLong] {
            assert_eq!(RetryPolicy::default().delay(&error(kind, Some(Duration::ZERO)), 0, 0.0), None);
        }
    }
}
