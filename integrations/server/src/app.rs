//! The state of a router: what all requests share.
//!
//! ```text
//! settings ─▶ state ─▶ context of a request ─▶ route with its handler ─▶ table ─▶ router
//!     └───────────────────────────────────────────────▶ options ──────────────────────▲
//! ```
//!
//! Each of these uses those to the left of it. The options have further routes, so the state keeps only their settings, and
//! the table of routes is beside it, in the router.

use std::sync::Arc;

use axum::extract::OriginalUri;
use axum::http::request::Parts;
use axum::http::{Extensions, Uri};
use positronic_core::record::Timestamp;
use positronic_core::runner::{Client, CodeCheck};
use tokio::sync::Semaphore;

use crate::auth::{Authenticate, Caller, Limits, Question, StoredCallers};
use crate::bodies::{MAX_LARGE_ANONYMOUS_BODIES, MAX_LARGE_BODIES};
use crate::continuation::Continuation;
use crate::event_lines::SharedLines;
use crate::forks::Forks;
use crate::problem::{Problem, ProblemType, Reporter};
use crate::readiness::Readiness;
use crate::run_cache::HeadCache;
use crate::settings::RouterSettings;
use crate::state_at_event::CachedStates;
use crate::timeline_cache::Folds;

/// Of how many runs it is cached whether work on them can continue.
const CHECKED_RUNS: usize = 1000;

/// The state of a router, without its routes.
pub(crate) struct App {
    pub(crate) client: Client,
    pub(crate) settings: RouterSettings,
    pub(crate) authenticate: Arc<dyn Authenticate>,
    /// The browser sessions, if the router has its own authentication.
    pub(crate) callers: Option<Arc<StoredCallers>>,
    pub(crate) limits: Limits,
    /// The large bodies that may be in memory.
    pub(crate) large_bodies: Arc<Semaphore>,
    pub(crate) large_anonymous_bodies: Arc<Semaphore>,
    pub(crate) folds: Folds,
    pub(crate) states: CachedStates,
    pub(crate) forks: Forks,
    pub(crate) lines: SharedLines,
    pub(crate) readiness: Readiness,
    pub(crate) code_checks: HeadCache<CodeCheck>,
    pub(crate) continuations: HeadCache<Continuation>,
}

impl App {
    pub(crate) fn new(client: Client, settings: RouterSettings) -> Self {
        let (authenticate, callers) = match &settings.authenticate {
            Some(given) => (Arc::clone(given), None),
            None => {
                let own = Arc::new(StoredCallers::new(&client, &settings));
                (Arc::clone(&own) as Arc<dyn Authenticate>, Some(own))
            }
        };
        let folds = Folds::new(client.clone(), settings.prices.clone());
        let (limits, states) = (Limits::new(&settings), CachedStates::new(client.clone()));
        let places = |most| Arc::new(Semaphore::new(most));
        Self {
            client,
            authenticate,
            callers,
            limits,
            large_bodies: places(MAX_LARGE_BODIES),
            large_anonymous_bodies: places(MAX_LARGE_ANONYMOUS_BODIES),
            folds,
            states,
            forks: Forks::default(),
            lines: SharedLines::default(),
            readiness: Readiness::default(),
            code_checks: HeadCache::new(CHECKED_RUNS),
            continuations: HeadCache::new(CHECKED_RUNS),
            settings,
        }
    }

    /// Returns the writer of a request's problem documents.
    pub(crate) fn reporter(&self, parts: &Parts) -> Reporter {
        let known = parts.extensions.get::<Reporter>();
        let unknown = || Reporter { prefix: self.prefix(&parts.uri, &parts.extensions).into(), request: "".into() };
        known.cloned().unwrap_or_else(unknown)
    }

    /// Returns the path in front of that of the router: the public URL's, or the one at which a service nests the router.
    pub(crate) fn prefix<'a>(&'a self, uri: &Uri, extensions: &'a Extensions) -> &'a str {
        let nested = || {
            let original = extensions.get::<OriginalUri>()?.path().trim_end_matches('/');
            original.strip_suffix(uri.path().trim_end_matches('/'))
        };
        let public = self.settings.public_url.as_ref().map(|url| url.path().trim_end_matches('/'));
        public.or_else(nested).unwrap_or_default()
    }

    /// Refuses a caller that does not decide about an item.
    pub(crate) fn may_decide(&self, caller: &Caller, question: &Question<'_>) -> Result<(), Problem> {
        let decides = self.settings.deciders.may_decide(caller, question);
        decides.map_err(|reason| Problem::new(ProblemType::NotAnApprover).detail(reason))
    }

    /// Returns the current time.
    pub(crate) fn now(&self) -> Timestamp {
        self.client.now()
    }
}
