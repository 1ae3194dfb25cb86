//! HTTP client that limits how fast event streams are reopened.
//!
//! A server sets the pause before its event stream is reopened with `retry:`. A client that obeys any value would send
//! hundreds of requests per second to a server with `retry: 0` that closes each stream.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures::stream::{BoxStream, StreamExt as _};
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::Sse;

use super::lenient_messages;

/// The range of accepted pauses, in milliseconds: from the default pause without `retry:` to the default timeout of a call.
const SHORTEST: u64 = 1_000;
const LONGEST: u64 = 60_000;

/// The number of consecutive streams without messages before pauses grow. Servers that answer long calls by polling need some.
const PATIENT: u32 = 8;

/// The maximum additional pause, in seconds.
const ADDED: u64 = 16;

/// An HTTP client that paces event streams. Clones share the pace.
#[derive(Debug, Clone)]
pub(super) struct Paced {
    client: reqwest::Client,
    /// The number of consecutive streams without messages.
    empty: Arc<AtomicU32>,
}

type Events = BoxStream<'static, Result<Sse, SseError>>;
type HttpResult<T> = Result<T, StreamableHttpError<reqwest::Error>>;
type Headers = HashMap<HeaderName, HeaderValue>;

impl Paced {
    pub(super) fn new(client: reqwest::Client) -> Self {
        Self { client, empty: Arc::default() }
    }

    fn paced(&self, events: Events) -> Events {
        let empty = Arc::clone(&self.empty);
        let pace = move |mut event: Sse| {
            event.retry = event.retry.map(|retry| retry.clamp(SHORTEST, LONGEST));
            if event.data.as_ref().is_some_and(|data| !data.is_empty()) {
                empty.store(0, Ordering::Relaxed);
            }
            event.data = event.data.map(repaired);
            event
        };
        events.map(move |event| event.map(&pace)).boxed()
    }

    fn answer(&self, response: StreamableHttpPostResponse) -> StreamableHttpPostResponse {
        match response {
            StreamableHttpPostResponse::Sse(events, session) => {
                StreamableHttpPostResponse::Sse(self.paced(events), session)
            }
            other => other,
        }
    }
}

/// Rewrites a message that the transport could not read, and would drop, and one whose numbers it would round.
fn repaired(data: String) -> String {
    if serde_json::from_str::<ServerJsonRpcMessage>(&data).is_ok()
        && matches!(lenient_messages::exact(&data), Cow::Borrowed(_))
    {
        return data;
    }
    match lenient_messages::read(data.as_bytes()).map(|message| serde_json::to_string(&message)) {
        Some(Ok(message)) => message,
        _ => data,
    }
}

/// Returns the additional pause before the next stream.
fn added(empty: u32) -> Duration {
    let Some(grown) = empty.checked_sub(PATIENT) else { return Duration::ZERO };
    Duration::from_secs(1_u64.checked_shl(grown).unwrap_or(ADDED).clamp(1, ADDED))
}

impl StreamableHttpClient for Paced {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        auth: Option<String>,
        headers: Headers,
    ) -> HttpResult<StreamableHttpPostResponse> {
        Ok(self.answer(self.client.post_message(uri, message, session, auth, headers).await?))
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        auth: Option<String>,
        headers: Headers,
        size: usize,
    ) -> HttpResult<StreamableHttpPostResponse> {
        let sent = self.client.post_message_with_max_sse_event_size(uri, message, session, auth, headers, size);
        Ok(self.answer(sent.await?))
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        auth: Option<String>,
        headers: Headers,
    ) -> HttpResult<()> {
        self.client.delete_session(uri, session, auth, headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        auth: Option<String>,
        headers: Headers,
    ) -> HttpResult<Events> {
        self.get_stream_with_max_sse_event_size(uri, session, last, auth, headers, usize::MAX).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        auth: Option<String>,
        headers: Headers,
        size: usize,
    ) -> HttpResult<Events> {
        let added = added(self.empty.fetch_add(1, Ordering::Relaxed));
        if !added.is_zero() {
            tokio::time::sleep(added).await;
        }
        let events = self.client.get_stream_with_max_sse_event_size(uri, session, last, auth, headers, size);
        Ok(self.paced(events.await?))
    }
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;

    use super::*;

    #[test]
    fn retry_is_clamped() {
        let event = |retry| Ok(Sse { event: None, data: None, id: None, retry });
        let reported = [Some(0), Some(999), Some(5_000), Some(u64::MAX), None].map(event);

        let paced = Paced::new(reqwest::Client::new()).paced(futures::stream::iter(reported).boxed());

        let retries: Vec<_> = block_on(paced.map(|event| event.unwrap().retry).collect());
        assert_eq!(retries, [Some(1_000), Some(1_000), Some(5_000), Some(60_000), None]);
    }

    #[test]
    fn pauses_grow_without_messages_and_a_message_resets_them() {
        let seconds: Vec<_> = (0..14).map(|empty| added(empty).as_secs()).collect();
        assert_eq!(seconds, [0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 16]);
        assert_eq!(added(u32::MAX).as_secs(), 16);

        let client = Paced::new(reqwest::Client::new());
        client.empty.store(12, Ordering::Relaxed);
        let message = Sse { event: None, data: Some("{}".to_owned()), id: None, retry: None };
        block_on(client.paced(futures::stream::iter([Ok(message)]).boxed()).collect::<Vec<_>>());
        assert_eq!(client.empty.load(Ordering::Relaxed), 0);
    }
}
