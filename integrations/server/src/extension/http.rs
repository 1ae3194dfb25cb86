//! The request and the answer of a further route as HTTP: headers, JSON with a status, and the answer of another service.

use std::{fmt, io};

use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST};
use axum::http::{HeaderValue, Request, StatusCode};
use axum::response::Response;
use futures::future::BoxFuture;
use futures::stream::StreamExt as _;
use serde::Serialize;

use crate::auth::is_tls;
use crate::long_answer::{cut, over, until_cut};
use crate::problem::{Problem, ProblemType};
use crate::routes::{RequestContext, is_json, json};

impl RequestContext {
    /// Returns a header of the request, if it is a text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.parts.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// Returns the address at which the client reaches the server, such as `http://127.0.0.1:4747`: the public URL of the options, or
    /// what the request's headers say.
    #[must_use]
    pub fn address(&self) -> String {
        if let Some(url) = &self.app.settings.public_url {
            return url.as_str().trim_end_matches('/').to_owned();
        }
        let scheme = if is_tls(&self.app.settings.trusted_proxies, &self.parts) { "https" } else { "http" };
        let host = self.header(HOST.as_str()).unwrap_or("127.0.0.1");
        format!("{scheme}://{host}{}", self.app.prefix(&self.parts.uri, &self.parts.extensions))
    }

    /// Answers with JSON, which is redacted as every answer is, in the media type that the client wants most of those of the route that
    /// are JSON. An unknown status becomes 200.
    ///
    /// # Errors
    ///
    /// [`ProblemType::Internal`] if the value cannot be encoded.
    pub fn answer(&self, status: u16, value: &impl Serialize) -> Result<Response, Problem> {
        let mut response = json(value)?;
        *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
        if let Some(media_type) = self.accepted.filter(|media_type| is_json(media_type)) {
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
        }
        Ok(response)
    }

    /// Returns the request as another service in this process gets it: its method, its address, its headers and its body.
    #[must_use]
    pub fn request(&self) -> Request<Body> {
        // A large body was decoded and dropped.
        let body = if self.body.is_empty() && !self.value.is_null() {
            Bytes::from(self.value.to_string())
        } else {
            self.body.clone()
        };
        let mut request = Request::new(Body::from(body));
        *request.method_mut() = self.parts.method.clone();
        *request.uri_mut() = self.parts.uri.clone();
        *request.headers_mut() = self.parts.headers.clone();
        request.headers_mut().remove(CONTENT_LENGTH);
        request
    }

    /// Waits for work that lasts longer than a request usually does. It counts as one of the caller's open streams, and ends when the
    /// caller's right does or the server shuts down.
    ///
    /// # Errors
    ///
    /// [`ProblemType::TooManyStreams`] if the caller has too many, [`ProblemType::Stopping`] if the server shuts down before
    /// the work is done, [`ProblemType::Unauthenticated`] if the caller's right ends.
    pub async fn wait<T>(&self, work: impl Future<Output = T> + Send) -> Result<T, Problem> {
        let over = over(self)?;
        tokio::select! {
            done = work => Ok(done),
            () = over => Err(match self.app.settings.shutdown.has_begun() {
                true => ProblemType::Stopping.into(),
                false => ProblemType::Unauthenticated.into(),
            }),
        }
    }

    /// Takes one of the streams that the caller may have open, for the long answer of another service. Take it before the service
    /// begins its work.
    ///
    /// # Errors
    ///
    /// [`ProblemType::TooManyStreams`].
    pub fn stream_place(&self) -> Result<StreamPlace, Problem> {
        Ok(StreamPlace(Box::pin(cut(self)?)))
    }
}

/// One of the streams that a caller may have open.
pub struct StreamPlace(BoxFuture<'static, ()>);

impl StreamPlace {
    /// Answers with the long answer of another service, which breaks off when the caller's right ends or the server shuts down. Its
    /// body is sent as it is: the service redacts what it shows.
    #[must_use]
    pub fn relay(self, response: Response) -> Response {
        let (parts, body) = response.into_parts();
        let chunks = body.into_data_stream().map(|chunk| chunk.map_err(io::Error::other));
        Response::from_parts(parts, Body::from_stream(until_cut(self.0, chunks)))
    }
}

impl fmt::Debug for StreamPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamPlace").finish_non_exhaustive()
    }
}
