//! Transport: sends a request once and feeds the answer to an assembler.
//!
//! An answer with a failure status becomes a [`ModelError`] with information from its headers; an answer that is not streamed
//! is read completely. A failure during a stream may leave a broken connection in the pool, so the pool is replaced.

use std::borrow::Cow;
use std::sync::OnceLock;
use std::time::Duration;

use futures::FutureExt as _;
use positronic_core::model::DeltaSink;
use positronic_core::record::{
    FileKind, FileLocation, ModelError, ModelErrorKind, ModelRequest, ModelResponse, Recipient, ResponseMetadata,
    RoutingStep, Usage,
};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use super::assemble::{Assemble, Progress};
use super::chunk_repair::Repaired;
use super::clients::{Clients, read_proxy};
use super::endpoint::Endpoint;
use super::fault::{http_error, is_web_page, named_error, shorten};
use super::files::{Reader, readable};
use super::lenient::document;
use super::options::HttpOptions;
use super::response_body::{Events, LARGEST_ANSWER, StreamEvent, read};
use super::retry_after_header::retry_after;
use super::secrets::{Secrets, is_secret_header};
use super::sender::SendError;
use super::stopwatch::{Stopwatch, unix_seconds};
use super::unreachable::explain;

/// How long to wait for more chunks after the model has finished.
const AFTER_THE_END: Duration = Duration::from_secs(2);

/// How long to wait for the end of the body after `[DONE]`; a connection can be reused only when its body was read to the end.
const AFTER_DONE: Duration = Duration::from_millis(100);

/// The maximum size in bytes of a failure's body.
const LARGEST_FAILURE: usize = 64 * 1024;

/// Sends requests to one server, each once.
#[derive(Debug)]
pub struct Transport {
    options: HttpOptions,
    headers: HeaderMap,
    clients: Clients,
}

impl Transport {
    /// Creates a transport. It connects with the first request.
    ///
    /// # Errors
    ///
    /// [`Auth`](ModelErrorKind::Auth) for a credential that is not a valid header value, and
    /// [`BadRequest`](ModelErrorKind::BadRequest) for an invalid header or proxy.
    pub fn new(options: HttpOptions) -> Result<Self, ModelError> {
        let headers = headers(&options)?;
        options.proxy.as_deref().map(read_proxy).transpose()?;
        Ok(Self { options, headers, clients: Clients::default() })
    }

    /// Returns the names of provider and model, as `provider/model`.
    #[must_use]
    pub fn name(&self) -> String {
        // Concatenation, since every request's event has the name, and formatting takes three times as long.
        [&self.options.provider, "/", &self.options.model].concat()
    }

    /// Returns the model that a request goes to.
    #[must_use]
    pub fn model_of<'a>(&'a self, request: &'a ModelRequest) -> &'a str {
        request.settings.model.as_ref().unwrap_or(&self.options.model)
    }

