//! Lifecycle of a server: starting, listing again, and pausing after failures.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use super::connection::Connection;
use super::error::McpError;
use super::options::McpOptions;
use super::server_identity::McpSeen;
use super::tool_list::{Listing, checked};
use super::transport::McpTransport;

/// How often an unreachable server is tried before a loop fails.
const TRIES: u32 = 3;

/// The pause after the first of these tries; it doubles with each further one.
const PAUSE: Duration = Duration::from_millis(500);

/// The maximum pause while waiting for a server that the run has used before.
const MAX_PAUSE: Duration = Duration::from_secs(15);

/// The pause after two consecutive failures; it doubles with each further one.
const REST: Duration = Duration::from_secs(1);

/// The maximum of that pause.
const MAX_REST: Duration = Duration::from_secs(60);

/// The successive connections to a server.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) name: Arc<str>,
    pub(super) transport: McpTransport,
    pub(super) options: McpOptions,
    /// The known state of the server. The lock is never held across an await, so that a known list is available at once.
    known: parking_lot::Mutex<Cached>,
    /// Locked while connecting.
    failed: Mutex<Failed>,
    /// Locked while a changed list is requested.
    relisting: Mutex<()>,
}

#[derive(Debug, Default)]
struct Cached {
    live: Option<Arc<Connection>>,
    listed: Option<Arc<Listing>>,
}

#[derive(Debug, Default)]
struct Failed {
    /// The number of consecutive failures.
    failures: u32,
    rests_until: Option<Instant>,
    last: String,
}

impl Session {
    pub(super) fn new(name: &str, transport: McpTransport, options: McpOptions) -> Self {
        let (known, failed, relisting) = Default::default();
        Self { name: name.into(), transport, options, known, failed, relisting }
    }

    /// Returns a live connection for a call, a new one if the last one has ended or does not respond.
    pub(super) async fn connection(&self) -> Result<Arc<Connection>, McpError> {
        let live = self.known.lock().live.clone();
        if let Some(live) = live.filter(|live| !live.is_closed() && !live.is_suspect()) {
            return Ok(live);
        }
        self.reconnect(&mut *self.failed.lock().await).await
    }

    /// Returns the current tools. A known list stays valid while the server is unavailable: calls report that. A server
    /// without a list is awaited up to `reconnect_timeout`.
    pub(super) async fn listing(&self, reconnect_timeout: Duration) -> Result<Arc<Listing>, McpError> {
        let (live, listed) = {
            let known = self.known.lock();
            (known.live.clone(), known.listed.clone())
        };
        let Some(listed) = listed else {
            self.connect_first(reconnect_timeout).await?;
            return self.known.lock().listed.clone().ok_or_else(|| self.nothing_listed());
        };
        let Some(live) = live.filter(|live| !live.is_closed()) else { return Ok(listed) };
        // If another run already requests the list, this one uses the old list.
        let Ok(_alone) = self.relisting.try_lock() else { return Ok(listed) };
        let Some(change) = live.changed() else { return Ok(listed) };
        match self.fetch_list(&live, false).await {
            Ok(new) => {
                change.known();
                let mut known = self.known.lock();
                // A newer connection has its own list.
                if known.live.as_ref().is_some_and(|now| Arc::ptr_eq(now, &live)) {
                    known.listed = Some(new);
                }
                Ok(known.listed.clone().unwrap_or(listed))
            }
            Err(error) => {
                tracing::warn!(server = &*self.name, %error, "the tools of an MCP server stay as they were");
                Ok(listed)
            }
        }
    }

    /// Closes the connection. The next call opens a new one.
    pub(super) async fn close(&self) {
        // Waits for a connection attempt in progress.
        let _failed = self.failed.lock().await;
        self.known.lock().live = None;
    }

    /// Connects for the first time in this process, with retries: up to `reconnect_timeout` if the server was reachable before, since
    /// the obstacle may be temporary.
    async fn connect_first(&self, reconnect_timeout: Duration) -> Result<(), McpError> {
        let (began, mut pause, mut tried) = (Instant::now(), PAUSE, 1);
        loop {
            let left = reconnect_timeout.saturating_sub(began.elapsed());
            let Err(error) = self.try_connect_first(!left.is_zero()).await else { return Ok(()) };
            let left = reconnect_timeout.saturating_sub(began.elapsed());
            let is_tried_again = tried < TRIES && error.is_transient();
            let is_waited_for = !left.is_zero() && error.may_recover();
            if !is_tried_again && !is_waited_for {
                return Err(error);
            }
            if tried >= TRIES {
                tracing::warn!(server = &*self.name, ?left, %error, "waiting for an MCP server");
            }
            let most = if is_tried_again { MAX_PAUSE } else { MAX_PAUSE.min(left) };
            tokio::time::sleep(pause.min(most)).await;
            (pause, tried) = (pause.saturating_mul(2).min(MAX_PAUSE), tried.saturating_add(1));
        }
    }

