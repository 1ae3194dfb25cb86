//! The adapter.

use std::borrow::Cow;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use positronic_core::model::{DeltaSink, Model};
use positronic_core::record::{ActionFormat, ModelError, ModelErrorKind, ModelRequest, ModelResponse};
use positronic_model_http::{Endpoint, Transport};

use crate::assembler::MessagesAssembler;
use crate::config::{AnthropicConfig, BETA};
use crate::files::{has_uploads, takes};
use crate::names::FieldNames;
use crate::wire::Formats;
use crate::{provider_tools, wire};

/// The beta feature that requests with ids of files need.
const FILES_BETA: &str = "files-api-2025-04-14";

/// A model behind Anthropic's Messages API.
#[derive(Debug)]
pub struct Anthropic {
    config: AnthropicConfig,
    messages: Endpoint,
    count: Endpoint,
    transport: Transport,
    formats: Formats,
}

impl Anthropic {
    /// Creates an adapter.
    ///
    /// # Errors
    ///
    /// [`Auth`](ModelErrorKind::Auth) for a key that is not a valid header value, and
    /// [`BadRequest`](ModelErrorKind::BadRequest) for an invalid URL, header or proxy.
    pub fn new(config: AnthropicConfig) -> Result<Self, ModelError> {
        Ok(Self {
            messages: Endpoint::new(&config.base_url, &["messages"])?,
            count: Endpoint::new(&config.base_url, &["messages", "count_tokens"])?,
            transport: Transport::new(config.http())?,
            formats: Formats::default(),
            config,
        })
    }

    /// Asks the provider how many tokens a request has. Counting costs nothing and has a rate limit of its own.
    ///
    /// # Errors
    ///
    /// Those of a request, and [`Malformed`](ModelErrorKind::Malformed) for an answer without a count.
    pub async fn count_tokens(&self, request: &ModelRequest) -> Result<u64, ModelError> {
        let (request, endpoint) = (self.sendable(request)?, self.endpoint(&self.count, request)?);
        let answer = self
            .transport
            .post(
                &endpoint,
                wire::count_body(
                    &self.config,
                    self.transport.recipient(&request, &self.messages),
                    &self.formats,
                    &request,
                ),
            )
            .await?;
        answer.get("input_tokens").and_then(serde_json::Value::as_u64).ok_or_else(|| {
            ModelError::new(
                ModelErrorKind::Malformed,
                "the server answered a request for a token count without `input_tokens`",
            )
        })
    }

    /// Returns the request without files that the model cannot read, or the reason why it cannot be sent.
    fn sendable<'a>(&self, request: &'a ModelRequest) -> Result<Cow<'a, ModelRequest>, ModelError> {
        provider_tools::check(&self.config.provider, request)?;
        self.transport.readable(self.transport.model_of(request), request, takes)
    }

    /// Returns an endpoint with the beta features that a request needs beside the configured ones.
    fn endpoint(&self, endpoint: &Endpoint, request: &ModelRequest) -> Result<Endpoint, ModelError> {
        let files = has_uploads(request).then_some(FILES_BETA);
        let tools = request.settings.provider_tools.iter().filter_map(provider_tools::beta);
        let needed: Vec<_> = files.into_iter().chain(tools).collect();
        if needed.is_empty() {
            return Ok(endpoint.clone());
        }
        endpoint.clone().header(BETA, &self.config.beta_with(&needed))
    }
}

impl Model for Anthropic {
    fn name(&self) -> String {
        self.transport.name()
    }

    fn call<'a>(
        &'a self,
        request: &'a ModelRequest,
        deltas: &'a dyn DeltaSink,
    ) -> BoxFuture<'a, Result<ModelResponse, ModelError>> {
        async move {
            let request = &*self.sendable(request)?;
            let (endpoint, body) = (self.endpoint(&self.messages, request)?, self.wire(request));
            let mut response =
                self.transport.send(&endpoint, request, body, MessagesAssembler::default(), deltas).await?;
            request.tools.memo(FieldNames::of).restore(&mut response);
            Ok(response)
        }
        .boxed()
    }

    fn action_format(&self) -> ActionFormat {
        self.config.action_format
    }

    fn wire(&self, request: &ModelRequest) -> String {
        wire::body(&self.config, self.transport.recipient(request, &self.messages), &self.formats, request)
    }
}