    /// Returns the model that a request goes to, with its provider and the server of an endpoint.
    #[must_use]
    pub fn recipient<'a>(&'a self, request: &'a ModelRequest, endpoint: &'a Endpoint) -> Recipient<'a> {
        Recipient { provider: &self.options.provider, model: self.model_of(request), server: endpoint.server() }
    }

    /// Returns a request with only those files that a model can read. `takes` returns whether the API takes a file, by its
    /// kind, its media type and its location.
    ///
    /// A text file that is stored always goes, as text. A file of a tool's result that the model cannot read is left out,
    /// since the text of the result has a line about it.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](ModelErrorKind::Unsupported) for a file of a user's message that the model cannot read, with what to
    /// do.
    pub fn readable<'a>(
        &self,
        model: &str,
        request: &'a ModelRequest,
        takes: impl Fn(FileKind, &str, FileLocation<'_>) -> bool,
    ) -> Result<Cow<'a, ModelRequest>, ModelError> {
        let HttpOptions { provider, capabilities, .. } = &self.options;
        readable(request, Reader { provider, model, capabilities }, takes)
    }

    /// Sends the body once to an endpoint of the server and assembles the answer. The metadata of the answer names the
    /// provider and the model.
    ///
    /// # Errors
    ///
    /// The failure of the connection, of a timeout, of an answer with a failure status, or of the assembler. It shows no
    /// credentials.
    pub fn send<A: Assemble>(
        &self,
        endpoint: &Endpoint,
        request: &ModelRequest,
        body: String,
        assembler: A,
        deltas: &dyn DeltaSink,
    ) -> impl Future<Output = Result<ModelResponse, ModelError>> {
        // An argument of an async function would take its room twice.
        let mut assembler = Repaired::new(assembler);
        async move {
            let request_id = OnceLock::new();
            let receiving = self.receive(endpoint, body, &mut assembler, deltas, &request_id);
            let received = within(endpoint, self.options.timeouts.total, "the full answer", receiving).await;
            let asked = self.model_of(request);
            let complete = |mut metadata: ResponseMetadata| {
                metadata.provider.clone_from(&self.options.provider);
                asked.clone_into(&mut metadata.model);
                metadata.server = Some(endpoint.server().to_owned());
                metadata.answered_by = metadata.answered_by.filter(|answering| answering != asked);
                metadata
            };
            let reported = assembler.metadata().clone();
            match received.and_then(|first_chunk| Ok((first_chunk, assembler.finish()?))) {
                Ok((first_chunk, response)) => {
                    let metadata = ResponseMetadata { first_chunk, ..complete(response.metadata) };
                    Ok(ModelResponse { metadata, ..response })
                }
                Err(error) => {
                    let secrets = self.secrets(endpoint);
                    let error = secrets.hide_in(error);
                    // An answer with a failure status was read to its end.
                    if error.status.is_none() {
                        self.clients.renew(&self.options, endpoint);
                    }
                    let seen = || request_id.get().map(|id| secrets.hide(id));
                    let mut error = ModelError { request_id: error.request_id.or_else(seen), ..error };
                    if reported.usage != Usage::default() {
                        error.via.push(RoutingStep::Broken { metadata: Box::new(complete(reported)) });
                    }
                    Err(error)
                }
            }
        }
    }

    /// Sends the body once to an endpoint of the server and returns the answer, a JSON object that is not streamed: a count of
    /// tokens, an uploaded file.
    ///
    /// # Errors
    ///
    /// See [`Transport::send`], and [`Malformed`](ModelErrorKind::Malformed) if the answer is not a JSON object.
    pub async fn post(&self, endpoint: &Endpoint, body: String) -> Result<Value, ModelError> {
        let request_id = OnceLock::new();
        let exchange = async {
            let mut response = self.open(endpoint, body, &request_id).await?;
            let (answer, end) = read(&mut response, LARGEST_ANSWER).await;
            end.and_then(|()| document(&answer))
        };
        let answer = within(endpoint, self.options.timeouts.total, "the full answer", exchange).await;
        answer.map_err(|error| self.secrets(endpoint).hide_in(error))
    }

    /// Feeds the answer to an assembler and returns the time to its first chunk.
    async fn receive<A: Assemble>(
        &self,
        endpoint: &Endpoint,
        body: String,
        assembler: &mut Repaired<A>,
        deltas: &dyn DeltaSink,
        request_id: &OnceLock<String>,
    ) -> Result<Option<Duration>, ModelError> {
        let timeouts = self.options.timeouts;
        let watch = Stopwatch::start();
        let first_limit = if self.options.stream { timeouts.first_chunk } else { timeouts.total };
        let opening = async {
            let mut events = Events::new(self.open(endpoint, body, request_id).await?);
            let first = events.next().await?;
            Ok((events, first))
        };
        let (mut events, mut next) = within(endpoint, first_limit, "the first chunk", opening).await?;
        let first_chunk = next.is_some().then(|| watch.elapsed());
        while let Some(event) = next {
            let generation = assembler.generation();
            let pieces = match event {
                StreamEvent::Chunk(chunk) => assembler.feed(&chunk)?,
                StreamEvent::Complete(answer) => assembler.feed_complete(&answer)?,
                // The stream may have ended within a document.
                StreamEvent::CutOff(chunk) => match assembler.feed(&chunk) {
                    Err(error) if error.kind == ModelErrorKind::Malformed => Vec::new(),
                    fed => fed?,
                },
                StreamEvent::Failure(error) if assembler.progress() == Progress::Open => {
                    return Err(named_error(&error));
                }
                StreamEvent::Failure(_) => Vec::new(),
                StreamEvent::Text(page) if is_web_page(&page) => {
                    let sentence = format!("{endpoint} answered with a web page; {}", self.advice_on_address(endpoint));
                    return Err(ModelError::new(ModelErrorKind::NotFound, sentence));
                }
                StreamEvent::Text(text) => assembler.feed_complete(&text)?,
                StreamEvent::Done => {
                    assembler.done();
                    _ = tokio::time::timeout(AFTER_DONE, events.drain()).await;
                    break;
                }
            };
            if assembler.generation() != generation {
                deltas.restart();
            }
            pieces.into_iter().for_each(|piece| deltas.piece(piece));
            // Some servers leave the connection open.
            let has_ended = assembler.progress() == Progress::Ended;
            let limit = if has_ended { timeouts.idle.min(AFTER_THE_END) } else { timeouts.idle };
            next = match within(endpoint, limit, "the next chunk", events.next()).await {
                Ok(next) => next,
                Err(_) if assembler.progress() != Progress::Open => None,
                Err(error) => return Err(error),
            };
        }
        Ok(first_chunk)
    }

    async fn open(
        &self,
        endpoint: &Endpoint,
        body: String,
        request_id: &OnceLock<String>,
    ) -> Result<reqwest::Response, ModelError> {
        let http = self.clients.client(&self.options, endpoint)?;
        let sender = self.options.sender.as_ref();
        let sent = match self.request(&http, endpoint, body) {
            Ok(request) => match sender {
                None => http.execute(request).await.map_err(SendError::Http),
                Some(sender) => sender.send(request).await,
            },
            Err(error) => Err(SendError::Http(error)),
        };
        let response = match sent {
            Ok(response) => response,
            Err(SendError::Model(error)) => return Err(self.with_address(endpoint, error)),
            Err(SendError::Http(error)) => {
                // Only the transport's own client reaches the server as its requests do.
                let proxy = self.options.proxy.as_deref().filter(|_| sender.is_none());
                let probe = Some(&http).filter(|_| sender.is_none() && proxy.is_none());
                return Err(explain(error, endpoint, proxy, probe).await);
            }
        };
        let id = request_id_of(response.headers());
        if let Some(id) = &id {
            request_id.get_or_init(|| id.clone());
        }
        if response.status().is_success() {
            return Ok(response);
        }
        Err(Box::pin(self.failure(endpoint, response, id)).await)
    }

    /// Reads the answer with a failure status.
    async fn failure(&self, endpoint: &Endpoint, mut response: reqwest::Response, id: Option<String>) -> ModelError {
        let status = response.status();
        let headers = response.headers().clone();
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        if status.is_redirection() {
            return redirected(endpoint, status.as_u16(), header("location"));
        }
        // A partial body is still useful.
        let (body, _) = read(&mut response, LARGEST_FAILURE).await;
        let error = http_error(status.as_u16(), &body, retry_after(header, unix_seconds), id);
        self.with_address(endpoint, error)
    }

    fn request(&self, http: &reqwest::Client, endpoint: &Endpoint, body: String) -> reqwest::Result<reqwest::Request> {
        let mut request = http.post(endpoint.url().clone()).body(body).build()?;
        self.set_headers(endpoint, request.headers_mut());
        Ok(request)
    }

    /// Adds the headers of a request to those that its URL has led to. Its builder would copy each of them twice.
    fn set_headers(&self, endpoint: &Endpoint, of_request: &mut HeaderMap) {
        if of_request.is_empty() {
            of_request.clone_from(&self.headers);
        } else {
            of_request.extend(self.headers.clone());
        }
        if !endpoint.headers().is_empty() {
            of_request.extend(endpoint.headers().clone());
        }
    }

    /// Adds the URL and advice to an error that a wrong URL may explain.
    fn with_address(&self, endpoint: &Endpoint, error: ModelError) -> ModelError {
        let names_model = error.message.to_ascii_lowercase().contains("model");
        let headers = [&self.headers, endpoint.headers()];
        let tls = error.status == Some(400) && error.message.to_ascii_lowercase().contains("https");
        let advice = match error.status {
            Some(404 | 405) if !names_model => self.advice_on_address(endpoint),
            Some(400) if tls && !endpoint.is_tls() => "write the base URL as https://…".to_owned(),
            Some(401 | 403)
                if !headers.into_iter().flat_map(HeaderMap::keys).any(|name| is_secret_header(name.as_str())) =>
            {
                "no API key was sent".to_owned()
            }
            Some(500..) => return ModelError { message: format!("{} ({endpoint})", error.message), ..error },
            _ => return error,
        };
        let kind = if tls { ModelErrorKind::NotFound } else { error.kind };
        let message = format!("{} ({endpoint}; {advice})", error.message);
        ModelError { kind, message, ..error }
    }

    fn secrets<'a>(&'a self, endpoint: &'a Endpoint) -> Secrets<'a> {
        Secrets::of([&self.headers, endpoint.headers()])
    }

    fn advice_on_address(&self, endpoint: &Endpoint) -> String {
        if let Some(advice) = endpoint.advice() {
            return advice.to_owned();
        }
        let version = &self.options.version;
        let usual = endpoint.origin(false);
        format!("check the path of the base URL, which usually ends with the API version: {usual}/{version}")
    }
}

