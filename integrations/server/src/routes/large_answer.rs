//! An answer that takes one of its caller's places until it is sent.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};

use crate::auth::Place;

/// From how many bytes on an answer keeps its place. A smaller one does not need much memory while the client reads it.
const LARGE: u64 = 1 << 20;

/// A body with the place that it takes.
struct Placed {
    body: Body,
    _place: Place,
}

/// Keeps the place of a large answer until it is sent. That of a stream is not kept here, since its length is not known.
pub(super) fn placed(response: Response, place: Option<Place>) -> Response {
    let is_large = response.body().size_hint().exact().is_some_and(|size| size > LARGE);
    match place {
        Some(place) if is_large => response.map(|body| Body::new(Placed { body, _place: place })),
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
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
