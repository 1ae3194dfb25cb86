//! Assemblers: from the chunks of an answer to the answer.

use positronic_core::model::Piece;
use positronic_core::record::{ModelError, ModelResponse, ResponseMetadata};

/// Assembles an answer from its chunks, as a pure value.
pub trait Assemble: Send {
    /// Reads the data of one event of a stream and returns the pieces for people who watch.
    ///
    /// # Errors
    ///
    /// The failure that the server reports in the stream, or [`Malformed`](positronic_core::record::ModelErrorKind::Malformed).
    fn feed(&mut self, chunk: &str) -> Result<Vec<Piece>, ModelError>;

    /// Reads an answer that the server did not stream.
    ///
    /// # Errors
    ///
    /// Those of [`Assemble::feed`].
    fn feed_complete(&mut self, answer: &str) -> Result<Vec<Piece>, ModelError>;

    /// Processes `[DONE]`, which ends the streams of some servers.
    fn done(&mut self);

    /// Returns how far the answer is.
    fn progress(&self) -> Progress;

    /// Returns how often the server has restarted its answer. Nothing of an earlier start is in the answer, and its pieces are
    /// discarded.
    fn generation(&self) -> u32;

    /// Returns what the server has reported of the answer so far. Its usage counts even if the answer breaks.
    fn metadata(&self) -> &ResponseMetadata;

    /// Returns the answer.
    ///
    /// # Errors
    ///
    /// [`Truncated`](positronic_core::record::ModelErrorKind::Truncated) if the stream ended too early, or
    /// [`Malformed`](positronic_core::record::ModelErrorKind::Malformed).
    fn finish(self) -> Result<ModelResponse, ModelError>;
}

/// How far an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// The model has not finished.
    Open,
    /// The server has reported the end, together with content. More may follow: some servers report it in every chunk.
    Finished,
    /// Only usage may follow.
    Ended,
}
