//! One connection to a server: requests with time-outs, progress, and what the server says unasked.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, CancelledNotificationParam, ClientCapabilities,
    ClientConfig, ClientRequest, Implementation, JsonObject, PaginatedRequestParams, PingRequest,
    ProgressNotificationParam, ProgressToken, RequestId, ServerResult, Tool,
};
use rmcp::service::{NotificationContext, Peer, PeerRequestOptions, ServiceError};
use rmcp::{ClientHandler, RoleClient};

use super::error::McpError;
use super::names::plain;
use super::options::McpOptions;
use super::plugin::McpSeen;
use super::secrets::Secrets;
use super::transport::{Connected, McpTransport};

/// How many tools of a server are listed; a model is lost among far fewer.
const MOST_TOOLS: usize = 1000;

/// In how many pages.
const MOST_PAGES: usize = 100;

/// How long a server that has let a call run out of time may take to show that it is there.
const SIGN_OF_LIFE: Duration = Duration::from_secs(5);

/// How much of what a server says about itself and its progress is shown.
const SHOWN: usize = 200;

/// Is told how far a call is.
pub(super) type OnProgress = Box<dyn Fn(String) + Send + Sync>;

/// Hears what the server says unasked.
#[derive(Clone, Default)]
pub(super) struct Listener(Arc<Heard>);

#[derive(Default)]
struct Heard {
    changed: AtomicBool,
    progress: Mutex<HashMap<ProgressToken, OnProgress>>,
}

impl Heard {
    fn listeners(&self) -> std::sync::MutexGuard<'_, HashMap<ProgressToken, OnProgress>> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientHandler for Listener {
    fn get_info(&self) -> ClientConfig {
        // No capabilities: a server cannot ask our model, nor our users, nor look into our folders.
        ClientConfig::new(ClientCapabilities::default(), Implementation::new("positronic", env!("CARGO_PKG_VERSION")))
    }

    async fn on_progress(&self, said: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        if let Some(listener) = self.0.listeners().get(&said.progress_token) {
            listener(progress(&said));
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.0.changed.store(true, Ordering::SeqCst);
    }
}

fn progress(said: &ProgressNotificationParam) -> String {
    let share = match said.total {
        Some(total) => format!("{} of {total}", said.progress),
        None => said.progress.to_string(),
    };
    match &said.message {
        Some(message) => plain(message, SHOWN),
        None => share,
    }
}

/// One connection. It ends when it is dropped, and a process with it.
pub(super) struct Connection {
    server: Arc<str>,
    transport: McpTransport,
    secrets: Secrets,
    heard: Arc<Heard>,
    // Dropped in this order: the input of a process is closed before it is told to end.
    connected: Connected,
    served: AtomicBool,
    silent: AtomicBool,
}

impl Connection {
    /// Reaches a server.
    pub(super) async fn make(
        server: &Arc<str>,
        transport: &McpTransport,
        options: &McpOptions,
    ) -> Result<Self, McpError> {
        let listener = Listener::default();
        let heard = Arc::clone(&listener.0);
        let making = transport.connect(server, options, listener);
        let connected = tokio::time::timeout(options.connect_timeout, making).await.unwrap_or_else(|_| {
            let what = format!("it did not shake hands within {:?}", options.connect_timeout);
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
            heard,
            connected,
            served: AtomicBool::new(false),
            silent: AtomicBool::new(false),
        })
    }

    /// Says who answered.
    pub(super) fn seen(&self) -> McpSeen {
        let info = self.connected.service.peer_info();
        let program = info.as_ref().and_then(|info| info.server_info.as_ref());
        McpSeen {
            program: program.map(|program| plain(&program.name, SHOWN)).unwrap_or_default(),
            version: program.map(|program| plain(&program.version, SHOWN)).unwrap_or_default(),
            protocol: info.map(|info| info.protocol_version.to_string()).unwrap_or_default(),
        }
    }

    /// Returns what the server says about its use.
    pub(super) fn instructions(&self) -> Option<String> {
        self.connected.service.peer_info()?.instructions.clone()
    }

    /// Returns the news that the list of tools has changed, where it has and nobody else has the news.
    pub(super) fn changed(&self) -> Option<Change<'_>> {
        self.heard.changed.swap(false, Ordering::SeqCst).then(|| Change(Some(self)))
    }

    /// Lets the list be asked for once more.
    pub(super) fn ask_again(&self) {
        self.heard.changed.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.connected.service.peer().is_transport_closed()
    }

    /// Says whether a call was ever answered.
    pub(super) fn has_served(&self) -> bool {
        self.served.load(Ordering::SeqCst)
    }

    /// Says whether there is reason to doubt that the server is there: nothing was answered since a call ran out of time.
    pub(super) fn is_doubted(&self) -> bool {
        self.silent.load(Ordering::SeqCst)
    }

