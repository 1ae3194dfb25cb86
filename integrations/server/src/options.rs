//! Options of the router.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use positronic_core::prices::PriceTable;
use serde_json::Value;
use url::Url;

use crate::auth::{Authenticate, Caller, DeciderPolicy, Deciders, IpRange, Login};
use crate::brains::{Brains, NoBrains};
use crate::redact::Redact;
use crate::routes::Route;
use crate::shutdown::Shutdown;
use crate::webhooks::{Hooks, PrivateAddresses};

/// Writes the text of a scrape.
pub(crate) type MetricsText = Arc<dyn Fn() -> BoxFuture<'static, String> + Send + Sync>;

/// Says whether a caller may start runs of a brain.
pub(crate) type MayStart = Arc<dyn Fn(&Caller, &str) -> bool + Send + Sync>;

/// Options of [`router`](crate::router).
#[derive(Clone, typed_builder::TypedBuilder)]
#[non_exhaustive]
pub struct Options {
    /// The brains whose runs can be started here; none by default.
    #[builder(
        default = Arc::new(NoBrains),
        setter(transform = |brains: impl Brains| Arc::new(brains) as Arc<dyn Brains>)
    )]
    pub(crate) brains: Arc<dyn Brains>,
    /// How the caller of a request is found: by tokens of the store and browser sessions by default. A service with its own
    /// authentication sets its own.
    #[builder(
        default,
        setter(transform = |authenticate: impl Authenticate| Some(Arc::new(authenticate) as Arc<dyn Authenticate>))
    )]
    pub(crate) authenticate: Option<Arc<dyn Authenticate>>,
    /// The one-use codes that log a browser in, for a command that prints one.
    #[builder(default)]
    pub(crate) login: Login,
    /// The URL under which clients reach the router, with its prefix. Its host is allowed in requests.
    #[builder(default, setter(strip_option))]
    pub(crate) public_url: Option<Url>,
    /// Further host names that requests may have; names of the loopback interface are always allowed.
    #[builder(default)]
    pub(crate) hosts: Vec<String>,
    /// The proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` count; none by default.
    #[builder(default)]
    pub(crate) trusted_proxies: Vec<IpRange>,
    /// The origins whose pages may use the API with a token, such as `https://app.example.org`; none by default.
    #[builder(default)]
    pub(crate) cors_origins: Vec<Url>,
    /// Who decides a pending item, among the callers with the scope that it needs: all by default.
    #[builder(
        default = Arc::new(DeciderPolicy::default()),
        setter(transform = |deciders: impl Deciders| Arc::new(deciders) as Arc<dyn Deciders>)
    )]
    pub(crate) deciders: Arc<dyn Deciders>,
    /// Whether a caller with the scope to start runs may start those of the brain with this title: of all by default.
    #[builder(
        default = Arc::new(|_: &Caller, _: &str| true),
        setter(transform = |may: impl Fn(&Caller, &str) -> bool + Send + Sync + 'static| Arc::new(may) as MayStart)
    )]
    pub(crate) may_start: MayStart,
    /// Removes secrets from the JSON of every answer and every event of a stream, and leaves a mark such as
    /// [`REDACTED`](crate::REDACTED) in their place; [`redact_fields`](crate::redact_fields) does it by the names of fields. It
    /// gets the JSON of a whole answer, or of one event. Pieces of answers (`delta`) come without their text then. Downloads of
    /// files stay as they are.
    #[builder(
        default,
        setter(transform = |redact: impl Fn(&mut Value) + Send + Sync + 'static| Some(Arc::new(redact) as Redact))
    )]
    pub(crate) redact: Option<Redact>,
    /// The prices of models, for the costs in timelines.
    #[builder(default, setter(transform = |prices: PriceTable| Some(Arc::new(prices))))]
    pub(crate) prices: Option<Arc<PriceTable>>,
    /// The text of `/metrics` in the format OpenMetrics; without it, the route does not exist.
    #[builder(
        default,
        setter(transform = |text: impl Fn() -> BoxFuture<'static, String> + Send + Sync + 'static| {
            Some(Arc::new(text) as MetricsText)
        })
    )]
    pub(crate) metrics: Option<MetricsText>,
    /// Whether every request that changes something is refused.
    #[builder(default)]
    pub(crate) read_only: bool,
    /// The maximum bytes of a request's body: 1 MiB by default.
    #[builder(default = 1 << 20)]
    pub(crate) max_body_bytes: usize,
    /// How many streams of events one caller may have open: 16 by default.
    #[builder(default = 16)]
    pub(crate) max_streams: usize,
    /// How many connections a [`Listener`](crate::Listener) serves at once: 1024 by default, and a quarter of them from one
    /// address.
    #[builder(default = 1024)]
    pub(crate) max_connections: usize,
    /// How many requests one caller may send per minute: 1200 by default.
    #[builder(default = 1200)]
    pub(crate) requests_per_minute: u32,
    /// Further routes beside those of the API, such as those of a bridge to another protocol; none by default.
    #[builder(default)]
    pub(crate) routes: Vec<Route>,
    /// The inbound webhooks: `POST /api/v1/hooks/{name}`.
    #[builder(default)]
    pub(crate) hooks: Hooks,
    /// Whether outgoing webhooks may go to addresses that are not public, such as those of the own network.
    #[builder(default)]
    pub(crate) webhook_addresses: PrivateAddresses,
    /// Ends the open streams, so that a server can shut down.
    #[builder(default)]
    pub(crate) shutdown: Shutdown,
}

impl Options {
    /// Sets the public URL, if there is one.
    pub fn set_public_url(&mut self, url: Option<Url>) {
        self.public_url = url;
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("public_url", &self.public_url).finish_non_exhaustive()
    }
}
