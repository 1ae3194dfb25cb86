//! A connection to a server: requests with timeouts, progress, and notifications.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, CancelledNotificationParam, ClientRequest, JsonObject,
    ListToolsRequest, PaginatedRequestParams, PingRequest, ProgressToken, RequestId, ServerResult, Tool,
};
use rmcp::service::{Peer, PeerRequestOptions, ServiceError};

use super::error::McpError;
use super::lenient_results::{ToolPage, call_result};
use super::names::printable;
use super::notifications::{NotificationListener, Notifications, OnProgress};
use super::options::McpOptions;
use super::secrets::Secrets;
use super::server_identity::McpSeen;
use super::transport::{Connected, McpTransport, UNREADABLE};

/// The maximum number of a server's tools; far fewer already confuse a model.
const MAX_TOOLS: usize = 1000;

/// The maximum number of pages of tools.
const MAX_PAGES: usize = 100;

/// The timeout of the ping after a call that timed out.
const PING_TIMEOUT: Duration = Duration::from_secs(5);

/// The maximum shown characters of a server's name and version.
const SHOWN: usize = 200;

/// The tools that a server lists.
#[derive(Debug, Default)]
pub(super) struct ServerTools {
    pub(super) tools: Vec<Tool>,
    /// The tools that cannot be read, each with the reason.
    pub(super) skipped: Vec<(String, String)>,
    /// Why the list was not read to its end.
    pub(super) endless: Option<String>,
}

/// A connection. Dropping it closes it, and ends the server's process.
pub(super) struct Connection {
    server: Arc<str>,
    transport: McpTransport,
    secrets: Secrets,
    notifications: Arc<Notifications>,
    // Dropped in this order: the input of a process is closed before the process is stopped.
    connected: Connected,
    served: AtomicBool,
    silent: AtomicBool,
}

impl Connection {
    /// Connects to a server.
    pub(super) async fn make(
        server: &Arc<str>,
        transport: &McpTransport,
        options: &McpOptions,
    ) -> Result<Self, McpError> {
        let listener = NotificationListener::default();
        let notifications = Arc::clone(&listener.0);
        let making = transport.connect(server, options, listener);
        let connected = tokio::time::timeout(options.connect_timeout, making).await.unwrap_or_else(|_| {
            let what = format!("the handshake did not finish within {:?}", options.connect_timeout);
            Err(McpError::Start { server: server.to_string(), what, transient: false })
        });
        let secrets = transport.secrets();
        let connected = connected.map_err(|mut error| {
            if let McpError::Start { what, .. } = &mut error {
                secrets.hide_in(what);
            }
            error
        })?;
        Ok(Self {
            server: Arc::clone(server),
            transport: transport.clone(),
            secrets,
            notifications,
            connected,
            served: AtomicBool::new(false),
            silent: AtomicBool::new(false),
        })
    }

    /// Returns the server's identity.
    pub(super) fn seen(&self) -> McpSeen {
        let info = self.connected.service.peer_info();
        let program = info.as_ref().and_then(|info| info.server_info.as_ref());
        McpSeen {
            program: program.map(|program| printable(&program.name, SHOWN)).unwrap_or_default(),
            version: program.map(|program| printable(&program.version, SHOWN)).unwrap_or_default(),
            protocol: info.map(|info| info.protocol_version.to_string()).unwrap_or_default(),
            notes: Vec::new(),
        }
    }

    /// Returns the server's instructions.
    pub(super) fn instructions(&self) -> Option<String> {
        self.connected.service.peer_info()?.instructions.clone()
    }

