//! Sends a request through `async-openai` and feeds the answer to an assembler.
//!
//! The library offers a seam, a service in the place of its HTTP client. Ours sends once, turns an answer with a failure's
//! status into a [`ModelError`] while its headers are at hand, and passes on an answer that was not streamed as it is.
//! What goes wrong in the midst of a stream may leave a broken connection in the pool, so the pool is then thrown away.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use async_openai::Client;
use async_openai::config::OpenAIConfig;
use async_openai::error::OpenAIError;
use async_openai::middleware::HttpRequestFactory;
use futures::{FutureExt as _, StreamExt as _};
use serde_json::value::RawValue;

use super::config::OpenAiConfig;
use super::fault::{http_error, is_web_page, shorten};
use super::retry_after::retry_after;
use super::stopwatch::Stopwatch;
use crate::model::{DeltaSink, Piece};
use crate::record::{ModelError, ModelErrorKind, ModelRequest, ModelResponse};

/// How long to wait for more when the model has said that it is done.
const AFTER_THE_END: Duration = Duration::from_secs(2);

/// Puts an answer together from its chunks.
pub(super) trait Assemble: Send {
    fn feed(&mut self, chunk: &str) -> Result<Vec<Piece>, ModelError>;
    fn feed_whole(&mut self, answer: &str) -> Result<Vec<Piece>, ModelError>;
    fn is_finished(&self) -> bool;
    fn finish(self) -> Result<ModelResponse, ModelError>;
}

/// Which of the two APIs is asked.
#[derive(Debug, Clone, Copy)]
pub(super) enum Api {
    Chat,
    Responses,
}

/// The way to one server.
#[derive(Debug)]
pub(super) struct Transport {
    config: OpenAiConfig,
    api: Api,
    endpoint: OpenAIConfig,
    http: Mutex<reqwest::Client>,
}

/// What a server sent instead of a stream.
#[derive(Debug, thiserror::Error)]
#[error("the answer was not streamed")]
struct NotStreamed(String);

impl Transport {
    pub(super) fn new(config: OpenAiConfig, api: Api) -> Result<Self, ModelError> {
        let readable = |text: &str| reqwest::header::HeaderValue::from_str(text).is_ok();
        if !readable(&config.api_key) || !config.organization.as_deref().is_none_or(readable) {
            let sentence =
                "the key or the organization holds a character that no header can carry, such as a line's end";
            return Err(ModelError::new(ModelErrorKind::Auth, sentence));
        }
        let base = config.base_url.trim_end_matches('/');
        if !reqwest::Url::parse(base).is_ok_and(|url| matches!(url.scheme(), "http" | "https")) {
            let sentence = format!("`{}` is no address of a web server; write it as https://host/v1", config.base_url);
            return Err(ModelError::new(ModelErrorKind::BadRequest, sentence));
        }
        // The library's own defaults come from the environment; each is set here.
        let endpoint = OpenAIConfig::new()
            .with_api_base(base)
            .with_api_key(config.api_key.clone())
            .with_org_id(config.organization.clone().unwrap_or_default())
            .with_project_id("");
        let http = Mutex::new(http_client(&config)?);
        Ok(Self { config, api, endpoint, http })
    }

    pub(super) const fn config(&self) -> &OpenAiConfig {
        &self.config
    }

    pub(super) fn name(&self) -> String {
        format!("{}/{}", self.config.provider, self.config.model)
    }

    /// Sends the body once and puts the answer together.
    pub(super) async fn send<A: Assemble>(
        &self,
        request: &ModelRequest,
        body: String,
        assembler: A,
        deltas: &dyn DeltaSink,
    ) -> Result<ModelResponse, ModelError> {
        let request_id = Arc::new(OnceLock::new());
        let exchange = self.exchange(body, assembler, deltas, &request_id);
        match within(self.config.timeouts.whole, "the whole answer", exchange).await {
            Ok(mut response) => {
                let asked = request.settings.model.as_ref().unwrap_or(&self.config.model);
                response.facts.provider.clone_from(&self.config.provider);
                response.facts.model.clone_from(asked);
                response.facts.answered_by = response.facts.answered_by.filter(|answering| answering != asked);
                Ok(response)
            }
            Err(error) => {
                // An answer with a failure's status was read to its end.
                if error.status.is_none() {
                    self.renew_connections();
                }
                Err(ModelError { request_id: error.request_id.or_else(|| request_id.get().cloned()), ..error })
            }
        }
    }

