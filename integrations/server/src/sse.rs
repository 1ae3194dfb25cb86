//! Server-sent events: streams that end on shutdown, when the caller's right expires or is revoked, and after `event: end`.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::http::header::{CACHE_CONTROL, HeaderName};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
pub(crate) use axum::response::sse::Event;
use axum::response::sse::{KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures::stream::{Stream, StreamExt as _, once};
use positronic_core::record::Seq;
use serde::Serialize;

use crate::app::App;
use crate::auth::Caller;
use crate::problem::{Problem, ProblemType};
use crate::routes::Call;

/// How often a comment keeps an idle connection open.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How often the caller of an open stream is authenticated again.
const CHECK: Duration = Duration::from_secs(15);
/// After how long a client connects again, at least, and the range over which this is spread.
const RETRY: Duration = Duration::from_secs(2);
const SPREAD_MS: u64 = 1000;

/// Returns the last event that the client has seen: `Last-Event-ID` of a reconnect, else the parameter `after`.
pub(crate) fn last_seen(call: &Call, after: Option<u64>) -> Result<Option<Seq>, Problem> {
    let Some(header) = call.parts.headers.get("last-event-id") else { return Ok(after.map(Seq)) };
    let number = header.to_str().ok().and_then(|text| text.parse().ok());
    number
        .map(|number| Some(Seq(number)))
        .ok_or_else(|| Problem::new(ProblemType::InvalidQuery).detail("`Last-Event-ID` is not the number of an event"))
}

/// Answers with a stream of events.
pub(crate) fn stream(call: &Call, events: impl Stream<Item = Event> + Send + 'static) -> Result<Response, Problem> {
    let caller = call.caller()?;
    let permit = call.app.limits.stream(caller)?;
    let valid = caller.expiry().map(|expiry| expiry.since(call.app.now()));
    let shutdown = call.app.options.shutdown.clone();
    let revoked = revoked(Arc::clone(&call.app), call.parts.clone(), caller.clone());
    let over = async move {
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
    };
    let first = once(std::future::ready(Event::default().retry(RETRY + spread())));
    let events = first.chain(events).take_until(Box::pin(over)).map(Ok::<_, Infallible>);
    let mut response = Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response();
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    Ok(response)
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
pub(crate) fn event(name: &str, data: &impl Serialize) -> Event {
    let event = Event::default().event(name);
    // Values of this crate and the core can be encoded, on one line.
    match serde_json::to_string(data) {
        Ok(data) => event.data(data),
        Err(_) => event,
    }
}

/// Creates the event after which the stream has no more.
pub(crate) fn end() -> Event {
    Event::default().event("end").data("{}")
}

/// Creates the event for a stream that failed; the client connects again.
pub(crate) fn failed(problem: &Problem) -> Event {
    event("problem", &problem.document())
}

fn spread() -> Duration {
    let mut bytes = [0; 2];
    _ = getrandom::fill(&mut bytes);
    Duration::from_millis(u64::from(u16::from_le_bytes(bytes)) % SPREAD_MS)
}