    /// Returns the notification that the list of tools has changed, unless another caller has taken it.
    pub(super) fn changed(&self) -> Option<ListChanged<'_>> {
        self.notifications.changed.swap(false, Ordering::SeqCst).then(|| ListChanged(Some(self)))
    }

    /// Requests a new list of tools.
    pub(super) fn ask_again(&self) {
        self.notifications.changed.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.connected.service.peer().is_transport_closed()
    }

    /// Returns whether a call was ever answered.
    pub(super) fn has_served(&self) -> bool {
        self.served.load(Ordering::SeqCst)
    }

    /// Returns whether the server may be unresponsive: nothing was answered since a call timed out.
    pub(super) fn is_suspect(&self) -> bool {
        self.silent.load(Ordering::SeqCst)
    }

    /// Pings the server if it may be unresponsive. Open calls prove nothing: they may wait for the same server.
    pub(super) async fn responds(&self) -> bool {
        if !self.is_suspect() {
            return true;
        }
        let ping = ClientRequest::PingRequest(PingRequest::default());
        !matches!(self.ask(ping, PING_TIMEOUT, None).await, Err(McpError::Time { .. } | McpError::Died { .. }))
    }

    pub(super) async fn end_reason(&self) -> String {
        let mut reason = self.connected.wire.end_reason().await;
        self.secrets.hide_in(&mut reason);
        reason
    }

    /// Lists the tools of all pages. What cannot be read is skipped, and a list that does not end is used as far as it was read.
    pub(super) async fn list(&self, time: Duration) -> Result<ServerTools, McpError> {
        let offers = self.connected.service.peer_info().is_some_and(|info| info.capabilities.tools.is_some());
        if !offers {
            return Ok(ServerTools::default());
        }
        let listing = async {
            let (mut listed, mut cursor) = (ServerTools::default(), None);
            let mut cursors = HashSet::new();
            for _ in 0..MAX_PAGES {
                let page = PaginatedRequestParams::default().with_cursor(cursor);
                let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(page));
                let result = self.ask(request, time, None).await?;
                let page = ToolPage::read(result).ok_or_else(|| self.bad_answer("it is not a list of tools"))?;
                listed.skipped.extend(page.skipped);
                // A server whose cursor does not move lists the same page again.
                let new: Vec<_> = page.tools.into_iter().filter(|tool| !listed.tools.contains(tool)).collect();
                listed.tools.extend(new);
                if listed.tools.len() > MAX_TOOLS {
                    return Err(self.too_many(MAX_TOOLS, "tools"));
                }
                cursor = page.cursor;
                let Some(next) = &cursor else { return Ok(listed) };
                if !cursors.insert(next.clone()) {
                    listed.endless = Some(format!("the cursor `{}` was there before", printable(next, SHOWN)));
                    return Ok(listed);
                }
            }
            listed.endless = Some(format!("it has more than {MAX_PAGES} pages"));
            Ok(listed)
        };
        tokio::time::timeout(time, listing).await.unwrap_or_else(|_| Err(self.timed_out(time)))
    }

    /// Calls a tool. Dropping the future cancels the call.
    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: JsonObject,
        time: Duration,
        progress: OnProgress,
    ) -> Result<CallToolResult, McpError> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let answer = self.ask(request, time, Some(progress)).await;
        if !matches!(answer, Err(McpError::Time { .. } | McpError::Died { .. } | McpError::Request { .. })) {
            self.served.store(true, Ordering::SeqCst);
        }
        match answer? {
            ServerResult::CallToolResult(mut result) => {
                self.secrets.hide_in_result(&mut result);
                Ok(result)
            }
            ServerResult::InputRequiredResult(_) => {
                Err(self.bad_answer("it requests more input, which is not supported"))
            }
            ServerResult::CreateTaskResult(_) => Err(self.bad_answer("it is a task, which was not requested")),
            other => match call_result(&other) {
                Some(mut result) => {
                    self.secrets.hide_in_result(&mut result);
                    Ok(result)
                }
                None => Err(self.bad_answer("it is not a tool result; whether the call took effect is unknown")),
            },
        }
    }

    async fn ask(
        &self,
        request: ClientRequest,
        time: Duration,
        progress: Option<OnProgress>,
    ) -> Result<ServerResult, McpError> {
        let asking = async {
            let options = PeerRequestOptions::no_options();
            let handle = self.connected.service.peer().send_cancellable_request(request, options).await?;
            let open = RequestGuard::new(self, handle.id.clone(), handle.progress_token.clone(), progress);
            let answer = handle.await_response().await;
            open.complete();
            answer
        };
        match tokio::time::timeout(time, asking).await {
            Ok(Ok(result)) => {
                self.silent.store(false, Ordering::SeqCst);
                Ok(result)
            }
            Ok(Err(error)) => {
                self.silent.store(false, Ordering::SeqCst);
                Err(self.failed(error).await)
            }
            Err(_) => {
                self.silent.store(true, Ordering::SeqCst);
                Err(self.timed_out(time))
            }
        }
    }

    async fn failed(&self, error: ServiceError) -> McpError {
        let server = self.server.to_string();
        if let Some((mut what, transient)) = self.transport.refusal(&error) {
            self.secrets.hide_in(&mut what);
            return McpError::Request { server, what, transient };
        }
        match error {
            ServiceError::McpError(error) if error.code.0 == UNREADABLE => {
                let mut message = error.message.into_owned();
                self.secrets.hide_in(&mut message);
                self.bad_answer(&format!("{message}; whether the request took effect is unknown"))
            }
            ServiceError::McpError(error) => {
                let mut message = error.message.into_owned();
                self.secrets.hide_in(&mut message);
                McpError::Refused { server, code: error.code.0, message }
            }
            ServiceError::TransportSend(_) | ServiceError::TransportClosed => {
                McpError::Died { server, what: self.end_reason().await }
            }
            ServiceError::UnexpectedResponse => self.bad_answer("it does not match the request"),
            other => self.bad_answer(&other.to_string()),
        }
    }

    fn timed_out(&self, time: Duration) -> McpError {
        McpError::Time { server: self.server.to_string(), time }
    }

    fn too_many(&self, most: usize, of: &'static str) -> McpError {
        McpError::TooMany { server: self.server.to_string(), most, of }
    }

    fn bad_answer(&self, what: &str) -> McpError {
        McpError::Answer { server: self.server.to_string(), what: what.to_owned() }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("server", &self.server).finish_non_exhaustive()
    }
}

