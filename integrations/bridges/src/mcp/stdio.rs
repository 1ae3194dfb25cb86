//! The protocol over the standard streams of a command: one client, and one caller.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use positronic_server::extension::LocalCaller;
use tokio::io::{AsyncRead, AsyncWrite};

use super::calls_in_flight::{Callers, ToolServer};
use super::listen::copy_renamed;
use crate::shared::Shared;

/// The bytes of messages that the server has not read yet.
const BUFFER: usize = 1 << 16;

/// Serves the brains of a store as tools to one client, until it closes the streams, or the caller's server shuts down: then the calls in
/// flight are answered first.
pub(crate) async fn serve<R, W>(
    shared: Arc<Shared>,
    caller: LocalCaller,
    longest_call: Duration,
    input: R,
    output: W,
) -> io::Result<()>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let viewer = caller.context().viewer().map_err(|problem| io::Error::other(problem.message()))?;
    let mut stopping = pin!(viewer.stopping());
    let server = ToolServer::new(Callers::Local(caller), shared, longest_call);
    let (messages, copied) = tokio::io::duplex(BUFFER);
    let copying = async {
        // The server reads the end of its input.
        if let Err(error) = copy_renamed(input, copied).await {
            tracing::debug!(%error, "cannot read or pass on the messages of a client");
        }
        std::future::pending::<()>().await;
    };
    let serving = async {
        let running = tokio::select! {
            running = rmcp::serve_server(server, (messages, output)) => running.map_err(io::Error::other)?,
            // The client has not begun.
            () = &mut stopping => return Ok(()),
        };
        let stop = running.cancellation_token();
        let mut ended = pin!(running.waiting());
        let ended = tokio::select! {
            ended = &mut ended => ended,
            () = &mut stopping => {
                stop.cancel();
                ended.await
            }
        };
        ended.map(drop).map_err(io::Error::other)
    };
    tokio::select! {
        served = serving => served,
        () = copying => Ok(()),
    }
}
