//! HTTP/2 server of an endpoint.
//!
//! The server of Restate's SDK does not set `TCP_NODELAY`, which costs 40 ms per step.

use std::pin::pin;
use std::time::Duration;

use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::graceful::GracefulShutdown;
use restate_sdk::endpoint::Endpoint;
use restate_sdk::hyper::HyperEndpoint;
use tokio::net::TcpListener;

/// The pause after a failure to accept a connection, as when there are too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// Accepts connections until `stop` is ready. Returns the open connections, which are served on.
pub(crate) async fn accept(
    listener: TcpListener,
    endpoint: Endpoint,
    stop: impl Future<Output = ()>,
) -> GracefulShutdown {
    let (endpoint, connections) = (HyperEndpoint::new(endpoint), GracefulShutdown::new());
    let mut stop = pin!(stop);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut stop => return connections,
        };
        let Ok((stream, peer)) = accepted else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%peer, %error, "cannot set TCP_NODELAY");
        }
        let served = http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), endpoint.clone());
        let served = connections.watch(served);
        tokio::spawn(async move {
            if let Err(error) = served.await {
                tracing::debug!(%peer, %error, "the connection has ended");
            }
        });
    }
}
