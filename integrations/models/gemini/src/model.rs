//! The adapter.

use std::borrow::Cow;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use positronic_core::model::{DeltaSink, Model};
use positronic_core::record::{ActionFormat, ModelError, ModelErrorKind, ModelRequest, ModelResponse};
use positronic_model_http::{Endpoint, Transport};

use crate::assembler::GenerateContentAssembler;
use crate::config::GeminiConfig;
use crate::files::takes;
use crate::wire::Formats;
use crate::{provider_tools, wire};

/// A model behind the Gemini API.
#[derive(Debug)]
pub struct Gemini {
    config: GeminiConfig,
    server: Endpoint,
    transport: Transport,
    formats: Formats,
}

impl Gemini {
    /// Creates an adapter.
    ///
    /// # Errors
    ///
    /// [`Auth`](ModelErrorKind::Auth) for a key that is not a valid header value, and
    /// [`BadRequest`](ModelErrorKind::BadRequest) for an invalid URL, header or proxy.
    pub fn new(config: GeminiConfig) -> Result<Self, ModelError> {
        let server = Endpoint::new(&config.base_url, &[])?;
        let adapter = Self { server, transport: Transport::new(config.http())?, formats: Formats::default(), config };
        adapter.endpoint(&adapter.config.model, "generateContent")?;
        Ok(adapter)
    }

    /// Asks the provider how many tokens a request has.
    ///
    /// # Errors
    ///
    /// Those of a request, and [`Malformed`](ModelErrorKind::Malformed) for an answer without a count.
    pub async fn count_tokens(&self, request: &ModelRequest) -> Result<u64, ModelError> {
        let (model, request) = (self.transport.model_of(request), &*self.sendable(request)?);
        let body = wire::count_body(
            &self.config,
            self.transport.recipient(request, &self.server),
            &self.formats,
            request,
            &resource(model),
        );
        let answer = self.transport.post(&self.endpoint(model, "countTokens")?, body).await?;
        answer.get("totalTokens").and_then(serde_json::Value::as_u64).ok_or_else(|| {
            let sentence = "the server answered a request for a token count without `totalTokens`";
            ModelError::new(ModelErrorKind::Malformed, sentence)
        })
    }

    /// Returns the request without files that the model cannot read, or the reason why it cannot be sent.
    fn sendable<'a>(&self, request: &'a ModelRequest) -> Result<Cow<'a, ModelRequest>, ModelError> {
        provider_tools::check(&self.config.provider, request)?;
        let model = self.transport.model_of(request);
        self.transport.readable(model.strip_prefix("models/").unwrap_or(model), request, takes)
    }

    /// Returns the URL of a method of a model, which is part of the path in this API.
    fn endpoint(&self, model: &str, method: &str) -> Result<Endpoint, ModelError> {
        let path = format!("{}:{method}", resource(model));
        Endpoint::new(&self.config.base_url, &path.split('/').collect::<Vec<_>>())
    }
}

/// Returns a model's name with its collection: `models/gemini-2.5-flash`.
fn resource(model: &str) -> String {
    if model.contains('/') { model.to_owned() } else { format!("models/{model}") }
}

impl Model for Gemini {
    fn name(&self) -> String {
        self.transport.name()
    }

    fn call<'a>(
        &'a self,
        request: &'a ModelRequest,
        deltas: &'a dyn DeltaSink,
    ) -> BoxFuture<'a, Result<ModelResponse, ModelError>> {
        async move {
            let (model, request) = (self.transport.model_of(request), &*self.sendable(request)?);
            let endpoint = if self.config.stream {
                self.endpoint(model, "streamGenerateContent")?.query("alt", "sse")
            } else {
                self.endpoint(model, "generateContent")?
            };
            let assembler = GenerateContentAssembler::default();
            self.transport.send(&endpoint, request, self.wire(request), assembler, deltas).await
        }
        .boxed()
    }

    fn action_format(&self) -> ActionFormat {
        self.config.action_format
    }

    fn wire(&self, request: &ModelRequest) -> String {
        wire::body(&self.config, self.transport.recipient(request, &self.server), &self.formats, request)
    }
}
