//! A cassette writer for past exchanges, such as those in the log of a run.

use super::format::{self, Header};
use super::recorder::{self, CassetteRecorder};
use super::scrub::Scrubber;
use crate::record::{ModelError, ModelRequest, ModelResponse, SignalKind};

/// Writes a cassette from exchanges and signals in their order, without calling a model.
///
/// [`projection::traffic`](crate::projection::traffic) reads them from a run's log.
#[derive(Debug, Default)]
pub struct Recording {
    header: Header,
    scrubber: Scrubber,
    recorder: CassetteRecorder,
}

impl Recording {
    /// Creates a cassette with a header.
    #[must_use]
    pub fn new(header: Header) -> Self {
        Self { header, ..Self::default() }
    }

    /// Replaces the given texts, as [`Cassette::hide`](super::Cassette::hide) does.
    #[must_use]
    pub fn hide(mut self, secrets: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.scrubber.hide(secrets.into_iter().map(Into::into));
        self
    }

    /// Adds a request with its outcome.
    pub fn exchange(&mut self, request: &ModelRequest, outcome: &Result<ModelResponse, ModelError>) {
        self.recorder.exchange(request, outcome, &self.scrubber);
    }

    /// Returns an exchange as one line with its whole request, which can be added to any cassette.
    #[must_use]
    pub fn line(&self, request: &ModelRequest, outcome: &Result<ModelResponse, ModelError>) -> String {
        recorder::whole(request, outcome, &self.scrubber)
    }

    /// Adds a signal; `after` is what it responded to, such as a call's path.
    pub fn signal(&mut self, after: &str, signal: &SignalKind) {
        self.recorder.signal(after, signal, &self.scrubber);
    }

    /// Returns the cassette's text.
    #[must_use]
    pub fn to_text(&self) -> String {
        format::text(&self.header, self.recorder.lines(), &self.scrubber)
    }
}
