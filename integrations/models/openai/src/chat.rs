//! Adapter for the chat completions API, which most servers support.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use positronic_core::model::{DeltaSink, Model, Piece};
use positronic_core::record::{ActionFormat, ModelError, ModelRequest, ModelResponse, ResponseMetadata};
use positronic_model_http::{Assemble, Progress};

use super::chat_assembler::ChatAssembler;
use super::config::OpenAiConfig;
use super::server::Server;
use super::{chat_files, chat_wire};

/// A model behind a chat completions API.
#[derive(Debug)]
pub struct OpenAiChat {
    server: Server,
}

impl OpenAiChat {
    /// Creates an adapter.
    ///
    /// # Errors
    ///
    /// [`Auth`](positronic_core::record::ModelErrorKind::Auth) for a key that is not a valid header value, and
    /// [`BadRequest`](positronic_core::record::ModelErrorKind::BadRequest) for an invalid URL or header.
    pub fn new(config: OpenAiConfig) -> Result<Self, ModelError> {
        Ok(Self { server: Server::new(config, &["chat", "completions"])? })
    }
}

impl Model for OpenAiChat {
    fn name(&self) -> String {
        self.server.name()
    }

    fn call<'a>(
        &'a self,
        request: &'a ModelRequest,
        deltas: &'a dyn DeltaSink,
    ) -> BoxFuture<'a, Result<ModelResponse, ModelError>> {
        async move {
            chat_wire::check(request)?;
            let request = self.server.readable(request, chat_files::takes)?;
            let body = self.wire(&request);
            let has_choices =
                request.settings.extra.get("n").and_then(serde_json::Value::as_u64).is_some_and(|n| n > 1);
            let assembler = if has_choices { ChatAssembler::of_first_choice() } else { ChatAssembler::default() };
            self.server.send(&request, body, assembler, deltas).await
        }
        .boxed()
    }

    fn action_format(&self) -> ActionFormat {
        self.server.config.action_format
    }

    fn wire(&self, request: &ModelRequest) -> String {
        chat_wire::body(&self.server.config, self.server.recipient(request), request)
    }
}

impl Assemble for ChatAssembler {
    fn feed(&mut self, chunk: &str) -> Result<Vec<Piece>, ModelError> {
        Self::feed(self, chunk)
    }

    fn feed_complete(&mut self, answer: &str) -> Result<Vec<Piece>, ModelError> {
        Self::feed_complete(self, answer)
    }

    fn done(&mut self) {
        Self::done(self);
    }

    fn progress(&self) -> Progress {
        Self::progress(self)
    }

    fn generation(&self) -> u32 {
        0
    }

    fn metadata(&self) -> &ResponseMetadata {
        Self::metadata(self)
    }

    fn finish(self) -> Result<ModelResponse, ModelError> {
        Self::finish(self)
    }
}