/// The notification that the list of tools has changed. If it is dropped before the new list is known, it is raised again.
pub(super) struct ListChanged<'a>(Option<&'a Connection>);

impl ListChanged<'_> {
    /// Marks the new list as known.
    pub(super) fn known(mut self) {
        self.0 = None;
    }
}

impl Drop for ListChanged<'_> {
    fn drop(&mut self) {
        if let Some(connection) = self.0 {
            connection.ask_again();
        }
    }
}

/// A request without an answer. Dropping it cancels the request on the server.
struct RequestGuard {
    peer: Peer<RoleClient>,
    notifications: Arc<Notifications>,
    token: ProgressToken,
    id: Option<RequestId>,
}

impl RequestGuard {
    fn new(connection: &Connection, id: RequestId, token: ProgressToken, progress: Option<OnProgress>) -> Self {
        if let Some(progress) = progress {
            connection.notifications.progress.lock().insert(token.clone(), progress);
        }
        Self {
            peer: connection.connected.service.peer().clone(),
            notifications: Arc::clone(&connection.notifications),
            token,
            id: Some(id),
        }
    }

    fn complete(mut self) {
        self.id = None;
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.notifications.progress.lock().remove(&self.token);
        let Some(id) = self.id.take() else { return };
        // Without a runtime the connection is closed, too.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let peer = self.peer.clone();
        runtime.spawn(async move {
            let reason = "the caller has cancelled the request".to_owned();
            let told = peer.notify_cancelled(CancelledNotificationParam::new(Some(id), Some(reason)));
            // An unresponsive server cannot be notified.
            _ = tokio::time::timeout(PING_TIMEOUT, told).await;
        });
    }
}
