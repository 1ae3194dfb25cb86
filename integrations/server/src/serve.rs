//! A server of its own for the router, for programs that have none.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use positronic_core::runner::Client;
use tokio::net::TcpListener;

use crate::options::Options;
use crate::routes::router;

/// How long requests may take after the shutdown has begun.
const GRACE: Duration = Duration::from_secs(5);

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

    /// Serves the router until [`Options::shutdown`](Options) begins. Then it closes open streams and waits up to five
    /// seconds for other requests.
    ///
    /// # Errors
    ///
    /// An [`io::Error`] of the system.
    pub async fn serve(self, client: Client, options: Options) -> io::Result<()> {
        let shutdown = options.shutdown.clone();
        let begun = shutdown.clone();
        let app = router(client, options).into_make_service_with_connect_info::<SocketAddr>();
        let served = axum::serve(self.0, app).with_graceful_shutdown(async move { begun.begun().await });
        tokio::select! {
            served = async { served.await } => served,
            () = async {
                shutdown.begun().await;
                tokio::time::sleep(GRACE).await;
            } => Ok(()),
        }
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Listener").field(&self.0).finish()
    }
}
