//! A server that is reached over a stream of the author's.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use rmcp::RoleClient;
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What is read from. A type of its own, since compilers lose the lifetime of a boxed trait in futures as deep as a handshake.
pub(super) struct Reading(Pin<Box<dyn AsyncRead + Send>>);

/// What is written to.
pub(super) struct Writing(Pin<Box<dyn AsyncWrite + Send>>);

impl AsyncRead for Reading {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.0.as_mut().poll_read(cx, into)
    }
}

impl AsyncWrite for Writing {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.as_mut().poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.as_mut().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.as_mut().poll_shutdown(cx)
    }
}

type Open = dyn Fn() -> BoxFuture<'static, io::Result<(Reading, Writing)>> + Send + Sync;

/// A stream over which a server speaks, a message a line: a socket, the pipes of a container, a server in the same process.
///
/// ```
/// use positronic_core::mcp::{McpOptions, McpServer, McpStream};
/// use tokio::net::TcpStream;
///
/// let stream = McpStream::new(async || Ok(TcpStream::connect("127.0.0.1:4040").await?.into_split()));
/// let server = McpServer::new("desk", stream, McpOptions::default());
/// # assert!(server.is_ok());
/// ```
#[derive(Clone)]
#[must_use = "a stream is given to `McpServer::new`"]
pub struct McpStream {
    open: Arc<Open>,
}

impl McpStream {
    /// Begins with the function that opens the stream, at first and again after it broke. It answers with what to read from and
    /// what to write to.
    pub fn new<F, Fut, R, W>(open: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = io::Result<(R, W)>> + Send + 'static,
        R: AsyncRead + Send + 'static,
        W: AsyncWrite + Send + 'static,
    {
        let open = Arc::new(open);
        Self {
            open: Arc::new(move || {
                let open = Arc::clone(&open);
                Box::pin(async move {
                    let (reading, writing) = open().await?;
                    Ok((Reading(Box::pin(reading)), Writing(Box::pin(writing))))
                })
            }),
        }
    }

    pub(super) async fn open(&self) -> io::Result<(Reading, Writing)> {
        (self.open)().await
    }
}

impl fmt::Debug for McpStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpStream").finish_non_exhaustive()
    }
}

/// Speaks a message a line. How long a line may be is said by what is read from.
pub(super) fn framed<R, W>(reading: R, writing: W) -> AsyncRwTransport<RoleClient, R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    AsyncRwTransport::new_client(reading, writing).with_max_line_length(usize::MAX)
}
