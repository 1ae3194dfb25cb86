//! Options of a transport.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::capabilities::Capabilities;
use super::sender::HttpSender;

/// The options of a [`Transport`](super::Transport).
#[derive(Clone, typed_builder::TypedBuilder)]
#[builder(field_defaults(setter(into)))]
#[non_exhaustive]
pub struct HttpOptions {
    /// The provider's name in events.
    pub provider: String,
    /// The default model; a request may name another one.
    pub model: String,
    /// The API version with which a base URL usually ends, such as `v1`; error messages name it.
    #[builder(default = "v1".to_owned())]
    pub version: String,
    /// Headers with the API key and the account, by their names in lower case. They are hidden in errors.
    #[builder(default)]
    pub credentials: Vec<(&'static str, String)>,
    /// Additional headers; they override all others.
    #[builder(default)]
    pub headers: Vec<(String, String)>,
    /// The URL of a proxy, `http://…` or `socks5://…`. Proxies in the environment are ignored.
    #[builder(default)]
    pub proxy: Option<String>,
    /// What sends the requests; by default a client of the transport.
    #[builder(default)]
    pub sender: Option<Arc<dyn HttpSender>>,
    /// Whether requests ask for a stream.
    #[builder(default = true)]
    pub stream: bool,
    /// Timeouts of a request.
    #[builder(default)]
    pub timeouts: Timeouts,
    /// Which kinds of files models read; by default the bundled table.
    #[builder(default)]
    pub capabilities: Capabilities,
}

/// Shows no credentials.
impl fmt::Debug for HttpOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpOptions")
            .field("provider", &self.provider)
            .field("model", &self.model)
            .field("stream", &self.stream)
            .field("timeouts", &self.timeouts)
            .finish_non_exhaustive()
    }
}

/// Timeouts of a request. Exceeding one fails with [`Timeout`](positronic_core::record::ModelErrorKind::Timeout).
#[derive(Debug, Clone, Copy, PartialEq, Eq, typed_builder::TypedBuilder)]
#[non_exhaustive]
pub struct Timeouts {
    /// Until the connection is established; 10 s.
    #[builder(default = Duration::from_secs(10))]
    pub connect: Duration,
    /// From the start to the first chunk of a streamed answer; 3 minutes.
    #[builder(default = Duration::from_mins(3))]
    pub first_chunk: Duration,
    /// Between two chunks; 2 minutes.
    #[builder(default = Duration::from_mins(2))]
    pub idle: Duration,
    /// From the start to the end; 15 minutes.
    #[builder(default = Duration::from_mins(15))]
    pub total: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self::builder().build()
    }
}