    async fn exchange<A: Assemble>(
        &self,
        body: String,
        mut assembler: A,
        deltas: &dyn DeltaSink,
        request_id: &Arc<OnceLock<String>>,
    ) -> Result<ModelResponse, ModelError> {
        let timeouts = self.config.timeouts;
        let watch = Stopwatch::start();
        let first_limit = if self.config.stream { timeouts.first_chunk } else { timeouts.whole };
        let opening = async {
            let mut chunks = self.open(body, Arc::clone(request_id)).await?;
            let first = chunks.next().await;
            Ok((chunks, first))
        };
        let (mut chunks, mut next) = match within(first_limit, "the first chunk", opening).await {
            Ok(opened) => opened,
            Err(OpenError::NotStreamed(answer)) => {
                let first_chunk = Some(watch.micros());
                assembler.feed_whole(&answer)?.into_iter().for_each(|piece| deltas.piece(piece));
                return finish(assembler, first_chunk);
            }
            Err(OpenError::Failed(error)) => return Err(error),
        };
        let first_chunk = next.is_some().then(|| watch.micros());
        while let Some(chunk) = next {
            match chunk {
                Ok(chunk) => assembler.feed(chunk.get())?.into_iter().for_each(|piece| deltas.piece(piece)),
                Err(_) if assembler.is_finished() => break,
                Err(error) => return Err(describe(error)),
            }
            // What may still come is the usage, and some servers leave the connection open.
            let limit = if assembler.is_finished() { timeouts.idle.min(AFTER_THE_END) } else { timeouts.idle };
            next = match within(limit, "the next chunk", async { Ok(chunks.next().await) }).await {
                Ok(next) => next,
                Err(_) if assembler.is_finished() => None,
                Err::<_, ModelError>(error) => return Err(error),
            };
        }
        finish(assembler, first_chunk)
    }

    async fn open(
        &self,
        body: String,
        request_id: Arc<OnceLock<String>>,
    ) -> Result<async_openai::types::stream::StreamResponse<Box<RawValue>>, OpenError> {
        let http = self.http.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (sender, stream) = (http.clone(), self.config.stream);
        let body = Arc::new(Mutex::new(Some(body)));
        let seam = tower::service_fn(move |request: HttpRequestFactory| {
            let (http, request_id) = (sender.clone(), Arc::clone(&request_id));
            let body = body.lock().unwrap_or_else(PoisonError::into_inner).take();
            async move { send_once(&http, &request, body, &request_id, stream).await }
        });
        let client = Client::build(http, self.endpoint.clone()).with_http_service(seam);
        let opened = match self.api {
            Api::Chat => client.chat().create_stream_byot(NoBody {}).await,
            Api::Responses => client.responses().create_stream_byot(NoBody {}).await,
        };
        opened.map_err(|error| match error {
            OpenAIError::Boxed(inner) => match inner.downcast::<NotStreamed>() {
                Ok(answer) => OpenError::NotStreamed(answer.0),
                Err(inner) => OpenError::Failed(describe(OpenAIError::Boxed(inner))),
            },
            error => OpenError::Failed(describe(error)),
        })
    }

    fn renew_connections(&self) {
        if let Ok(client) = http_client(&self.config) {
            *self.http.lock().unwrap_or_else(PoisonError::into_inner) = client;
        }
    }
}

/// What the library is told to send. The seam puts the real body in its place: it is complete already, and the library
/// would read all of it again to check it.
#[derive(serde::Serialize)]
struct NoBody {}

/// Why there is no stream.
enum OpenError {
    NotStreamed(String),
    Failed(ModelError),
}

impl From<ModelError> for OpenError {
    fn from(error: ModelError) -> Self {
        Self::Failed(error)
    }
}

fn finish<A: Assemble>(assembler: A, first_chunk: Option<u64>) -> Result<ModelResponse, ModelError> {
    let mut response = assembler.finish()?;
    response.facts.first_chunk = first_chunk;
    Ok(response)
}

