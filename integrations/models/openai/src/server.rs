//! A server as its adapter uses it.

use std::borrow::Cow;

use positronic_core::model::DeltaSink;
use positronic_core::record::{FileKind, FileLocation, ModelError, ModelRequest, ModelResponse, Recipient};
use positronic_model_http::{Assemble, Endpoint, Reader, Transport, readable};

use super::config::OpenAiConfig;
use super::text_marks::{self, WithoutMarks};

/// A server: its configuration, and how requests reach it.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) config: OpenAiConfig,
    path: &'static [&'static str],
    endpoint: Endpoint,
    transport: Transport,
}

impl Server {
    /// Creates a server whose API is at `path`.
    pub(super) fn new(config: OpenAiConfig, path: &'static [&'static str]) -> Result<Self, ModelError> {
        let endpoint = Endpoint::new(&config.base_url, path)?;
        let transport = Transport::new(config.http())?;
        Ok(Self { config, path, endpoint, transport })
    }

    /// Returns the model that a request goes to.
    pub(super) fn recipient<'a>(&'a self, request: &'a ModelRequest) -> Recipient<'a> {
        let OpenAiConfig { provider, model, .. } = &self.config;
        let model = request.settings.model.as_ref().unwrap_or(model);
        Recipient { provider, model, server: self.endpoint.server() }
    }

    pub(super) fn name(&self) -> String {
        self.transport.name()
    }

    /// Returns a request with only those files that its model can read; see [`readable`].
    pub(super) fn readable<'a>(
        &self,
        request: &'a ModelRequest,
        takes: impl Fn(FileKind, &str, FileLocation<'_>) -> bool,
    ) -> Result<Cow<'a, ModelRequest>, ModelError> {
        let OpenAiConfig { provider, model, capabilities, .. } = &self.config;
        let model = request.settings.model.as_ref().unwrap_or(model);
        readable(request, Reader { provider, model, capabilities }, takes)
    }

    /// Sends a request and reads the answer. Marks in its texts become thinking and calls if the configuration says so.
    pub(super) async fn send<A: Assemble>(
        &self,
        request: &ModelRequest,
        body: String,
        assembler: A,
        deltas: &dyn DeltaSink,
    ) -> Result<ModelResponse, ModelError> {
        let routed = match &self.config.route {
            Some(route) => Some(route.endpoint(self.path).await?),
            None => None,
        };
        let endpoint = routed.as_ref().unwrap_or(&self.endpoint);
        let sent = |deltas| self.transport.send(endpoint, request, body, assembler, deltas);
        if !self.config.text_marks {
            return sent(deltas).await;
        }
        let shown = WithoutMarks::new(deltas);
        sent(&shown).await.map(|response| text_marks::read(response, &request.tools))
    }
}
