//! The answer of a further route: server-sent events.

use axum::http::header::HeaderName;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use futures::stream::{Stream, StreamExt as _};
use serde::Serialize;

use crate::problem::Problem;
use crate::routes::RequestContext;
use crate::sse;

/// One server-sent event: data without an id, and without a type but those of [`Frame::typed`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    name: &'static str,
    data: String,
    is_json: bool,
}

impl Frame {
    /// Creates an event with JSON, which is redacted as every answer is.
    pub fn json(value: &impl Serialize) -> Self {
        Self::typed("", value)
    }

    /// Creates an event of a type, such as `error`, with JSON as [`Frame::json`] does.
    pub fn typed(name: &'static str, value: &impl Serialize) -> Self {
        // Values of a protocol can be encoded.
        Self { name, data: serde_json::to_string(value).unwrap_or_default(), is_json: true }
    }

    /// Creates an event with a fixed word of the protocol, such as `[DONE]`.
    #[must_use]
    pub fn word(word: &'static str) -> Self {
        Self { name: "", data: word.to_owned(), is_json: false }
    }

    fn event(self) -> sse::Event {
        let event = sse::Event::new(self.name, self.data);
        if self.is_json { event } else { event.redacted() }
    }
}

impl RequestContext {
    /// Answers with a stream of server-sent events. It counts as one of the caller's open streams, and ends early when the
    /// caller's right does or the server shuts down.
    ///
    /// # Errors
    ///
    /// [`ProblemType::TooManyStreams`](crate::ProblemType::TooManyStreams).
    pub fn stream(&self, frames: impl Stream<Item = Frame> + Send + 'static) -> Result<Response, Problem> {
        sse::stream_once(self, frames.map(Frame::event))
    }

    /// Answers as [`RequestContext::stream`] does, with a header of the protocol.
    ///
    /// # Errors
    ///
    /// As those of [`RequestContext::stream`].
    pub fn stream_with_header(
        &self,
        (name, value): (&'static str, &'static str),
        frames: impl Stream<Item = Frame> + Send + 'static,
    ) -> Result<Response, Problem> {
        let mut response = self.stream(frames)?;
        response.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        Ok(response)
    }

    /// Answers without a body (204).
    #[must_use]
    pub fn no_content(&self) -> Response {
        StatusCode::NO_CONTENT.into_response()
    }
}
