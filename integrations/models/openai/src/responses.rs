//! Adapter for OpenAI's Responses API, used statelessly: every request contains the full history, and reasoning is sent
//! encrypted.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use positronic_core::model::{DeltaSink, Model, Piece};
use positronic_core::record::{ActionFormat, ModelError, ModelRequest, ModelResponse, ResponseMetadata};
use positronic_model_http::{Assemble, Progress};

use super::config::OpenAiConfig;
use super::responses_assembler::ResponsesAssembler;
use super::server::Server;
use super::{responses_files, responses_wire};

/// A model behind a Responses API.
#[derive(Debug)]
pub struct OpenAiResponses {
    server: Server,
}

impl OpenAiResponses {
    /// Creates an adapter.
    ///
    /// # Errors
    ///
    /// [`Auth`](positronic_core::record::ModelErrorKind::Auth) for a key that is not a valid header value, and
    /// [`BadRequest`](positronic_core::record::ModelErrorKind::BadRequest) for an invalid URL or header.
    pub fn new(config: OpenAiConfig) -> Result<Self, ModelError> {
        Ok(Self { server: Server::new(config, &["responses"])? })
    }
}

impl Model for OpenAiResponses {
    fn name(&self) -> String {
        self.server.name()
    }

    fn call<'a>(
        &'a self,
        request: &'a ModelRequest,
        deltas: &'a dyn DeltaSink,
    ) -> BoxFuture<'a, Result<ModelResponse, ModelError>> {
        async move {
            responses_wire::check(request)?;
            let request = self.server.readable(request, responses_files::takes)?;
            self.server.send(&request, self.wire(&request), ResponsesAssembler::default(), deltas).await
        }
        .boxed()
    }

    fn action_format(&self) -> ActionFormat {
        self.server.config.action_format
    }

    fn wire(&self, request: &ModelRequest) -> String {
        responses_wire::body(&self.server.config, self.server.recipient(request), request)
    }
}

impl Assemble for ResponsesAssembler {
    fn feed(&mut self, chunk: &str) -> Result<Vec<Piece>, ModelError> {
        Self::feed(self, chunk)
    }

    fn feed_complete(&mut self, answer: &str) -> Result<Vec<Piece>, ModelError> {
        Self::feed_complete(self, answer)
    }

    fn done(&mut self) {}

    fn progress(&self) -> Progress {
        if self.is_finished() { Progress::Ended } else { Progress::Open }
    }

    fn generation(&self) -> u32 {
        Self::generation(self)
    }

    fn metadata(&self) -> &ResponseMetadata {
        Self::metadata(self)
    }

    fn finish(self) -> Result<ModelResponse, ModelError> {
        Self::finish(self)
    }
}