    /// Connects for the first time, unless another task has done so. The lock is released between tries.
    async fn try_connect_first(&self, is_waited_for: bool) -> Result<(), McpError> {
        let mut failed = self.failed.lock().await;
        if self.known.lock().listed.is_some() {
            return Ok(());
        }
        let tried = self.reconnect(&mut failed).await.map(drop);
        if tried.as_ref().is_err_and(|error| error.is_transient() || (is_waited_for && error.may_recover())) {
            // All tries count as one failure.
            (failed.failures, failed.rests_until) = (0, None);
        }
        tried
    }

    async fn reconnect(&self, failed: &mut Failed) -> Result<Arc<Connection>, McpError> {
        let live = self.known.lock().live.clone();
        if let Some(live) = live {
            if !live.is_closed() && live.responds().await {
                return Ok(live);
            }
            let last = if live.is_closed() { live.end_reason().await } else { "it stopped responding".to_owned() };
            tracing::warn!(server = &*self.name, last, "restarting an MCP server");
            self.known.lock().live = None;
            // A server that has worked before is restarted at once.
            failed.failures = if live.has_served() { 0 } else { failed.failures };
            failed.record_failure(last);
        }
        let left = failed.rests_until.map(|until| until.saturating_duration_since(Instant::now()));
        if let Some(left) = left.filter(|left| !left.is_zero()) {
            let (server, times, last) = (self.name.to_string(), failed.failures, failed.last.clone());
            let left = Duration::from_secs(u64::try_from(left.as_millis().div_ceil(1000)).unwrap_or(u64::MAX));
            return Err(McpError::Resting { server, left, times, last });
        }
        let is_first = self.known.lock().listed.is_none();
        match self.connect_and_list(is_first).await {
            Ok((live, listed)) => {
                let live = Arc::new(live);
                let mut known = self.known.lock();
                match listed {
                    Ok(listed) => known.listed = Some(listed),
                    Err(error) if known.listed.is_none() => return Err(error),
                    Err(error) => {
                        tracing::warn!(server = &*self.name, %error, "the tools of an MCP server stay as they were");
                        live.ask_again();
                    }
                }
                known.live = Some(Arc::clone(&live));
                Ok(live)
            }
            Err(error) => {
                failed.record_failure(error.to_string());
                Err(error)
            }
        }
    }

    async fn connect_and_list(&self, is_first: bool) -> Result<(Connection, Result<Arc<Listing>, McpError>), McpError> {
        let live = Connection::make(&self.name, &self.transport, &self.options).await?;
        let listed = self.fetch_list(&live, is_first).await;
        match listed {
            // It died again or does not respond, so it cannot be called.
            Err(error @ (McpError::Died { .. } | McpError::Time { .. })) => Err(error),
            listed => Ok((live, listed)),
        }
    }

    async fn fetch_list(&self, live: &Connection, is_first: bool) -> Result<Arc<Listing>, McpError> {
        let listed = live.list(self.options.connect_timeout).await?;
        let (tools, notes) = checked(&self.name, listed, &self.options, is_first)?;
        let seen = McpSeen { notes, ..live.seen() };
        Ok(Arc::new(Listing { tools, seen, instructions: live.instructions() }))
    }

    fn nothing_listed(&self) -> McpError {
        McpError::Answer { server: self.name.to_string(), what: "it listed no tools".to_owned() }
    }
}

impl Failed {
    /// Records a failure. After the second one in a row the server is paused.
    fn record_failure(&mut self, last: String) {
        self.last = last;
        self.failures = self.failures.saturating_add(1);
        self.rests_until = self.failures.checked_sub(2).map(|more| {
            let rest = REST.saturating_mul(2_u32.saturating_pow(more)).min(MAX_REST);
            Instant::now() + rest
        });
    }
}
