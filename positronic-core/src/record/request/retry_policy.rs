//! How often what failed is tried again, and after which wait: requests to models, tools, steps, brains and questions.

use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBuilder};

use crate::record::ModelError;

/// How often and after which waits a failed request is retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, typed_builder::TypedBuilder)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// The maximum number of retries; 3.
    #[builder(default = 3)]
    pub limit: u32,
    /// The wait before the first retry; it doubles with each further one. 500 ms.
    #[builder(default = Duration::from_millis(500))]
    pub first: Duration,
    /// The maximum of the doubling wait; 30 s.
    #[builder(default = Duration::from_secs(30))]
    pub longest: Duration,
    /// The maximum wait that a provider may request; 2 minutes. The request fails if it asks for more, since an earlier
    /// retry would be rejected again.
    #[builder(default = Duration::from_mins(2))]
    pub max_retry_after: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self::builder().build()
    }
}

impl RetryPolicy {
    /// Returns the wait before the next retry of a request, or `None` if the request fails. `attempt` is the number of the failed try,
    /// from 0; `jitter`, from 0 to 1, spreads simultaneous retries: it subtracts up to half from our own wait, and adds up to
    /// a tenth to a wait that the provider requested.
    #[must_use]
    pub fn delay(&self, error: &ModelError, attempt: u32, jitter: f64) -> Option<Duration> {
        match error.retry_after {
            _ if !error.is_retryable() || attempt >= self.limit => None,
            Some(asked) => (asked <= self.max_retry_after).then(|| asked.mul_f64(1.0 + jitter_of(jitter) / 10.0)),
            None => self.own_delay(attempt, jitter),
        }
    }

    /// Returns the wait before the next retry of anything else than a request, or `None` if there is none.
    pub(crate) fn own_delay(&self, attempt: u32, jitter: f64) -> Option<Duration> {
        if attempt >= self.limit {
            return None;
        }
        let mut waits = ExponentialBuilder::default()
            .with_factor(2.0)
            .with_min_delay(self.first)
            .with_max_delay(self.longest)
            .without_max_times()
            .build();
        waits.nth(usize::try_from(attempt).ok()?).map(|wait| wait.mul_f64(1.0 - jitter_of(jitter) / 2.0))
    }
}

fn jitter_of(number: f64) -> f64 {
    if number.is_finite() { number.clamp(0.0, 1.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::ModelErrorKind;

    fn error(kind: ModelErrorKind, retry_after: Option<Duration>) -> ModelError {
        ModelError { retry_after, ..ModelError::new(kind, "no") }
    }

    #[test]
    fn wait_doubles_up_to_the_limits() {
        let policy = RetryPolicy::builder().limit(9).longest(Duration::from_secs(3)).build();
        let failed = error(ModelErrorKind::Server, None);
        let waits: Vec<_> = (0..5).filter_map(|attempt| policy.delay(&failed, attempt, 0.0)).collect();

        assert_eq!(waits, [500, 1000, 2000, 3000, 3000].map(Duration::from_millis));
        assert_eq!(policy.delay(&failed, 0, 1.0), Some(Duration::from_millis(250)));
        assert_eq!(policy.delay(&failed, 0, f64::NAN), Some(Duration::from_millis(500)));
        assert_eq!(policy.delay(&failed, 9, 0.0), None);
    }

    #[test]
    fn requested_wait_is_used_up_to_its_limit() {
        let policy = RetryPolicy::default();
        let asked = |wait| policy.delay(&error(ModelErrorKind::RateLimited, Some(wait)), 0, 0.0);

        assert_eq!(asked(Duration::from_secs(7)), Some(Duration::from_secs(7)));
        assert_eq!(asked(Duration::ZERO), Some(Duration::ZERO));
        assert_eq!(asked(Duration::from_hours(1)), None);
    }

    #[test]
    fn permanent_failure_is_not_retried() {
        for kind in [ModelErrorKind::QuotaExhausted, ModelErrorKind::Auth, ModelErrorKind::ContextTooLong] {
            assert_eq!(RetryPolicy::default().delay(&error(kind, Some(Duration::ZERO)), 0, 0.0), None);
        }
    }
}
