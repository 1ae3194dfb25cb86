//! The adapter.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use positronic_core::model::http::{Endpoint, Transport};
use positronic_core::model::{DeltaSink, Model};
use positronic_core::record::{ActionFormat, ModelError, ModelErrorKind, ModelRequest, ModelResponse};

use crate::assembler::MessagesAssembler;
use crate::config::AnthropicConfig;
use crate::wire;

/// A model behind Anthropic's Messages API.
#[derive(Debug)]
pub struct Anthropic {
    config: AnthropicConfig,
    messages: Endpoint,
    count: Endpoint,
    transport: Transport,
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
            config,
        })
    }

    /// Asks the provider how many tokens a request has. Counting costs nothing and has a rate limit of its own.
    ///
    /// # Errors
    ///
    /// Those of a request, and [`Malformed`](ModelErrorKind::Malformed) for an answer without a count.
    pub async fn count_tokens(&self, request: &ModelRequest) -> Result<u64, ModelError> {
        let answer = self.transport.post(&self.count, wire::count_body(&self.config, request)).await?;
        answer.get("input_tokens").and_then(serde_json::Value::as_u64).ok_or_else(|| {
            ModelError::new(
                ModelErrorKind::Malformed,
                "the server answered a request for a token count without `input_tokens`",
            )
        })
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
        self.transport.send(&self.messages, request, self.wire(request), MessagesAssembler::default(), deltas).boxed()
    }

    fn action_format(&self) -> ActionFormat {
        self.config.action_format
    }

    fn wire(&self, request: &ModelRequest) -> String {
        wire::body(&self.config, request)
    }
}
