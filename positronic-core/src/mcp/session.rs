//! When a server is started, listed again, and left alone for a while.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, MutexGuard};
use tokio::time::Instant;

use super::connection::Connection;
use super::error::McpError;
use super::list::{Listing, checked};
use super::options::McpOptions;
use super::transport::McpTransport;

/// How often a server that cannot be reached is tried before a loop fails.
const TRIES: u32 = 3;

/// The pause after the first such try; each other one is twice as long.
const PAUSE: Duration = Duration::from_millis(500);

/// How long a server rests that has failed twice in a row; each time more, twice as long.
const REST: Duration = Duration::from_secs(1);

/// How long it rests at most.
const LONGEST_REST: Duration = Duration::from_secs(60);

/// The connections to one server, one after the other.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) name: Arc<str>,
    pub(super) transport: McpTransport,
    pub(super) options: McpOptions,
    now: Mutex<Now>,
}

#[derive(Debug, Default)]
struct Now {
    live: Option<Arc<Connection>>,
    listed: Option<Arc<Listing>>,
    /// How often the server has failed in a row.
    setbacks: u32,
    rests_until: Option<Instant>,
    last: String,
}

impl Session {
    pub(super) fn new(name: &str, transport: McpTransport, options: McpOptions) -> Self {
        Self { name: name.into(), transport, options, now: Mutex::default() }
    }

    /// Returns a connection on which to call a tool, a new one where the last one has ended or shows no life.
    pub(super) async fn connection(&self) -> Result<Arc<Connection>, McpError> {
        let mut now = self.now.lock().await;
        self.connected(&mut now).await
    }

    /// Returns the tools as of now. What was listed once stays listed: a server that is away now is the matter of the calls.
    pub(super) async fn listing(&self) -> Result<Arc<Listing>, McpError> {
        let mut now = self.now.lock().await;
        let Some(listed) = now.listed.clone() else {
            self.reached(&mut now).await?;
            return now.listed.clone().ok_or_else(|| self.gone());
        };
        let Some(live) = now.live.clone().filter(|live| !live.is_closed() && live.has_changed()) else {
            return Ok(listed);
        };
        match self.listed(&live, false).await {
            Ok(new) => {
                now.listed = Some(Arc::clone(&new));
                Ok(new)
            }
            Err(error) => {
                tracing::warn!(server = &*self.name, %error, "the tools of an MCP server stay as they were");
                live.ask_again();
                Ok(listed)
            }
        }
    }

    /// Ends the connection. The next call makes a new one.
    pub(super) async fn close(&self) {
        self.now.lock().await.live = None;
    }

    /// Connects for the first time, and does not give up at once.
    async fn reached(&self, now: &mut MutexGuard<'_, Now>) -> Result<(), McpError> {
        let mut pause = PAUSE;
        for _ in 1..TRIES {
            match self.connected(now).await {
                Err(error) if error.is_transient() => {
                    // These tries are one setback.
                    (now.setbacks, now.rests_until) = (0, None);
                    tokio::time::sleep(pause).await;
                    pause = pause.saturating_mul(2);
                }
                other => return other.map(drop),
            }
        }
        self.connected(now).await.map(drop)
    }

    async fn connected(&self, now: &mut MutexGuard<'_, Now>) -> Result<Arc<Connection>, McpError> {
        if let Some(live) = now.live.clone() {
            if !live.is_closed() && live.shows_life().await {
                return Ok(live);
            }
            let last = if live.is_closed() { live.last_words().await } else { "it did not answer any more".to_owned() };
            tracing::warn!(server = &*self.name, last, "an MCP server is started anew");
            now.live = None;
            // A server that has served well, and dies, is started anew at once.
            now.setbacks = if live.has_served() { 0 } else { now.setbacks };
            now.set_back(last);
        }
        let left = now.rests_until.map(|until| until.saturating_duration_since(Instant::now()));
        if let Some(left) = left.filter(|left| !left.is_zero()) {
            let (server, times, last) = (self.name.to_string(), now.setbacks, now.last.clone());
            let left = Duration::from_secs(u64::try_from(left.as_millis().div_ceil(1000)).unwrap_or(u64::MAX));
            return Err(McpError::Resting { server, left, times, last });
        }
        match self.made(now.listed.is_none()).await {
            Ok((live, listed)) => {
                let live = Arc::new(live);
                match listed {
                    Ok(listed) => now.listed = Some(listed),
                    Err(error) if now.listed.is_none() => return Err(error),
                    Err(error) => {
                        tracing::warn!(server = &*self.name, %error, "the tools of an MCP server stay as they were");
                        live.ask_again();
                    }
                }
                now.live = Some(Arc::clone(&live));
                Ok(live)
            }
            Err(error) => {
                now.set_back(error.to_string());
                Err(error)
            }
        }
    }

    async fn made(&self, is_first: bool) -> Result<(Connection, Result<Arc<Listing>, McpError>), McpError> {
        let live = Connection::make(&self.name, &self.transport, &self.options).await?;
        let listed = self.listed(&live, is_first).await;
        match listed {
            // It has died again, or is silent, so it cannot be called.
            Err(error @ (McpError::Died { .. } | McpError::Time { .. })) => Err(error),
            listed => Ok((live, listed)),
        }
    }

    async fn listed(&self, live: &Connection, is_first: bool) -> Result<Arc<Listing>, McpError> {
        let tools = live.list(self.options.connect_timeout).await?;
        let tools = checked(&self.name, tools, &self.options, is_first)?;
        Ok(Arc::new(Listing { tools, seen: live.seen(), instructions: live.instructions() }))
    }

    fn gone(&self) -> McpError {
        McpError::Answer { server: self.name.to_string(), what: "it has listed nothing".to_owned() }
    }
}

impl Now {
    /// Notes a failure. The first one costs nothing; after others the server rests.
    fn set_back(&mut self, last: String) {
        self.last = last;
        self.setbacks = self.setbacks.saturating_add(1);
        self.rests_until = self.setbacks.checked_sub(2).map(|more| {
            let rest = REST.saturating_mul(2_u32.saturating_pow(more)).min(LONGEST_REST);
            Instant::now() + rest
        });
    }
}