/// The headers in which servers send the id of a request.
static REQUEST_IDS: [HeaderName; 3] = [
    HeaderName::from_static("x-request-id"),
    HeaderName::from_static("request-id"),
    HeaderName::from_static("apim-request-id"),
];

/// Returns the id that a server gave to a request.
fn request_id_of(headers: &HeaderMap) -> Option<String> {
    let id = |name| headers.get(name)?.to_str().ok().map(str::to_owned);
    REQUEST_IDS.iter().find_map(id)
}

/// Limits the duration of a future. It is not an `async fn`, which would store its argument twice.
fn within<T>(
    endpoint: &Endpoint,
    limit: Duration,
    what: &str,
    work: impl Future<Output = Result<T, ModelError>>,
) -> impl Future<Output = Result<T, ModelError>> {
    tokio::time::timeout(limit, work).map(move |outcome| {
        outcome.unwrap_or_else(|_| {
            let sentence = format!("{endpoint}: timed out after {limit:?} waiting for {what}");
            Err(ModelError::new(ModelErrorKind::Timeout, sentence))
        })
    })
}

fn redirected(endpoint: &Endpoint, status: u16, location: Option<&str>) -> ModelError {
    let to = location.map_or_else(String::new, |to| format!(" to {}", shorten(to)));
    let sentence = format!("{endpoint} redirects{to}; redirects are not followed: write the final URL as the base URL");
    ModelError { status: Some(status), ..ModelError::new(ModelErrorKind::NotFound, sentence) }
}

