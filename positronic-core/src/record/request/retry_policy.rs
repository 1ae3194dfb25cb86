//! The settings of retries of failed requests. The wait that follows from them is computed in `machine/settle/retry.rs`.

use std::time::Duration;

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
