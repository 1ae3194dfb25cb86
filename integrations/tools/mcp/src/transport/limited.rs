//! Byte stream with a limit on its line length.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};

/// Reports that a line was too long.
#[derive(Debug, Clone)]
pub(crate) struct Overflow {
    seen: Arc<AtomicBool>,
    limit: usize,
}

impl Overflow {
    pub(super) fn sentence(&self) -> Option<String> {
        let limit = self.limit;
        let seen = self.seen.load(Ordering::Relaxed);
        seen.then(|| format!("it sent a message of more than {limit} bytes, so the connection was closed"))
    }
}

/// Reads until a line exceeds the limit. Skipping the line instead would leave its call waiting forever.
pub(super) struct LineLimit<R> {
    inner: R,
    line: usize,
    overflow: Overflow,
}

impl<R> LineLimit<R> {
    pub(super) fn new(inner: R, limit: usize) -> (Self, Overflow) {
        let overflow = Overflow { seen: Arc::default(), limit };
        (Self { inner, line: 0, overflow: overflow.clone() }, overflow)
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for LineLimit<R> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        if self.overflow.seen.load(Ordering::Relaxed) {
            return Poll::Ready(Ok(()));
        }
        let before = into.filled().len();
        let read = Pin::new(&mut self.inner).poll_read(cx, into);
        let mut lines = into.filled().get(before..).unwrap_or_default().split(|byte| *byte == b'\n');
        // The first piece continues the previous line; each other one begins a line.
        let mut line = self.line.saturating_add(lines.next().map_or(0, <[u8]>::len));
        let mut longest = line;
        for piece in lines {
            line = piece.len();
            longest = longest.max(line);
        }
        self.line = line;
        if longest > self.overflow.limit {
            self.overflow.seen.store(true, Ordering::Relaxed);
            into.set_filled(before);
        }
        read
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    #[tokio::test]
    async fn lines_up_to_the_limit_pass_and_a_longer_one_ends_the_stream() {
        let fits = "0123456789\n\n0123456789\n";
        for (text, whole) in [(fits.to_owned(), true), (format!("{fits}0123456789a"), false)] {
            // Pieces of any size must not matter.
            for size in [1, 3, 64] {
                let (near, far) = tokio::io::duplex(size);
                let (mut limited, overflow) = LineLimit::new(far, 10);
                let sent = text.clone();
                tokio::spawn(async move {
                    let mut near = near;
                    _ = tokio::io::AsyncWriteExt::write_all(&mut near, sent.as_bytes()).await;
                });
                let mut read = String::new();
                limited.read_to_string(&mut read).await.unwrap();

                assert_eq!(overflow.sentence().is_none(), whole, "{size}");
                assert!(text.starts_with(&read) && read.len() <= fits.len() + 10, "{read}");
            }
        }
    }
}
