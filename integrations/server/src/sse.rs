//! Server-sent events: a stream ends as every [long answer](crate::long_answer), and after `event: end`.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::http::header::{CACHE_CONTROL, HeaderName};
use axum::http::{HeaderValue, StatusCode};
use axum::response::sse::{Event as Encoded, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures::stream::{Stream, StreamExt as _, iter};
use positronic_core::record::Seq;
use serde::Serialize;

use crate::event_lines::redacted_line;
use crate::long_answer::{cut, over, until_cut};
use crate::problem::{Problem, ProblemType, Reporter};
use crate::redact::Redact;
use crate::routes::RequestContext;

/// How often a comment keeps an idle connection open.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// After how long a client connects again, at least, and the range over which this is spread.
const RETRY: Duration = Duration::from_secs(2);
const SPREAD_MS: u64 = 1000;

/// Returns the last event that the client has seen: `Last-Event-ID` of a reconnect, unless it is empty, else the parameter
/// `after`. `next` is the next event of the log: a client that has seen more has seen another log, such as before the store
/// was restored from a backup, and gets this one from its beginning.
pub(crate) fn last_seen(cx: &RequestContext, after: Option<u64>, next: Seq) -> Result<Option<Seq>, Problem> {
    let header = cx.parts.headers.get("last-event-id").filter(|value| !value.as_bytes().trim_ascii().is_empty());
    let seen = match header {
        None => after,
        Some(header) => {
            let number = header.to_str().ok().and_then(|text| text.trim().parse().ok());
            Some(number.ok_or_else(|| {
                Problem::new(ProblemType::InvalidHeader).detail("`Last-Event-ID` is not the number of an event")
            })?)
        }
    };
    Ok(seen.map(Seq).filter(|seen| *seen < next))
}

/// A server-sent event.
#[derive(Debug, Default)]
pub(crate) struct Event {
    id: Option<Seq>,
    name: &'static str,
    data: Data,
    is_redacted: bool,
}

/// The data of an event on one line.
#[derive(Debug)]
enum Data {
    Own(String),
    Shared(Arc<str>),
}

impl Default for Data {
    fn default() -> Self {
        Self::Own(String::new())
    }
}

impl Event {
    /// Creates an event of a type, which may be empty, with JSON as its data on one line.
    pub(crate) fn new(name: &'static str, data: String) -> Self {
        Self { name, data: Data::Own(data), ..Self::default() }
    }

    /// Creates an event as [`Event::new`] does, with data that other streams send as well.
    pub(crate) fn shared(name: &'static str, data: Arc<str>) -> Self {
        Self { name, data: Data::Shared(data), ..Self::default() }
    }

    /// Sets the position to which it moves the client.
    pub(crate) fn id(self, seq: Seq) -> Self {
        Self { id: Some(seq), ..self }
    }

    /// Says that the data is already redacted.
    pub(crate) fn redacted(self) -> Self {
        Self { is_redacted: true, ..self }
    }

    async fn encoded(self, redact: Option<Redact>) -> Encoded {
        let event = Encoded::default();
        let event = if self.name.is_empty() { event } else { event.event(self.name) };
        let event = match (self.data, redact.filter(|_| !self.is_redacted)) {
            (Data::Own(data), None) => event.data(data),
            (Data::Shared(data), None) => event.data(data),
            (Data::Own(data), Some(redact)) => event.data(redacted_line(Some(&redact), data).await),
            (Data::Shared(data), Some(redact)) => event.data(redacted_line(Some(&redact), data.to_string()).await),
        };
        match self.id {
            Some(seq) => event.id(seq.to_string()),
            None => event,
        }
    }
}

/// Answers with a stream of events.
pub(crate) fn stream(
    cx: &RequestContext,
    events: impl Stream<Item = Event> + Send + 'static,
) -> Result<Response, Problem> {
    let first = Encoded::default().retry(RETRY + spread());
    let events = iter([first]).chain(encoded(cx, events)).take_until(Box::pin(over(cx)?));
    Ok(sent(events.map(Ok)))
}

/// Answers with a stream of events to a client that does not connect again by itself. Some clients take the time after which it would
/// for an event without data. On shutdown the stream has a moment to end in the words of its protocol. One that is cut breaks off, so
/// that the client does not take a part for the whole.
pub(crate) fn stream_once(
    cx: &RequestContext,
    events: impl Stream<Item = Event> + Send + 'static,
) -> Result<Response, Problem> {
    let (cut, events) = (cut(cx)?, encoded(cx, events).map(Ok));
    Ok(sent(until_cut(cut, events)))
}

fn encoded(
    cx: &RequestContext,
    events: impl Stream<Item = Event> + Send + 'static,
) -> impl Stream<Item = Encoded> + Send + 'static {
    let redact = cx.app.settings.redact.clone();
    events.then(move |event| event.encoded(redact.clone()))
}

fn sent(events: impl Stream<Item = io::Result<Encoded>> + Send + 'static) -> Response {
    let mut response = Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response();
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}

/// Answers a client that has seen all events of a run that is over: it does not connect again.
pub(crate) fn no_content() -> Response {
    StatusCode::NO_CONTENT.into_response()
}

/// Creates an event with JSON as its data.
pub(crate) fn event(name: &'static str, data: &impl Serialize) -> Event {
    // Values of this crate and the core can be encoded.
    Event::new(name, serde_json::to_string(data).unwrap_or_default())
}

/// Creates the event after which the stream has no more.
pub(crate) fn end() -> Event {
    Event::new("end", "{}".to_owned())
}

/// Creates the event for a stream that failed; the client connects again.
pub(crate) fn failed(reporter: &Reporter, problem: &Problem) -> Event {
    event("problem", &reporter.document(problem))
}

fn spread() -> Duration {
    let mut bytes = [0; 2];
    _ = getrandom::fill(&mut bytes);
    Duration::from_millis(u64::from(u16::from_le_bytes(bytes)) % SPREAD_MS)
}