/// Headers that say where a request ends and what its connection is for: another value breaks the request.
const FRAMING_HEADERS: [&str; 6] = ["connection", "content-length", "te", "trailer", "transfer-encoding", "upgrade"];

fn headers(options: &HttpOptions) -> Result<HeaderMap, ModelError> {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    for (name, text) in &options.credentials {
        let mut value = HeaderValue::from_str(text).map_err(|_| {
            let sentence =
                "the API key or the organization contains a character that is invalid in a header, such as a newline";
            ModelError::new(ModelErrorKind::Auth, sentence)
        })?;
        value.set_sensitive(true);
        headers.insert(HeaderName::from_static(name), value);
    }
    for (name, text) in &options.headers {
        let refuse = || {
            let sentence = format!(
                "the header `{}` has an invalid name or value; use letters, digits and dashes in the name, and no \
                 control characters in the value",
                shorten(name)
            );
            ModelError::new(ModelErrorKind::BadRequest, sentence)
        };
        let name = HeaderName::try_from(name.as_str()).map_err(|_| refuse())?;
        if FRAMING_HEADERS.contains(&name.as_str()) {
            let sentence =
                format!("the header `{name}` frames each request and is set by the HTTP client; leave it out");
            return Err(ModelError::new(ModelErrorKind::BadRequest, sentence));
        }
        let mut text = HeaderValue::from_str(text).map_err(|_| refuse())?;
        text.set_sensitive(true);
        headers.insert(name, text);
    }
    Ok(headers)
}
