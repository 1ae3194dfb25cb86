//! Transport over the author's own stream.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use derive_where::derive_where;
use futures::future::BoxFuture;
use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, BufReader, ReadBuf};

use super::lenient_messages;

/// The reading half. A separate type, since the compiler loses the lifetime of a boxed trait in deeply nested futures.
pub(super) struct ReadHalf(Pin<Box<dyn AsyncRead + Send>>);

/// The writing half.
pub(super) struct Writing(Pin<Box<dyn AsyncWrite + Send>>);

impl AsyncRead for ReadHalf {
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

type Open = dyn Fn() -> BoxFuture<'static, io::Result<(ReadHalf, Writing)>> + Send + Sync;

/// A stream with one message per line: a socket, the pipes of a container, or a server in the same process.
///
/// ```
/// use positronic_mcp::{McpOptions, McpServer, McpStream};
/// use tokio::net::TcpStream;
///
/// let stream = McpStream::new(async || Ok(TcpStream::connect("127.0.0.1:4040").await?.into_split()));
/// let server = McpServer::new("desk", stream, McpOptions::default());
/// # assert!(server.is_ok());
/// ```
#[derive(Clone)]
#[must_use = "a stream is given to `McpServer::new`"]
#[derive_where(Debug)]
pub struct McpStream {
    #[derive_where(skip)]
    open: Arc<Open>,
}

impl McpStream {
    /// Creates a transport from a function that opens the stream, initially and after it broke. It returns the reading and the
    /// writing half.
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
                    Ok((ReadHalf(Box::pin(reading)), Writing(Box::pin(writing))))
                })
            }),
        }
    }

    pub(super) async fn open(&self) -> io::Result<(ReadHalf, Writing)> {
        (self.open)().await
    }
}

/// Frames one message per line. The reader limits the line length.
pub(super) fn framed<R, W>(reading: R, writing: W) -> LineTransport<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    LineTransport {
        reading: BufReader::new(reading),
        line: Vec::new(),
        writing: AsyncRwTransport::new_client(tokio::io::empty(), writing),
    }
}

/// A transport with one message per line.
pub(super) struct LineTransport<R, W: AsyncWrite> {
    reading: BufReader<R>,
    /// The beginning of a line whose reading was interrupted.
    line: Vec<u8>,
    writing: AsyncRwTransport<RoleClient, tokio::io::Empty, W>,
}

impl<R, W> Transport<RoleClient> for LineTransport<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(&mut self, message: TxJsonRpcMessage<RoleClient>) -> impl Future<Output = io::Result<()>> + Send + 'static {
        self.writing.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            self.reading.read_until(b'\n', &mut self.line).await.ok()?;
            let line = std::mem::take(&mut self.line);
            if line.last() != Some(&b'\n') {
                return None;
            }
            if let Some(message) = lenient_messages::read(&line) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.writing.close().await
    }
}
