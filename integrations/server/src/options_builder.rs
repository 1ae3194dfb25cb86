//! Builds the options of the router: its settings, and further routes.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use positronic_core::prices::PriceTable;
use serde_json::Value;
use url::Url;

use crate::auth::{Authenticate, Caller, Deciders, IpRange, Login};
use crate::brains::Brains;
use crate::routes::Route;
use crate::settings::RouterSettings;
use crate::shutdown::Shutdown;
use crate::webhooks::{Hooks, PrivateAddresses};

/// Options of [`router`](crate::router).
///
/// ```
/// use positronic_server::{Options, redact_fields};
///
/// let options = Options::builder().hosts(vec!["agents.example.com".to_owned()]).redact(redact_fields(["iban"])).build();
/// ```
#[derive(Clone)]
pub struct Options {
    pub(crate) settings: RouterSettings,
    pub(crate) routes: Vec<Route>,
}

impl Options {
    /// Returns a builder with the defaults.
    pub fn builder() -> OptionsBuilder {
        OptionsBuilder(Self { settings: RouterSettings::default(), routes: Vec::new() })
    }

    /// Sets the public URL, if there is one.
    pub fn set_public_url(&mut self, url: Option<Url>) {
        self.settings.public_url = url;
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("public_url", &self.settings.public_url).finish_non_exhaustive()
    }
}

/// Sets [`Options`]. Each has a default.
#[derive(Debug, Clone)]
#[must_use = "the options are the result of `build`"]
pub struct OptionsBuilder(Options);

impl OptionsBuilder {
    /// Sets the brains whose runs can be started here; none by default.
    pub fn brains(mut self, brains: impl Brains) -> Self {
        self.0.settings.brains = Arc::new(brains);
        self
    }

    /// Sets how the caller of a request is found: by tokens of the store and browser sessions by default. A service with its own
    /// authentication sets its own.
    pub fn authenticate(mut self, authenticate: impl Authenticate) -> Self {
        self.0.settings.authenticate = Some(Arc::new(authenticate));
        self
    }

    /// Sets the one-use codes that log a browser in, for a command that prints one.
    pub fn login(mut self, login: Login) -> Self {
        self.0.settings.login = login;
        self
    }

    /// Sets the URL under which clients reach the router, with its prefix. Its host is allowed in requests.
    pub fn public_url(mut self, url: Url) -> Self {
        self.0.settings.public_url = Some(url);
        self
    }

    /// Sets further host names that requests may have; names of the loopback interface are always allowed.
    pub fn hosts(mut self, hosts: Vec<String>) -> Self {
        self.0.settings.hosts = hosts;
        self
    }

    /// Sets the proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` count; none by default.
    pub fn trusted_proxies(mut self, proxies: Vec<IpRange>) -> Self {
        self.0.settings.trusted_proxies = proxies;
        self
    }

    /// Sets the origins whose pages may use the API with a token, such as `https://app.example.org`; none by default.
    pub fn cors_origins(mut self, origins: Vec<Url>) -> Self {
        self.0.settings.cors_origins = origins;
        self
    }

    /// Sets who decides a pending item, among the callers with the scope that it needs: all by default.
    pub fn deciders(mut self, deciders: impl Deciders) -> Self {
        self.0.settings.deciders = Arc::new(deciders);
        self
    }

    /// Sets whether a caller with the scope to start runs may start those of the brain with this title: of all by default.
    pub fn may_start(mut self, may: impl Fn(&Caller, &str) -> bool + Send + Sync + 'static) -> Self {
        self.0.settings.may_start = Arc::new(may);
        self
    }

    /// Sets what removes secrets from the JSON of every answer and every event of a stream, and leaves a mark such as
    /// [`REDACTED`](crate::REDACTED) in their place; [`redact_fields`](crate::redact_fields) does it by the names of fields. It
    /// gets the JSON of a whole answer, or of one event. Pieces of answers (`delta`) come without their text then. Downloads of
    /// files stay as they are.
    pub fn redact(mut self, redact: impl Fn(&mut Value) + Send + Sync + 'static) -> Self {
        self.0.settings.redact = Some(Arc::new(redact));
        self
    }

    /// Sets the prices of models, for the costs in timelines.
    pub fn prices(mut self, prices: PriceTable) -> Self {
        self.0.settings.prices = Some(Arc::new(prices));
        self
    }

    /// Sets the text of `/metrics` in the format OpenMetrics; without it, the route does not exist.
    pub fn metrics(mut self, text: impl Fn() -> BoxFuture<'static, String> + Send + Sync + 'static) -> Self {
        self.0.settings.metrics = Some(Arc::new(text));
        self
    }

    /// Sets the command line that starts the program which serves this router, such as `desk --store runs.db`: the page shows commands
    /// for a terminal that begin with it, to callers with the scope `admin`. Without it, it shows none.
    pub fn program(mut self, program: impl Into<String>) -> Self {
        self.0.settings.program = Some(program.into());
        self
    }

    /// Sets whether every request that changes something is refused.
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.0.settings.read_only = read_only;
        self
    }

    /// Sets the maximum bytes of a request's body: 1 MiB by default.
    pub fn max_body_bytes(mut self, bytes: usize) -> Self {
        self.0.settings.max_body_bytes = bytes;
        self
    }

    /// Sets how many streams of events one caller may have open: 16 by default.
    pub fn max_streams(mut self, streams: usize) -> Self {
        self.0.settings.max_streams = streams;
        self
    }

    /// Sets how many connections a [`Listener`](crate::Listener) serves at once: 1024 by default, and a quarter of them from one
    /// address.
    pub fn max_connections(mut self, connections: usize) -> Self {
        self.0.settings.max_connections = connections;
        self
    }

    /// Sets how many requests one caller may send per minute: 1200 by default.
    pub fn requests_per_minute(mut self, requests: u32) -> Self {
        self.0.settings.requests_per_minute = requests;
        self
    }

    /// Sets further routes beside those of the API, such as those of a bridge to another protocol; none by default.
    pub fn routes(mut self, routes: Vec<Route>) -> Self {
        self.0.routes = routes;
        self
    }

    /// Sets the inbound webhooks: `POST /api/v1/hooks/{name}`.
    pub fn hooks(mut self, hooks: Hooks) -> Self {
        self.0.settings.hooks = hooks;
        self
    }

    /// Sets whether outgoing webhooks may go to addresses that are not public, such as those of the own network; they may not by
    /// default.
    pub fn webhook_addresses(mut self, addresses: PrivateAddresses) -> Self {
        self.0.settings.webhook_addresses = addresses;
        self
    }

    /// Sets what ends the open streams, so that a server can shut down.
    pub fn shutdown(mut self, shutdown: Shutdown) -> Self {
        self.0.settings.shutdown = shutdown;
        self
    }

    /// Returns the options.
    #[must_use]
    pub fn build(self) -> Options {
        self.0
    }
}
