//! Limits per caller: requests per minute, open streams, and large bodies and answers at once.

use std::collections::HashMap;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::{Arc, Weak};

use axum::http::{HeaderMap, HeaderValue};
use governor::clock::{Clock as _, DefaultClock};
use governor::middleware::StateInformationMiddleware;
use governor::state::keyed::DefaultKeyedStateStore;
use governor::{Quota, RateLimiter};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Caller;
use super::proxy::client_prefix;
use crate::problem::{Problem, ProblemType};
use crate::settings::RouterSettings;

/// How many callers are known before those that have not sent a request lately are dropped.
const KNOWN: usize = 10_000;
/// How many large bodies of one caller are in memory at once, and how many large answers.
const MAX_BODIES: usize = 2;
const MAX_ANSWERS: usize = 4;

/// The limits of a router.
pub(crate) struct Limits {
    requests: RateLimiter<String, DefaultKeyedStateStore<String>, DefaultClock, StateInformationMiddleware>,
    per_minute: NonZeroU32,
    streams: Arc<Mutex<HashMap<String, usize>>>,
    max_streams: usize,
    pub(crate) bodies: Shares,
    pub(crate) answers: Shares,
}

/// An open stream of a caller, counted until it is dropped.
pub(crate) struct StreamPermit {
    streams: Arc<Mutex<HashMap<String, usize>>>,
    caller: String,
}

impl Limits {
    pub(crate) fn new(settings: &RouterSettings) -> Self {
        let per_minute = NonZeroU32::new(settings.requests_per_minute).unwrap_or(NonZeroU32::MIN);
        Self {
            requests: RateLimiter::keyed(Quota::per_minute(per_minute)).with_middleware(),
            per_minute,
            streams: Arc::default(),
            max_streams: settings.max_streams,
            bodies: Shares::new(MAX_BODIES),
            answers: Shares::new(MAX_ANSWERS),
        }
    }

    /// Returns the name by which a request is counted: its caller's, or its address's; `None` if neither is known.
    pub(crate) fn key(caller: Option<&Caller>, address: Option<IpAddr>) -> Option<String> {
        match (caller, address) {
            (Some(caller), _) => Some(format!("caller {}", caller.subject())),
            (None, Some(address)) => Some(format!("address {}", client_prefix(address))),
            (None, None) => None,
        }
    }

    /// Counts a request of a caller; requests without one count by their address. Returns how many are left; `None` if neither
    /// is known, since one limit for all strangers would let each of them lock out the others.
    pub(crate) fn request(&self, caller: Option<&Caller>, address: Option<IpAddr>) -> Result<Option<u32>, Problem> {
        let Some(key) = Self::key(caller, address) else { return Ok(None) };
        self.count(&key).map(Some)
    }

    /// Counts a request of an address for a file of the page. They count apart, so that loading the page uses up no requests to the API.
    #[cfg(feature = "ui")]
    pub(crate) fn page(&self, address: Option<IpAddr>) -> Result<(), Problem> {
        match address {
            Some(address) => self.count(&format!("page {}", client_prefix(address))).map(drop),
            None => Ok(()),
        }
    }

    /// Counts a request under a name, and returns how many are left.
    fn count(&self, key: &str) -> Result<u32, Problem> {
        if self.requests.len() > KNOWN {
            self.requests.retain_recent();
        }
        match self.requests.check_key(&key.to_owned()) {
            Ok(state) => Ok(state.remaining_burst_capacity()),
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

/// A place of a caller, which is free again when all clones are dropped.
pub(crate) type AnswerSlot = Arc<OwnedSemaphorePermit>;

/// Places of which each caller takes a few at once; its further requests wait.
pub(crate) struct Shares {
    most: usize,
    /// The places of the callers that have taken one or wait for one.
    callers: Mutex<HashMap<String, Weak<Semaphore>>>,
}

impl Shares {
    fn new(most: usize) -> Self {
        Self { most, callers: Mutex::default() }
    }

    /// Waits for a place of a caller.
    pub(crate) async fn place(&self, caller: &str) -> Option<AnswerSlot> {
        let own = self.of(caller);
        // The semaphore is never closed.
        own.acquire_owned().await.ok().map(Arc::new)
    }

    fn of(&self, caller: &str) -> Arc<Semaphore> {
        let mut callers = self.callers.lock();
        callers.retain(|_, own| own.strong_count() > 0);
        callers.get(caller).and_then(Weak::upgrade).unwrap_or_else(|| {
            let own = Arc::new(Semaphore::new(self.most));
            callers.insert(caller.to_owned(), Arc::downgrade(&own));
            own
        })
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
