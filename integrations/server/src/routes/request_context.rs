//! A request that has passed the checks of its route, and helpers for its answer.

use std::fmt;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::Query;
use axum::http::header::{CONTENT_TYPE, LOCATION};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use positronic_core::record::{Actor, RunSummary, Seq};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::app::App;
use crate::auth::{AnswerSlot, Caller, Limits};
use crate::problem::{Problem, ProblemType, Reporter};

/// What a segment of a path does not contain as it is.
const ENCODED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b':').remove(b'@');

/// A request that has passed the checks of its route: of its host, its caller's scope, its rate, its ownership and its body.
pub struct RequestContext {
    pub(crate) app: Arc<App>,
    pub(crate) parts: Parts,
    pub(crate) params: Vec<(String, String)>,
    pub(crate) body: Bytes,
    /// The decoded JSON of the body.
    pub(crate) value: Value,
    /// The media type of the answer that the client wants most.
    pub(crate) accepted: Option<&'static str>,
    pub(crate) reporter: Reporter,
    /// `None` on a public route.
    pub(crate) caller: Option<Caller>,
    /// The row of the run in the path.
    pub(crate) run: Option<RunSummary>,
    /// The place that a large answer takes. A stream keeps it until its large part is sent.
    pub(crate) place: Option<AnswerSlot>,
}

/// How a caller reaches the server, for the log.
#[derive(Clone, Copy)]
pub(crate) struct Channel(pub(crate) &'static str);

impl RequestContext {
    /// Returns the caller of a route that is not public.
    ///
    /// # Errors
    ///
    /// [`ProblemType::Unauthenticated`] on a public route.
    pub fn caller(&self) -> Result<&Caller, Problem> {
        self.caller.as_ref().ok_or_else(|| ProblemType::Unauthenticated.into())
    }

    /// Returns the row of the run in the path, read for this request.
    pub(crate) fn run(&self) -> Result<&RunSummary, Problem> {
        self.run.as_ref().ok_or_else(|| ProblemType::UnknownRun.into())
    }

    /// Waits for the place of a large answer, for a handler that waits before it answers: the wait itself takes no place.
    pub(crate) async fn answer_place(&self) -> Option<AnswerSlot> {
        let caller = Limits::key(self.caller.as_ref(), None)?;
        self.app.limits.answers.place(&caller).await
    }

    /// Returns a part of the path, by its name.
    ///
    /// # Errors
    ///
    /// [`ProblemType::NotFound`] if the path has no such part.
    pub fn param(&self, name: &str) -> Result<&str, Problem> {
        let found = self.params.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).ok_or_else(|| ProblemType::NotFound.into())
    }

    /// Returns a number of an event in the path.
    pub(crate) fn seq(&self, name: &str) -> Result<Seq, Problem> {
        let text = self.param(name)?;
        let number = text.parse().map_err(|_| {
            Problem::new(ProblemType::InvalidPath).detail(format!("`{text}` is not the number of an event"))
        })?;
        Ok(Seq(number))
    }

    /// Reads the query.
    ///
    /// # Errors
    ///
    /// [`ProblemType::InvalidQuery`] if it does not match the type.
    pub fn query<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        let Query(query) = Query::try_from_uri(&self.parts.uri)
            .map_err(|error| Problem::new(ProblemType::InvalidQuery).detail(detail_of(&error)))?;
        Ok(query)
    }

    /// Reads the JSON of the body.
    ///
    /// # Errors
    ///
    /// [`ProblemType::InvalidBody`] if it does not match the type.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        T::deserialize(&self.value).map_err(|error| {
            Problem::new(ProblemType::InvalidBody).detail(format!("the body does not match its schema: {error}"))
        })
    }

    /// Returns the caller as the actor of a signal, with the trace context of the request.
    pub(crate) fn actor(&self) -> Result<Actor, Problem> {
        let header = |name| self.parts.headers.get(name).and_then(|value| value.to_str().ok());
        let (subject, user) = (self.caller()?.subject(), self.caller()?.user_id());
        let channel = self.parts.extensions.get::<Channel>().map_or("http", |channel| channel.0);
        let mut actor = Actor::builder().by(subject).channel(channel).build();
        actor.user = user.filter(|user| *user != subject).map(Into::into);
        Ok(match header("traceparent") {
            Some(trace) => actor.traced(trace, header("tracestate")),
            None => actor,
        })
    }

    /// Returns whether the client wants this media type of those that the route has.
    pub(crate) fn accepts(&self, media_type: &str) -> bool {
        self.accepted == Some(media_type)
    }
}

impl fmt::Debug for RequestContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestContext")
            .field("uri", &self.parts.uri)
            .field("caller", &self.caller)
            .finish_non_exhaustive()
    }
}

fn detail_of(error: &dyn std::error::Error) -> String {
    // The outer error only repeats that the query is invalid.
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}

/// Answers with JSON.
pub(crate) fn json(value: &impl Serialize) -> Result<Response, Problem> {
    let text = serde_json::to_string(value).map_err(|error| Problem::new(ProblemType::Internal).detail(error))?;
    Ok(json_value(text))
}

/// Answers with encoded JSON.
pub(crate) fn json_value(text: String) -> Response {
    let mut response = text.into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Answers 201, with the place of the new object relative to the request's URL.
pub(crate) fn created(folder: &str, id: &str, value: &impl Serialize) -> Result<Response, Problem> {
    let mut response = json(value)?;
    *response.status_mut() = StatusCode::CREATED;
    if let Ok(location) = HeaderValue::try_from(format!("{folder}{}", utf8_percent_encode(id, ENCODED))) {
        response.headers_mut().insert(LOCATION, location);
    }
    Ok(response)
}
