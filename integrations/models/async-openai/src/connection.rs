//! Connection: how the requests of a model reach its server.

use std::fmt;
use std::sync::Arc;

use async_openai::Client;
use async_openai::config::Config;
use async_openai::error::OpenAIError;
use async_openai::middleware::HttpRequestFactory;
use positronic_core::record::{ModelError, ModelErrorKind};
use positronic_model_http::{HttpSender, reqwest};
use positronic_openai::{OpenAiChat, OpenAiConfig, OpenAiResponses};
use tower::Service;

use crate::route::{ConfigRoute, ConfigSource};
use crate::stack::Stack;
use crate::token::Token;

/// How the requests of models reach their server: by a configuration of async-openai, and through a stack of tower if one is set.
#[derive(Clone)]
pub struct Connection {
    source: ConfigSource,
    sender: Option<Arc<dyn HttpSender>>,
}

impl Connection {
    /// Creates a connection by a configuration, which is asked before each request.
    #[must_use]
    pub fn new(config: impl Config + 'static) -> Self {
        Self { source: ConfigSource::Config(Arc::new(config)), sender: None }
    }

    /// Creates a connection by the configuration of a client: its address, query and headers. The client's own HTTP client, stack
    /// and retries are not used; see [`Connection::stack`].
    #[must_use]
    pub fn of_client<C: Config + Clone + 'static>(client: &Client<C>) -> Self {
        Self::new(client.config().clone())
    }

    /// Creates a connection by a configuration that is made anew from the current token before each request. When a model is
    /// created, it is made once from an empty token, to learn the address.
    #[must_use]
    pub fn with_tokens<C: Config + 'static>(
        token: Token,
        config: impl Fn(String) -> C + Send + Sync + 'static,
    ) -> Self {
        let config = Arc::new(move |token| Arc::new(config(token)) as Arc<dyn Config>);
        Self { source: ConfigSource::Tokens(token, config), sender: None }
    }

    /// Sends the requests through a stack of tower, as [`Client::with_http_service`] takes it, in place of the adapter's HTTP
    /// client. The proxy of the model's options does not apply.
    ///
    /// A [`ModelError`] that a layer returns fails the request as it is. Leave retries to the engine: a layer that retries
    /// multiplies them.
    #[must_use]
    pub fn stack<S>(mut self, service: S) -> Self
    where
        S: Service<HttpRequestFactory, Response = reqwest::Response> + Clone + Send + Sync + 'static,
        S::Future: Send + 'static,
        S::Error: Into<OpenAIError> + Send + Sync + 'static,
    {
        self.sender = Some(Arc::new(Stack(service)));
        self
    }

    /// Creates a model of the chat completions API. Base URL and API key of the options are not used.
    ///
    /// # Errors
    ///
    /// [`Auth`](ModelErrorKind::Auth) for a credential that is not a valid header value, and
    /// [`BadRequest`](ModelErrorKind::BadRequest) for an invalid URL or header.
    pub fn chat(&self, options: OpenAiConfig) -> Result<OpenAiChat, ModelError> {
        OpenAiChat::new(self.routed(options, &["chat", "completions"])?)
    }

    /// Creates a model of the Responses API. Base URL and API key of the options are not used.
    ///
    /// # Errors
    ///
    /// Those of [`Connection::chat`], and [`BadRequest`](ModelErrorKind::BadRequest) for an `AzureConfig`, which puts this API
    /// under the deployment, where Azure has none.
    pub fn responses(&self, options: OpenAiConfig) -> Result<OpenAiResponses, ModelError> {
        if self.source.address().url("/responses").contains("/openai/deployments/") {
            let sentence = "async-openai's `AzureConfig` puts the Responses API under the deployment, where Azure has none; use \
                            `positronic_async_openai::Azure`";
            return Err(ModelError::new(ModelErrorKind::BadRequest, sentence));
        }
        OpenAiResponses::new(self.routed(options, &["responses"])?)
    }

    fn routed(&self, mut options: OpenAiConfig, path: &[&str]) -> Result<OpenAiConfig, ModelError> {
        let route = ConfigRoute::new(self.source.clone(), &options.headers);
        options.base_url = route.origin(path)?;
        options.route = Some(Arc::new(route));
        options.sender = self.sender.clone().or(options.sender);
        Ok(options)
    }
}

/// Shows no credentials.
impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("source", &self.source).field("sender", &self.sender).finish()
    }
}
