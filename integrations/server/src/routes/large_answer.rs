//! An answer that takes one of its caller's places until it is sent.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};

use crate::auth::AnswerSlot;

/// From how many bytes on an answer keeps its place. A smaller one does not need much memory while the client reads it.
const LARGE: u64 = 1 << 20;
/// How many bytes hyper gets at once. It drops the body, with the place, once it has got the last of them.
const SLICE: usize = 64 << 10;

/// A body of a known size with the place that it takes.
struct Placed {
    body: Body,
    /// The bytes of the body's last frame that hyper has not got.
    rest: Bytes,
    _place: AnswerSlot,
}

/// Keeps the place of a large answer until it is sent. That of a stream is not kept here, since its length is not known.
pub(super) fn placed(mut response: Response) -> Response {
    let is_large = response.body().size_hint().exact().is_some_and(|size| size > LARGE);
    match response.extensions_mut().remove::<AnswerSlot>() {
        Some(place) if is_large => response.map(|body| Body::new(Placed { body, rest: Bytes::new(), _place: place })),
        _ => response,
    }
}

impl HttpBody for Placed {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        if self.rest.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_frame(cx)).map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(data))) => self.rest = data,
                Some(Ok(Err(trailers))) => return Poll::Ready(Some(Ok(trailers))),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
        let length = self.rest.len().min(SLICE);
        let slice = self.rest.split_to(length);
        // A slice itself would keep all bytes of the answer in memory.
        Poll::Ready(Some(Ok(Frame::data(Bytes::copy_from_slice(&slice)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = u64::try_from(self.rest.len()).unwrap_or(u64::MAX);
        SizeHint::with_exact(self.body.size_hint().lower().saturating_add(rest))
    }
}
