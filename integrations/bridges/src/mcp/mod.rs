//! A server of the Model Context Protocol: each brain is a tool. Over streamable HTTP at `/api/v1/mcp`, and over the standard
//! streams of a command.
//!
//! [`server`] answers requests, [`call`] follows the run of a call, [`question`] makes forms of what a run waits for, [`task`] shows runs
//! as tasks, [`listen`] reports their changes, [`http`] connects the transport of `rmcp` with the router's table. Runs are found by their
//! ids in the store, so that sessions hold nothing that a restart would lose.

mod answers;
mod call;
mod http;
mod listen;
mod misfits;
mod outcome;
mod question;
mod server;
mod session;
mod task;
mod tools;
mod update;

use std::sync::Arc;
use std::time::Duration;

use positronic_server::extension::LocalCaller;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::shared::Shared;
pub(crate) use http::routes;
use session::{Callers, ToolServer};

/// How long a call waits for its run by default. Most clients give up after 60 seconds.
pub(crate) const LONGEST_CALL: Duration = Duration::from_secs(50);

/// The bytes of messages that the server has not read yet.
const BUFFER: usize = 1 << 16;

/// Serves the brains of a store as tools to one client, until it closes the streams or the caller's server shuts down. Then no further
/// message is read, and the calls in flight get their answers.
pub(crate) async fn serve<R, W>(
    shared: Arc<Shared>,
    caller: LocalCaller,
    longest_call: Duration,
    input: R,
    output: W,
) -> std::io::Result<()>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let stopping = caller.context().viewer().map_err(|problem| std::io::Error::other(problem.message()))?.stopping();
    let server = ToolServer::new(Callers::Local(caller), shared, longest_call);
    let (messages, copied) = tokio::io::duplex(BUFFER);
    let copying = async {
        // Either way the server reads the end of its input.
        tokio::select! {
            copied = listen::copy_renamed(input, copied) => {
                if let Err(error) = copied {
                    tracing::debug!(%error, "cannot read or pass on the messages of a client");
                }
            }
            () = stopping => {}
        }
        std::future::pending::<()>().await;
    };
    let serving = async {
        let running = rmcp::serve_server(server, (messages, output)).await.map_err(std::io::Error::other)?;
        running.waiting().await.map(drop).map_err(std::io::Error::other)
    };
    tokio::select! {
        served = serving => served,
        () = copying => Ok(()),
    }
}
