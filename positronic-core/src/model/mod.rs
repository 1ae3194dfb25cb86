//! Language models: one trait, many adapters.
//!
//! A [`Model`] receives a complete [`ModelRequest`] and returns a complete [`ModelResponse`]; meanwhile it streams pieces to
//! a [`DeltaSink`]. An adapter sends a request exactly once: the runner retries, by its [`RetryPolicy`], so that each
//! retry is an event and retries do not multiply.
//!
//! The crates `positronic-openai`, `positronic-anthropic` and `positronic-gemini` call servers, [`scripted`] returns the replies of a test, [`cassette`] records another model and replays it
//! without an API key.

pub mod cassette;
mod plain;
pub mod scripted;
pub mod wrap;

use std::fmt;

use futures::future::BoxFuture;

pub use crate::record::RetryPolicy;

use crate::record::{ActionFormat, DeltaKind, Message, ModelError, ModelRequest, ModelResponse, Output};

/// A language model.
///
/// ```
/// use futures::future::BoxFuture;
/// use positronic_core::model::{DeltaSink, Model, Piece};
/// use positronic_core::record::{DeltaKind, Message, ModelError, ModelRequest, ModelResponse, Part, ResponseMetadata};
/// use serde_json::json;
///
/// /// Answers with the last message.
/// struct Echo;
///
/// impl Model for Echo {
///     fn name(&self) -> String {
///         "echo/last".to_owned()
///     }
///
///     fn wire(&self, request: &ModelRequest) -> String {
///         let tools: Vec<_> = request.tools.tools().iter().map(|tool| (tool.id.wire_name(), &tool.parameters)).collect();
///         json!({ "system": request.system, "tools": tools, "messages": request.messages.messages() }).to_string()
///     }
///
///     fn call<'a>(
///         &'a self,
///         request: &'a ModelRequest,
///         deltas: &'a dyn DeltaSink,
///     ) -> BoxFuture<'a, Result<ModelResponse, ModelError>> {
///         Box::pin(async move {
///             let text = match request.messages.messages().pop() {
///                 Some(Message::User { text, .. }) => text,
///                 _ => "There is nothing to echo.".to_owned(),
///             };
///             deltas.piece(Piece { part: 0, kind: DeltaKind::Text, call: None, tool: None, text: text.clone() });
///             let metadata =
///                 ResponseMetadata { provider: "echo".into(), model: "last".into(), ..ResponseMetadata::default() };
///             Ok(ModelResponse { parts: vec![Part::Text { text }], calls: Vec::new(), metadata })
///         })
///     }
/// }
/// # let _ = Echo;
/// ```
///
/// # Errors
///
/// A call fails with a [`ModelError`] whose kind says whether a retry can help.
pub trait Model: Send + Sync + 'static {
    /// Returns the names of provider and model, as `provider/model`.
    fn name(&self) -> String;

    /// Sends the request once and waits for the full answer. Dropping the future cancels the request.
    fn call<'a>(
        &'a self,
        request: &'a ModelRequest,
        deltas: &'a dyn DeltaSink,
    ) -> BoxFuture<'a, Result<ModelResponse, ModelError>>;

    /// Returns the wrapped model, if this one wraps another. The defaults of the methods below delegate to it.
    fn inner(&self) -> Option<&dyn Model> {
        None
    }

    /// Makes messages from consecutive outputs of a prompt record, as a pure function: of the asking loop, or of an earlier
    /// loop in the conversation. `None`, the default, selects [`projection::messages`](crate::projection::messages); a model
    /// must return it for all outputs or for none.
    fn project(&self, outputs: &[Output]) -> Option<Vec<Message>> {
        self.inner()?.project(outputs)
    }

    /// Returns how requests describe the format of actions, for a loop with structured actions that does not set it.
    fn action_format(&self) -> ActionFormat {
        self.inner().map_or(ActionFormat::Schema, Model::action_format)
    }

    /// Returns whether it gives answers that were recorded elsewhere: each names the model that gave it, whichever model the request
    /// names, and asking costs nothing.
    fn is_replay(&self) -> bool {
        self.inner().is_some_and(Model::is_replay)
    }

    /// Returns the body that [`Model::call`] sends for the request, as a pure function.
    fn wire(&self, request: &ModelRequest) -> String;
}

/// A piece of an answer, as an adapter reads it from a stream. The runner adds the path.
#[derive(Debug, Clone, PartialEq)]
pub struct Piece {
    /// The index of the part in the answer, from 0.
    pub part: u32,
    /// The kind of the part.
    pub kind: DeltaKind,
    /// For a call: its index among the answer's calls, from 0.
    pub call: Option<u32>,
    /// For a call: the tool's name, with its first piece, and again if it becomes longer.
    pub tool: Option<String>,
    /// The piece.
    pub text: String,
}

/// Receives the pieces of an answer while it streams.
pub trait DeltaSink: Send + Sync {
    /// Receives one piece. It must not block.
    fn piece(&self, piece: Piece);

    /// Discards all pieces so far: the answer begins anew, by another model after a failure, or by the same server within its
    /// stream. A sink that wraps another one forwards this.
    fn restart(&self);

    /// Returns whether pieces are used; if not, a model need not produce them.
    fn has_reader(&self) -> bool {
        true
    }
}

/// Drops all pieces.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoDeltas;

impl DeltaSink for NoDeltas {
    fn piece(&self, _: Piece) {}

    fn restart(&self) {}

    fn has_reader(&self) -> bool {
        false
    }
}

impl fmt::Debug for dyn Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

impl<M: Model + ?Sized> Model for std::sync::Arc<M> {
    fn name(&self) -> String {
        (**self).name()
    }

    fn call<'a>(
        &'a self,
        request: &'a ModelRequest,
        deltas: &'a dyn DeltaSink,
    ) -> BoxFuture<'a, Result<ModelResponse, ModelError>> {
        (**self).call(request, deltas)
    }

    fn inner(&self) -> Option<&dyn Model> {
        (**self).inner()
    }

    fn project(&self, outputs: &[Output]) -> Option<Vec<Message>> {
        (**self).project(outputs)
    }

    fn action_format(&self) -> ActionFormat {
        (**self).action_format()
    }

    fn is_replay(&self) -> bool {
        (**self).is_replay()
    }

    fn wire(&self, request: &ModelRequest) -> String {
        (**self).wire(request)
    }
}
