//! A server of its own for the router, for programs that have none.
//!
//! It speaks HTTP/1.1 and limits what strangers can hold open: the number of connections, in total and of one address, the
//! time until the headers of a request are complete, and the time for which a client may not read its answer. The router
//! itself limits the time of a request.

mod stall;

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use parking_lot::Mutex;
use positronic_core::runner::Client;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tower::ServiceExt as _;

use crate::auth::{IpRange, client_prefix, is_trusted};
use crate::options_builder::Options;
use crate::routes::router;
use crate::settings::RouterSettings;
use crate::shutdown::Shutdown;
use stall::StallTimeout;

/// How long requests may take after the shutdown has begun.
const GRACE: Duration = Duration::from_secs(5);
/// How long a connection may stay open without the complete headers of a request.
const HEADERS: Duration = Duration::from_secs(15);
/// How long a client may not read its answer.
const STALL: Duration = Duration::from_secs(60);
/// How long to wait after the system could not accept a connection, such as for want of file descriptors.
const PAUSE: Duration = Duration::from_millis(200);

/// A bound address on which a router is served.
pub struct Listener(TcpListener);

impl Listener {
    /// Binds an address.
    ///
    /// # Errors
    ///
    /// An [`io::Error`] if the address is not available.
    pub async fn bind(address: SocketAddr) -> io::Result<Self> {
        Ok(Self(TcpListener::bind(address).await?))
    }

    /// Returns the bound address, with the port that the system has chosen for port 0.
    ///
    /// # Errors
    ///
    /// An [`io::Error`] of the system.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    /// Serves the router until [`OptionsBuilder::shutdown`](crate::OptionsBuilder::shutdown) begins. Then it closes open streams and waits up to five
    /// seconds for other requests.
    pub async fn serve(self, client: Client, options: Options) {
        let shutdown = options.settings.shutdown.clone();
        let places = ConnectionPermits::new(&options.settings);
        let app = router(client, options);
        let (graceful, mut connections) = (GracefulShutdown::new(), JoinSet::new());
        while let Some((stream, peer, place)) = accepted(&self.0, &places, &shutdown).await {
            let connection = connection(stream, peer, app.clone(), &graceful);
            connections.spawn(async move {
                if let Err(error) = connection.await {
                    tracing::debug!(%peer, %error, "a connection has failed");
                }
                drop(place);
            });
            while connections.try_join_next().is_some() {}
        }
        tokio::select! {
            () = graceful.shutdown() => {}
            () = tokio::time::sleep(GRACE) => {}
        }
    }
}

/// Serves the requests of a connection.
fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    app: Router,
    graceful: &GracefulShutdown,
) -> impl Future<Output = Result<(), hyper::Error>> + Send + use<> {
    let service = service_fn(move |request: Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(peer));
        app.clone().oneshot(request)
    });
    let io = TokioIo::new(StallTimeout::new(stream, STALL));
    let http =
        http1::Builder::new().timer(TokioTimer::new()).header_read_timeout(HEADERS).serve_connection(io, service);
    graceful.watch(http)
}

/// Accepts the next connection for which there is a place; `None` after the shutdown has begun.
async fn accepted(
    listener: &TcpListener,
    places: &ConnectionPermits,
    shutdown: &Shutdown,
) -> Option<(TcpStream, SocketAddr, ConnectionSlot)> {
    let next = async {
        loop {
            let permit = Arc::clone(&places.free).acquire_owned().await.ok()?;
            match listener.accept().await {
                Ok((stream, peer)) => {
                    if let Some(place) = places.take(peer.ip(), permit) {
                        return Some((stream, peer, place));
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    };
    tokio::select! {
        accepted = next => accepted,
        () = shutdown.begun() => None,
    }
}

/// The places for connections. Further ones wait until one is closed; those of an address that has a quarter of all places
/// are closed at once.
struct ConnectionPermits {
    free: Arc<Semaphore>,
    of_address: Arc<Mutex<HashMap<IpAddr, usize>>>,
    most_of_address: usize,
    /// Proxies stand for many clients.
    trusted: Vec<IpRange>,
}

/// A connection's place, until it is dropped.
struct ConnectionSlot {
    of_address: Arc<Mutex<HashMap<IpAddr, usize>>>,
    address: IpAddr,
    _permit: OwnedSemaphorePermit,
}

impl ConnectionPermits {
    fn new(settings: &RouterSettings) -> Self {
        let most = settings.max_connections.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            free: Arc::new(Semaphore::new(most)),
            of_address: Arc::default(),
            most_of_address: most.div_ceil(4),
            trusted: settings.trusted_proxies.clone(),
        }
    }

    fn take(&self, address: IpAddr, permit: OwnedSemaphorePermit) -> Option<ConnectionSlot> {
        let is_proxy = is_trusted(&self.trusted, address);
        let address = client_prefix(address);
        let mut counts = self.of_address.lock();
        let count = counts.entry(address).or_default();
        if *count >= self.most_of_address && !is_proxy {
            return None;
        }
        *count += 1;
        drop(counts);
        Some(ConnectionSlot { of_address: Arc::clone(&self.of_address), address, _permit: permit })
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut counts = self.of_address.lock();
        if let Some(count) = counts.get_mut(&self.address) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                counts.remove(&self.address);
            }
        }
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Listener").field(&self.0).finish()
    }
}
