//! Limits per caller: requests per minute, and open streams.

use std::collections::HashMap;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;

use axum::http::{HeaderMap, HeaderValue};
use governor::clock::{Clock as _, DefaultClock};
use governor::middleware::StateInformationMiddleware;
use governor::state::keyed::DefaultKeyedStateStore;
use governor::{Quota, RateLimiter};
use parking_lot::Mutex;

use super::Caller;
use super::proxy::client_prefix;
use crate::options::Options;
use crate::problem::{Problem, ProblemType};

/// How many callers are known before those that have not sent a request lately are dropped.
const KNOWN: usize = 10_000;

/// The limits of a router.
pub(crate) struct Limits {
    requests: RateLimiter<String, DefaultKeyedStateStore<String>, DefaultClock, StateInformationMiddleware>,
    per_minute: NonZeroU32,
    streams: Arc<Mutex<HashMap<String, usize>>>,
    max_streams: usize,
}

/// An open stream of a caller, counted until it is dropped.
pub(crate) struct StreamPermit {
    streams: Arc<Mutex<HashMap<String, usize>>>,
    caller: String,
}

impl Limits {
    pub(crate) fn new(options: &Options) -> Self {
        let per_minute = NonZeroU32::new(options.requests_per_minute).unwrap_or(NonZeroU32::MIN);
        Self {
            requests: RateLimiter::keyed(Quota::per_minute(per_minute)).with_middleware(),
            per_minute,
            streams: Arc::default(),
            max_streams: options.max_streams,
        }
    }

    /// Counts a request of a caller; requests without one count by their address. Returns how many are left; `None` if neither
    /// is known, since one limit for all strangers would let each of them lock out the others.
    pub(crate) fn request(&self, caller: Option<&Caller>, address: Option<IpAddr>) -> Result<Option<u32>, Problem> {
        if self.requests.len() > KNOWN {
            self.requests.retain_recent();
        }
        let key = match (caller, address) {
            (Some(caller), _) => format!("caller {}", caller.subject()),
            (None, Some(address)) => format!("address {}", client_prefix(address)),
            (None, None) => return Ok(None),
        };
        match self.requests.check_key(&key) {
            Ok(state) => Ok(Some(state.remaining_burst_capacity())),
            Err(until) => {
                let wait = until.wait_time_from(self.requests.clock().now());
                Err(Problem::new(ProblemType::RateLimited).retry_after(wait.as_secs().saturating_add(1)))
            }
        }
    }

    /// Adds the headers of the limit (draft-ietf-httpapi-ratelimit-headers).
    pub(crate) fn headers(&self, remaining: u32, headers: &mut HeaderMap) {
        let policy = format!("\"requests\";q={};w=60", self.per_minute);
        for (name, value) in [("ratelimit-policy", policy), ("ratelimit", format!("\"requests\";r={remaining};t=60"))] {
            if let Ok(value) = HeaderValue::try_from(value) {
                headers.insert(name, value);
            }
        }
    }

    /// Counts a stream of a caller until the permit is dropped.
    pub(crate) fn stream(&self, caller: &Caller) -> Result<StreamPermit, Problem> {
        let caller = caller.subject().to_owned();
        let mut streams = self.streams.lock();
        let open = streams.entry(caller.clone()).or_default();
        if *open >= self.max_streams {
            return Err(Problem::new(ProblemType::TooManyStreams).field("max_streams", self.max_streams));
        }
        *open += 1;
        drop(streams);
        Ok(StreamPermit { streams: Arc::clone(&self.streams), caller })
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut streams = self.streams.lock();
        if let Some(open) = streams.get_mut(&self.caller) {
            *open = open.saturating_sub(1);
            if *open == 0 {
                streams.remove(&self.caller);
            }
        }
    }
}