fn http_client(config: &OpenAiConfig) -> Result<reqwest::Client, ModelError> {
    let refuse = |error: reqwest::Error| ModelError::new(ModelErrorKind::BadRequest, sentence(&error));
    let mut builder = reqwest::Client::builder().connect_timeout(config.timeouts.connect).no_proxy();
    if let Some(proxy) = &config.proxy {
        builder = builder.proxy(reqwest::Proxy::all(proxy).map_err(refuse)?);
    }
    builder.build().map_err(refuse)
}

async fn send_once(
    http: &reqwest::Client,
    request: &HttpRequestFactory,
    body: Option<String>,
    request_id: &OnceLock<String>,
    stream: bool,
) -> Result<reqwest::Response, OpenAIError> {
    let mut request = request.build().await?;
    *request.body_mut() = body.map(reqwest::Body::from);
    let mut response = http.execute(request).await.map_err(OpenAIError::Reqwest)?;
    let headers = response.headers().clone();
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let id = ["x-request-id", "request-id", "apim-request-id"].into_iter().find_map(header);
    if let Some(id) = id {
        request_id.get_or_init(|| id.to_owned());
    }
    if !response.status().is_success() {
        let status = response.status().as_u16();
        let body = read_start(&mut response).await;
        return boxed(http_error(status, &body, retry_after(header), id.map(str::to_owned)));
    }
    let media_type = header("content-type").unwrap_or_default().to_ascii_lowercase();
    if media_type.contains("event-stream") || (stream && !media_type.contains("json") && !media_type.contains("html")) {
        return Ok(response);
    }
    let answer = response.text().await.map_err(OpenAIError::Reqwest)?;
    if is_web_page(&answer) {
        let sentence = "the address answered with a web page; it has to be the API's, such as https://host/v1";
        return boxed(ModelError::new(ModelErrorKind::NotFound, sentence));
    }
    boxed(NotStreamed(answer))
}

fn boxed<T>(error: impl std::error::Error + Send + Sync + 'static) -> Result<T, OpenAIError> {
    Err(OpenAIError::Boxed(Box::new(error)))
}

/// Reads the start of a failure's body, 64 KiB at most; what broke off counts as far as it came.
async fn read_start(response: &mut reqwest::Response) -> String {
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        body.extend_from_slice(&chunk);
        if body.len() > 64 * 1024 {
            break;
        }
    }
    String::from_utf8_lossy(&body).into_owned()
}

/// Waits for something, but not longer than the limit. It is no `async fn`, which would keep its argument twice.
fn within<T, E: From<ModelError>>(
    limit: Duration,
    what: &str,
    work: impl Future<Output = Result<T, E>>,
) -> impl Future<Output = Result<T, E>> {
    // The library below runs on tokio in any case, so its timer may be named here.
    tokio::time::timeout(limit, work).map(move |outcome| {
        outcome.unwrap_or_else(|_| {
            let sentence = format!("{what} did not come within {limit:?}");
            Err(ModelError::new(ModelErrorKind::Timeout, sentence).into())
        })
    })
}

fn describe(error: OpenAIError) -> ModelError {
    match error {
        OpenAIError::Boxed(inner) => match inner.downcast::<ModelError>() {
            Ok(error) => *error,
            Err(inner) => ModelError::new(ModelErrorKind::Connection, inner.to_string()),
        },
        OpenAIError::Reqwest(error) => {
            let kind = match () {
                () if error.is_timeout() => ModelErrorKind::Timeout,
                () if error.is_builder() => ModelErrorKind::BadRequest,
                () => ModelErrorKind::Connection,
            };
            ModelError::new(kind, sentence(&error.without_url()))
        }
        OpenAIError::JSONDeserialize(error, text) => {
            let sentence = format!("the server sent what is no JSON ({error}): {}", shorten(&text));
            ModelError::new(ModelErrorKind::Malformed, sentence)
        }
        OpenAIError::StreamError(error) => {
            ModelError::new(ModelErrorKind::Connection, format!("the stream broke off: {error}"))
        }
        OpenAIError::ApiError(error) => http_error(error.status_code.as_u16(), &error.api_error.message, None, None),
        error => ModelError::new(ModelErrorKind::BadRequest, error.to_string()),
    }
}

/// Joins an error and its causes, since the outermost rarely says what happened.
fn sentence(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}
