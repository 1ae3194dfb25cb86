//! What the adapters of the two APIs share: the configuration, and how a request reaches the server.

use std::fmt;
use std::marker::PhantomData;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use positronic_core::model::{DeltaSink, Model};
use positronic_core::record::{
    ActionFormat, FileKind, FileLocation, ModelError, ModelRequest, ModelResponse, Recipient,
};
use positronic_model_http::{Assemble, Endpoint, Transport};

use super::config::OpenAiConfig;
use super::text_marks::{self, WithoutMarks};

/// One of the APIs that a server of OpenAI's kind can have.
pub trait Api: Send + Sync + 'static {
    /// The segments of the path below the base URL, such as `["chat", "completions"]`.
    const PATH: &'static [&'static str];

    /// The assembler of the API's answers.
    type Assembler: Assemble;

    /// Refuses a request that the API cannot express.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](positronic_core::record::ModelErrorKind::Unsupported), with what the API lacks.
    fn check(request: &ModelRequest) -> Result<(), ModelError>;

    /// Returns whether the API takes a file, by its kind, its media type and its location.
    fn takes(kind: FileKind, media_type: &str, location: FileLocation<'_>) -> bool;

    /// Encodes a request.
    fn body(config: &OpenAiConfig, recipient: Recipient<'_>, request: &ModelRequest) -> String;

    /// Creates the assembler of the answer to a request.
    fn assembler(request: &ModelRequest) -> Self::Assembler;
}

/// A model behind an API of OpenAI or of a compatible server: [`OpenAiChat`](crate::OpenAiChat) or
/// [`OpenAiResponses`](crate::OpenAiResponses).
pub struct OpenAi<A> {
    config: OpenAiConfig,
    endpoint: Endpoint,
    transport: Transport,
    api: PhantomData<fn() -> A>,
}

impl<A: Api> OpenAi<A> {
    /// Creates an adapter.
    ///
    /// # Errors
    ///
    /// [`Auth`](positronic_core::record::ModelErrorKind::Auth) for a key that is not a valid header value, and
    /// [`BadRequest`](positronic_core::record::ModelErrorKind::BadRequest) for an invalid URL or header.
    pub fn new(config: OpenAiConfig) -> Result<Self, ModelError> {
        let endpoint = Endpoint::new(&config.base_url, A::PATH)?;
        let transport = Transport::new(config.http())?;
        Ok(Self { config, endpoint, transport, api: PhantomData })
    }

    /// Sends a request and reads the answer. Marks in its texts become thinking and calls if the configuration says so.
    async fn send(&self, request: &ModelRequest, deltas: &dyn DeltaSink) -> Result<ModelResponse, ModelError> {
        A::check(request)?;
        let request = &*self.transport.readable(self.transport.model_of(request), request, A::takes)?;
        let routed = match &self.config.route {
            Some(route) => Some(route.endpoint(A::PATH).await?),
            None => None,
        };
        let endpoint = routed.as_ref().unwrap_or(&self.endpoint);
        let sent = |deltas| self.transport.send(endpoint, request, self.wire(request), A::assembler(request), deltas);
        if !self.config.text_marks {
            return sent(deltas).await;
        }
        let shown = WithoutMarks::new(deltas);
        sent(&shown).await.map(|response| text_marks::read(response, &request.tools))
    }
}

impl<A: Api> Model for OpenAi<A> {
    fn name(&self) -> String {
        self.transport.name()
    }

    fn call<'a>(
        &'a self,
        request: &'a ModelRequest,
        deltas: &'a dyn DeltaSink,
    ) -> BoxFuture<'a, Result<ModelResponse, ModelError>> {
        self.send(request, deltas).boxed()
    }

    fn action_format(&self) -> ActionFormat {
        self.config.action_format
    }

    fn wire(&self, request: &ModelRequest) -> String {
        A::body(&self.config, self.transport.recipient(request, &self.endpoint), request)
    }
}

/// Shows no credentials.
impl<A> fmt::Debug for OpenAi<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAi").field("config", &self.config).field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}
