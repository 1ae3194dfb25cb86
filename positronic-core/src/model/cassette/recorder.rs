//! Recording: turns exchanges into lines, each with only the difference from the previous one.

use std::collections::HashMap;

use super::format::{Header, RecordedExchange, ReplyLine, RequestLine, SignalLine, encode, text};
use super::scrub::Scrubber;
use crate::record::{ModelError, ModelRequest, ModelResponse, Path, SignalKind, Transcript};

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
        whole(request, outcome, &self.scrubber)
    }

    /// Adds a signal; `after` is what it responded to, such as a call's path.
    pub fn signal(&mut self, after: &str, signal: &SignalKind) {
        self.recorder.signal(after, signal, &self.scrubber);
    }

    /// Returns the cassette's text.
    #[must_use]
    pub fn to_text(&self) -> String {
        text(&self.header, self.recorder.lines(), &self.scrubber)
    }
}

/// The recorded lines, and the last request of every loop.
#[derive(Debug, Default)]
pub(super) struct CassetteRecorder {
    lines: Vec<String>,
    last: HashMap<Path, ModelRequest>,
}

impl CassetteRecorder {
    pub(super) fn lines(&self) -> &[String] {
        &self.lines
    }

    pub(super) fn exchange(
        &mut self,
        request: &ModelRequest,
        outcome: &Result<ModelResponse, ModelError>,
        scrubber: &Scrubber,
    ) {
        let asker = request.path.parent().unwrap_or_default();
        let line = line(request, new_in(request, self.last.get(&asker)), outcome);
        self.lines.push(encode(&line, scrubber));
        self.last.insert(asker, request.clone());
    }

    pub(super) fn signal(&mut self, after: &str, signal: &SignalKind, scrubber: &Scrubber) {
        self.lines.push(encode(&SignalLine { after: after.to_owned(), signal: signal.clone() }, scrubber));
    }
}

/// Returns an exchange as a line with the whole request, which therefore means the same anywhere in a cassette.
fn whole(request: &ModelRequest, outcome: &Result<ModelResponse, ModelError>, scrubber: &Scrubber) -> String {
    let whole = RequestLine {
        system: Some(request.system.to_string()),
        context: Some(request.context.to_vec()),
        tools: Some(request.tools.tools().to_vec()),
        settings: Some((*request.settings).clone()),
        from: Some(0),
        messages: request.messages.read().iter().map(|entry| entry.message.clone()).collect(),
    };
    encode(&line(request, whole, outcome), scrubber)
}

fn line(
    request: &ModelRequest,
    recorded: RequestLine,
    outcome: &Result<ModelResponse, ModelError>,
) -> RecordedExchange {
    RecordedExchange {
        at: Some(request.path.as_str().to_owned()),
        attempt: request.attempt,
        request: Some(recorded),
        reply: outcome.as_ref().ok().map(ReplyLine::from),
        error: outcome.as_ref().err().cloned(),
    }
}

fn new_in(request: &ModelRequest, last: Option<&ModelRequest>) -> RequestLine {
    let known = last.map_or(0, |last| common(&request.messages, &last.messages));
    let expected = last.map_or(0, |last| last.messages.len());
    let messages = request.messages.read();
    RequestLine {
        system: (last.map_or("", |last| &last.system) != &*request.system).then(|| request.system.to_string()),
        context: (last.map_or(&[][..], |last| &last.context) != &*request.context).then(|| request.context.to_vec()),
        tools: (last.map_or(&[][..], |last| last.tools.tools()) != request.tools.tools())
            .then(|| request.tools.tools().to_vec()),
        settings: (last.map(|last| (*last.settings).clone()).unwrap_or_default() != *request.settings)
            .then(|| (*request.settings).clone()),
        from: (known != expected).then_some(known),
        messages: messages.iter().skip(known).map(|entry| entry.message.clone()).collect(),
    }
}

/// Returns the length of the common prefix of two transcripts; shared lists need no comparison.
fn common(one: &Transcript, other: &Transcript) -> usize {
    if one.extends(other) || other.extends(one) {
        return one.len().min(other.len());
    }
    let (one, other) = (one.read(), other.read());
    std::iter::zip(one.iter(), other.iter()).take_while(|(one, other)| one.message == other.message).count()
}