    /// Says whether the server is there, where there is reason to doubt it. Calls that are on their way say nothing about
    /// that: they may wait for the same silence.
    pub(super) async fn shows_life(&self) -> bool {
        if !self.is_doubted() {
            return true;
        }
        let ping = ClientRequest::PingRequest(PingRequest::default());
        !matches!(self.ask(ping, SIGN_OF_LIFE, None).await, Err(McpError::Time { .. } | McpError::Died { .. }))
    }

    pub(super) async fn last_words(&self) -> String {
        let mut words = self.connected.wire.last_words().await;
        self.secrets.hide_in(&mut words);
        words
    }

    /// Lists the tools, all pages.
    pub(super) async fn list(&self, time: Duration) -> Result<Vec<Tool>, McpError> {
        let offers = self.connected.service.peer_info().is_some_and(|info| info.capabilities.tools.is_some());
        if !offers {
            return Ok(Vec::new());
        }
        let listing = async {
            let (mut tools, mut cursor) = (Vec::new(), None);
            for _ in 0..MOST_PAGES {
                let page = PaginatedRequestParams::default().with_cursor(cursor);
                let page = match self.connected.service.peer().list_tools(Some(page)).await {
                    Ok(page) => page,
                    Err(error) => return Err(self.failed(error).await),
                };
                tools.extend(page.tools);
                if tools.len() > MOST_TOOLS {
                    return Err(self.too_many(MOST_TOOLS, "tools"));
                }
                cursor = page.next_cursor;
                if cursor.is_none() {
                    return Ok(tools);
                }
            }
            Err(self.too_many(MOST_PAGES, "pages of tools"))
        };
        tokio::time::timeout(time, listing).await.unwrap_or_else(|_| Err(self.out_of_time(time)))
    }

    /// Calls a tool. Whoever drops the future has the call cancelled.
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
                Err(self.something_else("it asks for more input, which nobody gives"))
            }
            ServerResult::CreateTaskResult(_) => Err(self.something_else("a task, which nobody asked for")),
            _ => Err(self.something_else("what is no result of a tool")),
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
            let open = Open::new(self, handle.id.clone(), handle.progress_token.clone(), progress);
            let answer = handle.await_response().await;
            open.answered();
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
                Err(self.out_of_time(time))
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
            ServiceError::McpError(error) => {
                let mut message = error.message.into_owned();
                self.secrets.hide_in(&mut message);
                McpError::Refused { server, code: error.code.0, message }
            }
            ServiceError::TransportSend(_) | ServiceError::TransportClosed => {
                McpError::Died { server, what: self.last_words().await }
            }
            ServiceError::UnexpectedResponse => self.something_else("what does not fit the request"),
            other => self.something_else(&other.to_string()),
        }
    }

    fn out_of_time(&self, time: Duration) -> McpError {
        McpError::Time { server: self.server.to_string(), time }
    }

    fn too_many(&self, most: usize, of: &'static str) -> McpError {
        McpError::TooMany { server: self.server.to_string(), most, of }
    }

    fn something_else(&self, what: &str) -> McpError {
        McpError::Answer { server: self.server.to_string(), what: what.to_owned() }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("server", &self.server).finish_non_exhaustive()
    }
}

/// The news that the list of tools has changed. Dropped before the new list is known, it is news again.
pub(super) struct Change<'a>(Option<&'a Connection>);

impl Change<'_> {
    /// Says that the new list is known.
    pub(super) fn known(mut self) {
        self.0 = None;
    }
}

impl Drop for Change<'_> {
    fn drop(&mut self) {
        if let Some(connection) = self.0 {
            connection.ask_again();
        }
    }
}

/// A request without an answer. Dropped so, the server is told that nobody waits any more.
struct Open {
    peer: Peer<RoleClient>,
    heard: Arc<Heard>,
    token: ProgressToken,
    id: Option<RequestId>,
}

impl Open {
    fn new(connection: &Connection, id: RequestId, token: ProgressToken, progress: Option<OnProgress>) -> Self {
        if let Some(progress) = progress {
            connection.heard.listeners().insert(token.clone(), progress);
        }
        Self {
            peer: connection.connected.service.peer().clone(),
            heard: Arc::clone(&connection.heard),
            token,
            id: Some(id),
        }
    }

    fn answered(mut self) {
        self.id = None;
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.heard.listeners().remove(&self.token);
        let Some(id) = self.id.take() else { return };
        // Without a runtime there is no connection any more, either.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let peer = self.peer.clone();
        runtime.spawn(async move {
            let reason = "nobody waits for the answer any more".to_owned();
            let told = peer.notify_cancelled(CancelledNotificationParam::new(Some(id), Some(reason)));
            // A server that takes nothing any more is told nothing.
            _ = tokio::time::timeout(SIGN_OF_LIFE, told).await;
        });
    }
}
