//! How a router works: its options without further routes.
//!
//! The handler of a route gets a context, the context has the state of the router, and the state has the settings. So the settings
//! know no route, and a file that reads them does not use the API.

use std::sync::Arc;

use futures::future::BoxFuture;
use positronic_core::prices::PriceTable;
use url::Url;

use crate::auth::{Authenticate, Caller, DeciderPolicy, Deciders, IpRange, Login};
use crate::brains::{Brains, NoBrains};
use crate::redact::Redact;
use crate::shutdown::Shutdown;
use crate::webhooks::{Hooks, PrivateAddresses};

/// Writes the text of a scrape.
pub(crate) type MetricsText = Arc<dyn Fn() -> BoxFuture<'static, String> + Send + Sync>;

/// Says whether a caller may start runs of a brain.
pub(crate) type MayStart = Arc<dyn Fn(&Caller, &str) -> bool + Send + Sync>;

/// How a router works; the methods of [`OptionsBuilder`](crate::OptionsBuilder) say what each setting means.
#[derive(Clone)]
pub(crate) struct RouterSettings {
    pub(crate) brains: Arc<dyn Brains>,
    pub(crate) authenticate: Option<Arc<dyn Authenticate>>,
    pub(crate) login: Login,
    pub(crate) public_url: Option<Url>,
    pub(crate) hosts: Vec<String>,
    pub(crate) trusted_proxies: Vec<IpRange>,
    pub(crate) cors_origins: Vec<Url>,
    pub(crate) deciders: Arc<dyn Deciders>,
    pub(crate) may_start: MayStart,
    pub(crate) redact: Option<Redact>,
    pub(crate) prices: Option<Arc<PriceTable>>,
    pub(crate) metrics: Option<MetricsText>,
    pub(crate) program: Option<String>,
    pub(crate) read_only: bool,
    pub(crate) max_body_bytes: usize,
    pub(crate) max_streams: usize,
    pub(crate) max_connections: usize,
    pub(crate) requests_per_minute: u32,
    pub(crate) hooks: Hooks,
    pub(crate) webhook_addresses: PrivateAddresses,
    pub(crate) shutdown: Shutdown,
}

impl Default for RouterSettings {
    fn default() -> Self {
        Self {
            brains: Arc::new(NoBrains),
            authenticate: None,
            login: Login::default(),
            public_url: None,
            hosts: Vec::new(),
            trusted_proxies: Vec::new(),
            cors_origins: Vec::new(),
            deciders: Arc::new(DeciderPolicy::default()),
            may_start: Arc::new(|_, _| true),
            redact: None,
            prices: None,
            metrics: None,
            program: None,
            read_only: false,
            max_body_bytes: 1 << 20,
            max_streams: 16,
            max_connections: 1024,
            requests_per_minute: 1200,
            hooks: Hooks::default(),
            webhook_addresses: PrivateAddresses::default(),
            shutdown: Shutdown::default(),
        }
    }
}
