//! When a server is started, listed again, and left alone for a while.

use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Mutex;
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

/// How long the pause is at most while a server is waited for that a run has worked with.
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

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
    /// What is known of the server. Nobody waits while it is held, so a list that is known is there at once, whatever
    /// others wait for.
    known: std::sync::Mutex<Known>,
    /// Held by the one who connects.
    failed: Mutex<Failed>,
    /// Held by the one who asks for a list that has changed.
    relisting: Mutex<()>,
}

#[derive(Debug, Default)]
struct Known {
    live: Option<Arc<Connection>>,
    listed: Option<Arc<Listing>>,
}

#[derive(Debug, Default)]
struct Failed {
    /// How often the server has failed in a row.
    setbacks: u32,
    rests_until: Option<Instant>,
    last: String,
}

impl Session {
    pub(super) fn new(name: &str, transport: McpTransport, options: McpOptions) -> Self {
        let (known, failed, relisting) = Default::default();
        Self { name: name.into(), transport, options, known, failed, relisting }
    }

    /// Returns a connection on which to call a tool, a new one where the last one has ended or shows no life.
    pub(super) async fn connection(&self) -> Result<Arc<Connection>, McpError> {
        let live = self.known().live.clone();
        if let Some(live) = live.filter(|live| !live.is_closed() && !live.is_doubted()) {
            return Ok(live);
        }
        self.connected(&mut *self.failed.lock().await).await
    }

    /// Returns the tools as of now. What was listed once stays listed: a server that is away now is the matter of the calls. One
    /// that is not listed yet is waited for as long as `patience` says.
    pub(super) async fn listing(&self, patience: Duration) -> Result<Arc<Listing>, McpError> {
        let (live, listed) = {
            let known = self.known();
            (known.live.clone(), known.listed.clone())
        };
        let Some(listed) = listed else {
            self.reached(patience).await?;
            return self.known().listed.clone().ok_or_else(|| self.gone());
        };
        let Some(live) = live.filter(|live| !live.is_closed()) else { return Ok(listed) };
        // Where another run asks already, this one does not wait for the answer.
        let Ok(_alone) = self.relisting.try_lock() else { return Ok(listed) };
        let Some(change) = live.changed() else { return Ok(listed) };
        match self.listed(&live, false).await {
            Ok(new) => {
                change.known();
                let mut known = self.known();
                // A connection that was made meanwhile has brought its own list.
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

    /// Ends the connection. The next call makes a new one.
    pub(super) async fn close(&self) {
        // Whoever connects now is done first.
        let _failed = self.failed.lock().await;
        self.known().live = None;
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Connects for the first time in this process, and does not give up at once: nor before patience has run out, where it is
    /// known that the server could be reached once, since whatever is in the way now may pass.
    async fn reached(&self, patience: Duration) -> Result<(), McpError> {
        let (began, mut pause, mut tried) = (Instant::now(), PAUSE, 1);
        loop {
            let left = patience.saturating_sub(began.elapsed());
            let Err(error) = self.tried(!left.is_zero()).await else { return Ok(()) };
            let left = patience.saturating_sub(began.elapsed());
            let is_tried_again = tried < TRIES && error.is_transient();
            let is_waited_for = !left.is_zero() && error.may_pass();
            if !is_tried_again && !is_waited_for {
                return Err(error);
            }
            if tried >= TRIES {
                tracing::warn!(server = &*self.name, ?left, %error, "an MCP server is waited for");
            }
            let most = if is_tried_again { LONGEST_PAUSE } else { LONGEST_PAUSE.min(left) };
            tokio::time::sleep(pause.min(most)).await;
            (pause, tried) = (pause.saturating_mul(2).min(LONGEST_PAUSE), tried.saturating_add(1));
        }
    }

    /// Connects for the first time, unless somebody has done so meanwhile. Others may try between two tries.
    async fn tried(&self, is_waited_for: bool) -> Result<(), McpError> {
        let mut failed = self.failed.lock().await;
        if self.known().listed.is_some() {
            return Ok(());
        }
        let tried = self.connected(&mut failed).await.map(drop);
        if tried.as_ref().is_err_and(|error| error.is_transient() || (is_waited_for && error.may_pass())) {
            // All tries are one setback.
            (failed.setbacks, failed.rests_until) = (0, None);
        }
        tried
    }

    async fn connected(&self, failed: &mut Failed) -> Result<Arc<Connection>, McpError> {
        let live = self.known().live.clone();
        if let Some(live) = live {
            if !live.is_closed() && live.shows_life().await {
                return Ok(live);
            }
            let last = if live.is_closed() { live.last_words().await } else { "it did not answer any more".to_owned() };
            tracing::warn!(server = &*self.name, last, "an MCP server is started anew");
            self.known().live = None;
            // A server that has served well, and dies, is started anew at once.
            failed.setbacks = if live.has_served() { 0 } else { failed.setbacks };
            failed.set_back(last);
        }
        let left = failed.rests_until.map(|until| until.saturating_duration_since(Instant::now()));
        if let Some(left) = left.filter(|left| !left.is_zero()) {
            let (server, times, last) = (self.name.to_string(), failed.setbacks, failed.last.clone());
            let left = Duration::from_secs(u64::try_from(left.as_millis().div_ceil(1000)).unwrap_or(u64::MAX));
            return Err(McpError::Resting { server, left, times, last });
        }
        let is_first = self.known().listed.is_none();
        match self.made(is_first).await {
            Ok((live, listed)) => {
                let live = Arc::new(live);
                let mut known = self.known();
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
                failed.set_back(error.to_string());
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

impl Failed {
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
