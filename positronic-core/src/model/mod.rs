//! Models: one trait, many adapters.
//!
//! A [`Model`] gets a complete [`ModelRequest`] and gives a complete [`ModelResponse`]; while it answers, pieces
//! go to a [`DeltaSink`]. An adapter sends a request exactly once: retries are the runner's, so that each of them is an
//! event and none is multiplied by another; [`RetryPolicy`] decides on them.
//!
//! `openai` speaks with servers, [`scripted`] says what a test tells it to, [`cassette`] records another model and replays
//! it without a key.

pub mod cassette;
#[cfg(feature = "openai")]
pub mod openai;
mod plain;
pub mod schema;
pub mod scripted;
pub mod wrap;

use std::fmt;

use futures::future::BoxFuture;

pub use crate::record::RetryPolicy;

use crate::record::{ActionFormat, DeltaKind, Message, ModelError, ModelRequest, ModelResponse, Output};

/// Answers requests.
///
/// # Errors
///
/// A call answers with a [`ModelError`] whose kind says whether trying again can help.
pub trait Model: Send + Sync + 'static {
    /// Names the provider and the model, as `provider/model`.
    fn name(&self) -> String;

    /// Sends the request once and waits for the whole answer. Dropping the future stops the request.
    fn call<'a>(
        &'a self,
        request: &'a ModelRequest,
        deltas: &'a dyn DeltaSink,
    ) -> BoxFuture<'a, Result<ModelResponse, ModelError>>;

    /// Returns the model within, of a model around another one. What such a model does not say itself is as that one says: how
    /// messages are made, and how decisions are asked for.
    fn inner(&self) -> Option<&dyn Model> {
        None
    }

    /// Makes messages from consecutive outputs of a record in the model's own way, a pure function of them: those of the loop
    /// that asks, and those of each loop before it in the conversation. `None`, which is what happens where it is not written,
    /// stands for [`projection::messages`](crate::projection::messages); then the answer is `None` for all outputs.
    fn project(&self, outputs: &[Output]) -> Option<Vec<Message>> {
        self.inner()?.project(outputs)
    }

    /// Returns how the form of a decision is told to the model, where a loop answers in decisions and does not say.
    fn action_format(&self) -> ActionFormat {
        self.inner().map_or(ActionFormat::Schema, Model::action_format)
    }

    /// Returns the body that [`Model::call`] sends for the request: a pure function of it.
    fn wire(&self, request: &ModelRequest) -> String;
}

/// One piece of an answer, as an adapter reads it from a stream. The runner adds where it belongs.
#[derive(Debug, Clone, PartialEq)]
pub struct Piece {
    /// Which part of the answer, from 0.
    pub part: u32,
    /// What kind of part it is.
    pub kind: DeltaKind,
    /// For a call: its place among the answer's calls, from 0.
    pub call: Option<u32>,
    /// For a call: the tool's name, with its first piece.
    pub tool: Option<String>,
    /// The piece.
    pub text: String,
}

/// Takes the pieces of an answer while it streams.
pub trait DeltaSink: Send + Sync {
    /// Takes one piece. It must not block.
    fn piece(&self, piece: Piece);

    /// Voids all pieces so far: the model that gave them failed in the midst of its answer, and another one answers from the
    /// beginning. A sink before another one hands it on.
    fn restart(&self);

    /// Says whether anybody hears the pieces; where nobody does, they need not be made.
    fn is_heard(&self) -> bool {
        true
    }
}

/// Drops all pieces.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoDeltas;

impl DeltaSink for NoDeltas {
    fn piece(&self, _: Piece) {}

    fn restart(&self) {}

    fn is_heard(&self) -> bool {
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

    fn wire(&self, request: &ModelRequest) -> String {
        (**self).wire(request)
    }
}
