//! Transports to a server: a process, HTTP, or the author's stream.

mod command;
mod descendants;
mod http;
mod lenient_messages;
mod limited;
mod paced;
mod process;
mod stream;

use futures::future::BoxFuture;
use rmcp::RoleClient;
use rmcp::service::{ClientInitializeError, RunningService, ServiceError, serve_client};

use self::limited::LineLimit;
use self::process::ServerProcess;
use super::error::McpError;
use super::notifications::NotificationListener;
use super::options::McpOptions;
use super::secrets::Secrets;

pub use command::McpCommand;
pub use http::McpHttp;
pub use stream::McpStream;

pub(super) use lenient_messages::UNREADABLE;

/// The transport to a server, created from an [`McpCommand`], an [`McpHttp`] or an [`McpStream`].
#[derive(Debug, Clone)]
pub struct McpTransport(TransportKind);

#[derive(Debug, Clone)]
enum TransportKind {
    Command(McpCommand),
    Http(McpHttp),
    Stream(McpStream),
}

impl From<McpCommand> for McpTransport {
    fn from(command: McpCommand) -> Self {
        Self(TransportKind::Command(command))
    }
}

impl From<McpHttp> for McpTransport {
    fn from(http: McpHttp) -> Self {
        Self(TransportKind::Http(http))
    }
}

impl From<McpStream> for McpTransport {
    fn from(stream: McpStream) -> Self {
        Self(TransportKind::Stream(stream))
    }
}

/// An established connection.
pub(super) struct Connected {
    pub(super) service: RunningService<RoleClient, NotificationListener>,
    pub(super) wire: Wire,
}

/// The lower layer of a connection, which knows why it broke.
pub(super) enum Wire {
    Process(ServerProcess),
    Http,
    Stream(limited::Overflow),
}

impl Wire {
    /// Describes why the connection ended.
    pub(super) async fn end_reason(&self) -> String {
        match self {
            Self::Process(process) => process.end_reason().await,
            Self::Http => "the connection is closed".to_owned(),
            Self::Stream(overflow) => overflow.sentence().unwrap_or_else(|| "the stream has ended".to_owned()),
        }
    }
}

impl McpTransport {
    /// Validates the author's configuration.
    pub(super) fn check(&self) -> Result<(), String> {
        match &self.0 {
            TransportKind::Http(http) => http.check(),
            TransportKind::Command(_) | TransportKind::Stream(_) => Ok(()),
        }
    }

    /// Returns the secrets that were sent to the server.
    pub(super) fn secrets(&self) -> Secrets {
        match &self.0 {
            TransportKind::Http(http) => http.secrets(),
            TransportKind::Command(command) => command.secrets(),
            TransportKind::Stream(_) => Secrets::default(),
        }
    }

    /// Connects to the server and performs the handshake, without a timeout.
    pub(super) fn connect<'a>(
        &'a self,
        server: &'a str,
        options: &'a McpOptions,
        listener: NotificationListener,
    ) -> BoxFuture<'a, Result<Connected, McpError>> {
        // Boxed to limit the size of the types for the compiler.
        Box::pin(self.connected(server, options, listener))
    }

    async fn connected(
        &self,
        server: &str,
        options: &McpOptions,
        listener: NotificationListener,
    ) -> Result<Connected, McpError> {
        let failed = |what: String, transient| McpError::Start { server: server.to_owned(), what, transient };
        match &self.0 {
            TransportKind::Command(command) => {
                let (process, output, input) = ServerProcess::start(server, command, options.message)
                    .map_err(|error| failed(command.not_started(&error), false))?;
                match serve_client(listener, stream::framed(output, input)).await {
                    Ok(service) => Ok(Connected { service, wire: Wire::Process(process) }),
                    Err(error) => {
                        let what = match handshake_refusal(&error) {
                            Some(said) => said,
                            None => process.end_reason().await,
                        };
                        Err(failed(what, false))
                    }
                }
            }
            TransportKind::Http(http) => {
                let transport = http.transport(options).map_err(|what| failed(what, false))?;
                match serve_client(listener, transport).await {
                    Ok(service) => Ok(Connected { service, wire: Wire::Http }),
                    Err(ClientInitializeError::TransportError { error, .. }) => {
                        let (what, transient) = http::failure(&http.host(), &error);
                        Err(failed(what, transient))
                    }
                    Err(error) => Err(failed(handshake_refusal(&error).unwrap_or_else(|| error.to_string()), false)),
                }
            }
            TransportKind::Stream(stream) => {
                let (input, output) = stream.open().await.map_err(|error| failed(error.to_string(), true))?;
                let (limited, overflow) = LineLimit::new(input, options.message);
                match serve_client(listener, stream::framed(limited, output)).await {
                    Ok(service) => Ok(Connected { service, wire: Wire::Stream(overflow) }),
                    Err(error) => {
                        let words = handshake_refusal(&error).or_else(|| overflow.sentence());
                        Err(failed(words.unwrap_or_else(|| "the stream has ended".to_owned()), false))
                    }
                }
            }
        }
    }

    /// Describes why a request did not reach the server, and whether a retry may succeed. `None` for streams, whose end is the
    /// reason.
    pub(super) fn refusal(&self, error: &ServiceError) -> Option<(String, bool)> {
        match (&self.0, error) {
            (TransportKind::Http(http), ServiceError::TransportSend(error)) => Some(http::failure(&http.host(), error)),
            _ => None,
        }
    }
}

/// Describes an answer that rejected the handshake; `None` if the connection broke.
fn handshake_refusal(error: &ClientInitializeError) -> Option<String> {
    match error {
        ClientInitializeError::JsonRpcError(error) => {
            Some(format!("the server rejected the handshake: {} (code {})", error.message, error.code.0))
        }
        ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. } => None,
        other => Some(format!("the handshake failed: {other}")),
    }
}
