//! Which protocols a router speaks, and what their routes share.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use positronic_server::extension::{LocalCaller, Route};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::projection::PublicState;
use crate::shared::Shared;

/// A protocol of existing frontends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Protocol {
    /// AG-UI 1.0 over server-sent events, for CopilotKit, assistant-ui and other frontends: `POST /api/v1/ag-ui/{title}`.
    AgUi,
    /// The AI SDK's UI message stream, for `useChat`: `POST /api/v1/ai-sdk/{title}`.
    AiSdk,
    /// The Model Context Protocol, whose clients get each brain as a tool: `/api/v1/mcp`.
    Mcp,
    /// OpenAI's API, where the name of a model is the title of a brain: `/api/v1/openai/v1`.
    OpenAi,
    /// A2A 1.0 over JSON-RPC and HTTP+JSON, whose clients get each brain as an agent: `/api/v1/a2a/{title}`.
    A2a,
}

impl Protocol {
    /// All protocols.
    pub const ALL: [Self; 5] = [Self::AgUi, Self::AiSdk, Self::Mcp, Self::OpenAi, Self::A2a];

    /// Returns the protocol as a word, such as `ag-ui`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AgUi => "ag-ui",
            Self::AiSdk => "ai-sdk",
            Self::Mcp => "mcp",
            Self::OpenAi => "openai",
            Self::A2a => "a2a",
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Error from parsing a [`Protocol`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownProtocol;

impl fmt::Display for UnknownProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = Protocol::ALL.map(Protocol::as_str).join(", ");
        write!(f, "unknown protocol; the protocols are {known}")
    }
}

impl std::error::Error for UnknownProtocol {}

impl FromStr for Protocol {
    type Err = UnknownProtocol;

    fn from_str(text: &str) -> Result<Self, UnknownProtocol> {
        Self::ALL.into_iter().find(|protocol| protocol.as_str() == text).ok_or(UnknownProtocol)
    }
}

/// The bridges of a router.
#[derive(Clone, typed_builder::TypedBuilder)]
#[non_exhaustive]
pub struct Bridges {
    /// The protocols; all by default.
    #[builder(default = Protocol::ALL.to_vec(), setter(into))]
    protocols: Vec<Protocol>,
    /// What a browser sees of a brain's state: a function from the title of the run's brain and its state, where `None` shows
    /// nothing. No state is shown by default. What it returns is redacted as all answers are.
    #[builder(
        default,
        setter(transform = |show: impl Fn(&str, &Value) -> Option<Value> + Send + Sync + 'static| {
            Some(Arc::new(show) as PublicState)
        })
    )]
    public_state: Option<PublicState>,
    /// How long a client stays attached to a run that only a program, a time or another person can continue: 5 minutes by default.
    #[builder(default = Duration::from_secs(300))]
    hold: Duration,
    /// Whether clients of A2A may name addresses that get the states of their tasks: `false` by default. The service has to run a
    /// [`WebhookSender`](positronic_server::webhooks::WebhookSender), which delivers them; the addresses are those that
    /// `webhook_addresses` of [`Options`](positronic_server::Options) allows.
    #[builder(default)]
    push_notifications: bool,
    /// How long a call of MCP waits for its run, before the client gets the run's id instead of a result: 50 seconds by default,
    /// since most clients give up after 60.
    #[builder(default = crate::mcp::LONGEST_CALL)]
    longest_call: Duration,
    /// The program in the commands that clients without forms are shown, such as `positronic approve RUN`: `positronic` by default. A
    /// project with a binary of its own gives its name.
    #[builder(default = Arc::from("positronic"), setter(transform = |program: impl AsRef<str>| Arc::from(program.as_ref())))]
    program: Arc<str>,
}

impl Bridges {
    /// Returns the routes, for [`Options::routes`](positronic_server::Options).
    #[must_use]
    pub fn routes(&self) -> Vec<Route> {
        let shared = self.shared();
        let routes = self.protocols.iter().map(|protocol| match protocol {
            Protocol::AgUi => crate::ag_ui::routes(&shared),
            Protocol::AiSdk => crate::ai_sdk::routes(&shared),
            Protocol::Mcp => crate::mcp::routes(&shared, self.longest_call),
            Protocol::OpenAi => crate::openai::routes(&shared),
            Protocol::A2a => crate::a2a::routes(&shared),
        });
        routes.flatten().collect()
    }

    /// Serves the brains as tools of MCP to one client over streams, such as the standard ones of a command, until the client closes
    /// them, or the [`Shutdown`](positronic_server::Shutdown) of the caller's options begins, which answers the calls in flight. What the
    /// client may do is what the caller may.
    ///
    /// # Errors
    ///
    /// The client does not speak the protocol, or a stream fails.
    pub async fn serve_mcp<R, W>(&self, caller: LocalCaller, input: R, output: W) -> std::io::Result<()>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        crate::mcp::serve(self.shared(), caller, self.longest_call, input, output).await
    }

    fn shared(&self) -> Arc<Shared> {
        let Self { public_state, hold, push_notifications, program, .. } = self.clone();
        Arc::new(Shared { public_state, push_notifications, program, hold })
    }
}

impl fmt::Debug for Bridges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bridges").field("protocols", &self.protocols).finish_non_exhaustive()
    }
}
