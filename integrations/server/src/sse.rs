//! Long answers, and server-sent events: they end on shutdown, when the caller's right expires or is revoked, and after
//! `event: end`. Each takes one of the streams that a caller may have open.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::{CACHE_CONTROL, HeaderName};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::sse::{Event as Encoded, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures::stream::{Stream, StreamExt as _, once, unfold};
use positronic_core::record::Seq;
use positronic_core::store::StoreError;
use serde::Serialize;

use crate::app::App;
use crate::auth::Caller;
use crate::problem::{Problem, ProblemType, Reporter};
use crate::redact::{REDACTED, Redact, redacted_answer};
use crate::routes::RequestContext;

/// How often a comment keeps an idle connection open.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How often the caller of an open stream is authenticated again.
const CHECK: Duration = Duration::from_secs(15);
/// After how long a client connects again, at least, and the range over which this is spread.
const RETRY: Duration = Duration::from_secs(2);
const SPREAD_MS: u64 = 1000;

/// Returns the last event that the client has seen: `Last-Event-ID` of a reconnect, else the parameter `after`.
pub(crate) fn last_seen(cx: &RequestContext, after: Option<u64>) -> Result<Option<Seq>, Problem> {
    let Some(header) = cx.parts.headers.get("last-event-id") else { return Ok(after.map(Seq)) };
    let number = header.to_str().ok().and_then(|text| text.parse().ok());
    number
        .map(|number| Some(Seq(number)))
        .ok_or_else(|| Problem::new(ProblemType::InvalidHeader).detail("`Last-Event-ID` is not the number of an event"))
}

/// A server-sent event.
#[derive(Debug, Default)]
pub(crate) struct Event {
    id: Option<Seq>,
    name: &'static str,
    data: String,
    is_redacted: bool,
}

impl Event {
    /// Creates an event of a type, with JSON as its data on one line.
    pub(crate) fn new(name: &'static str, data: String) -> Self {
        Self { name, data, ..Self::default() }
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
        let data = match redact.filter(|_| !self.is_redacted) {
            Some(redact) => redacted_answer(&redact, self.data).await.unwrap_or_else(|_| format!("{REDACTED:?}")),
            None => self.data,
        };
        let event = Encoded::default().event(self.name).data(data);
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
    let (over, redact) = (over(cx)?, cx.app.options.redact.clone());
    let first = once(std::future::ready(Encoded::default().retry(RETRY + spread())));
    let events = events.then(move |event| event.encoded(redact.clone()));
    let events = first.chain(events).take_until(Box::pin(over)).map(Ok::<_, Infallible>);
    let mut response = Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response();
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    Ok(response)
}

/// Answers with a long body of another media type. If the caller's right ends before the body does, the connection breaks off,
/// so that the client does not take a part for the whole.
pub(crate) fn body(
    cx: &RequestContext,
    chunks: impl Stream<Item = Result<Bytes, StoreError>> + Send + 'static,
) -> Result<Body, Problem> {
    let state = (Box::pin(over(cx)?), Box::pin(chunks), cx.reporter.clone(), false);
    Ok(Body::from_stream(unfold(state, |(mut over, mut chunks, reporter, has_failed)| async move {
        if has_failed {
            return None;
        }
        let next = tokio::select! {
            () = &mut over => Some(Err("the right to read has ended")),
            next = chunks.next() => next.map(|chunk| chunk.map_err(|error| {
                reporter.document(&error.into());
                "the store has failed"
            })),
        };
        let next = next?.map_err(std::io::Error::other);
        let has_failed = next.is_err();
        Some((next, (over, chunks, reporter, has_failed)))
    })))
}

/// Counts a long answer, and waits until it must end.
fn over(cx: &RequestContext) -> Result<impl Future<Output = ()> + Send + 'static + use<>, Problem> {
    let caller = cx.caller()?;
    let permit = cx.app.limits.stream(caller)?;
    let valid = caller.expiry().map(|expiry| expiry.since(cx.app.now()));
    let shutdown = cx.app.options.shutdown.clone();
    let revoked = revoked(Arc::clone(&cx.app), cx.parts.clone(), caller.clone());
    Ok(async move {
        let expired = async {
            match valid {
                Some(valid) => tokio::time::sleep(valid).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = expired => {}
            () = revoked => {}
            () = shutdown.begun() => {}
        }
        drop(permit);
    })
}

/// Waits until the request would no longer have the same caller with the same rights: its token was revoked, or its session
/// ended.
async fn revoked(app: Arc<App>, parts: Parts, caller: Caller) {
    loop {
        tokio::time::sleep(CHECK).await;
        // A store that fails now revokes nothing.
        if let Ok(found) = app.authenticate.authenticate(&parts).await
            && found.as_ref() != Some(&caller)
        {
            return;
        }
    }
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
