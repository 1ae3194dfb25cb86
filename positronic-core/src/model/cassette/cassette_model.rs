//! The model that records another one, or replays a recording.

use std::fmt;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use parking_lot::Mutex;

use super::format::{self, CassetteError, Header};
use super::player::Player;
use super::recorder::CassetteRecorder;
use super::scrub::Scrubber;
use super::signals::{AwaitedSignal, Signals};
use crate::model::plain::{emit_pieces, plain_wire};
use crate::model::{DeltaSink, Model};
use crate::record::{ActionFormat, ModelError, ModelRequest, ModelResponse, ResponseMetadata, SignalKind};

/// A model that records another one, or replays a recording.
pub struct Cassette {
    header: Header,
    scrubber: Scrubber,
    mode: Mode,
    /// The model whose projection makes the messages.
    like: Option<Arc<dyn Model>>,
}

enum Mode {
    Record(Arc<dyn Model>, Mutex<CassetteRecorder>),
    Replay { text: String, player: Mutex<Player>, signals: Mutex<Signals> },
}

impl Cassette {
    /// Records the requests to `inner` and its answers.
    #[must_use]
    pub fn record(inner: Arc<dyn Model>) -> Self {
        let header = Header {
            note: Some(format!("recorded from {}", inner.name())),
            model: Some(inner.name()),
            action_format: inner.action_format(),
            ..Header::default()
        };
        let like = Some(Arc::clone(&inner));
        Self { header, scrubber: Scrubber::default(), mode: Mode::Record(inner, Mutex::default()), like }
    }

    /// Replays a cassette from its text.
    ///
    /// # Errors
    ///
    /// [`CassetteError`] when the header is missing or has another version, or a line is invalid.
    pub fn replay(text: &str) -> Result<Self, CassetteError> {
        let file = format::read(text)?;
        let (player, signals) = (Mutex::new(Player::new(file.exchanges)?), Mutex::new(Signals::new(file.signals)));
        let mode = Mode::Replay { text: text.to_owned(), player, signals };
        Ok(Self { header: file.header, scrubber: Scrubber::default(), mode, like: None })
    }

    /// Makes messages with another model's [`Model::project`], as the recorded model did: a cassette contains no code. That
    /// model receives no requests.
    #[must_use]
    pub fn like(self, model: Arc<dyn Model>) -> Self {
        Self { like: Some(model), ..self }
    }

    /// Replays a cassette file.
    ///
    /// # Errors
    ///
    /// See [`Cassette::replay`], and [`CassetteError::File`] when the file cannot be read.
    pub fn load(path: impl AsRef<std::path::Path>) -> Result<Self, CassetteError> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path).map_err(|source| CassetteError::file(path, source))?;
        Self::replay(&text)
    }

    /// Writes the recording to a file. A new file is readable only by its owner.
    ///
    /// # Errors
    ///
    /// [`CassetteError::File`] when the file cannot be written.
    pub fn save(&self, path: impl AsRef<std::path::Path>) -> Result<(), CassetteError> {
        let path = path.as_ref();
        crate::private::write(path, self.to_text().as_bytes()).map_err(|source| CassetteError::file(path, source))
    }

    /// Replaces the given secrets in texts, besides everything that looks like a secret. A replay must hide the same secrets
    /// as its recording.
    ///
    /// A secret of 16 bytes or more is replaced everywhere, a shorter one only where it is a separate word, and not in
    /// structural fields such as `type` or a tool's `name`. One shorter than [`MIN_SECRET`](super::MIN_SECRET) is not replaced, since that
    /// would change ordinary text; a warning is logged.
    #[must_use]
    pub fn hide(mut self, secrets: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.scrubber.hide(secrets.into_iter().map(Into::into));
        self
    }

    /// Sets the header, except for the model's name and its action format.
    #[must_use]
    pub fn describe(mut self, header: Header) -> Self {
        self.header = Header { model: self.header.model, action_format: self.header.action_format, ..header };
        self
    }

    /// Returns the header.
    #[must_use]
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the recording so far; for a replay, only the header.
    #[must_use]
    pub fn to_text(&self) -> String {
        match &self.mode {
            Mode::Record(_, recorder) => format::text(&self.header, recorder.lock().lines(), &self.scrubber),
            Mode::Replay { .. } => format::text(&self.header, &[], &self.scrubber),
        }
    }

    /// Records a signal; `after` is what it responded to, such as a call's path. A replay ignores it.
    pub fn record_signal(&self, after: &str, signal: &SignalKind) {
        if let Mode::Record(_, recorder) = &self.mode {
            recorder.lock().signal(after, signal, &self.scrubber);
        }
    }

    /// Returns the first unused recorded signal that responds to one of the pending waits. A recording has none.
    #[must_use]
    pub fn next_signal(&self, pending: &[AwaitedSignal<'_>]) -> Option<SignalKind> {
        match &self.mode {
            Mode::Record(..) => None,
            Mode::Replay { signals, .. } => signals.lock().next(pending),
        }
    }

    /// Rewinds a replay, for another conversation. A recording ignores it.
    pub fn restart(&self) {
        let Mode::Replay { text, player, signals } = &self.mode else { return };
        // It was parsed before, so this cannot fail.
        let Ok(file) = format::read(text) else { return };
        let Ok(rewound) = Player::new(file.exchanges) else { return };
        (*player.lock(), *signals.lock()) = (rewound, Signals::new(file.signals));
    }

    /// Returns the metadata of a replay's answers: the model and token usage of each. A recording has none.
    #[must_use]
    pub fn metadata(&self) -> Vec<ResponseMetadata> {
        match &self.mode {
            Mode::Record(..) => Vec::new(),
            Mode::Replay { player, .. } => player.lock().metadata(),
        }
    }

    /// Returns the unused recordings: the paths of exchanges, and what signals responded to.
    #[must_use]
    pub fn unused(&self) -> Vec<String> {
        let signals = self.unused_signals().into_iter().map(|after| format!("a signal after `{after}`"));
        self.unused_exchanges().into_iter().chain(signals).collect()
    }

    /// Returns the paths of the unused exchanges.
    #[must_use]
    pub fn unused_exchanges(&self) -> Vec<String> {
        match &self.mode {
            Mode::Record(..) => Vec::new(),
            Mode::Replay { player, .. } => player.lock().unused(),
        }
    }

    /// Returns what the unused signals responded to.
    #[must_use]
    pub fn unused_signals(&self) -> Vec<String> {
        match &self.mode {
            Mode::Record(..) => Vec::new(),
            Mode::Replay { signals, .. } => signals.lock().unused(),
        }
    }
}

impl fmt::Debug for Cassette {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cassette").field("header", &self.header).finish_non_exhaustive()
    }
}

impl Model for Cassette {
    fn name(&self) -> String {
        self.header.model.clone().unwrap_or_else(|| "cassette/replay".to_owned())
    }

    fn call<'a>(
        &'a self,
        request: &'a ModelRequest,
        deltas: &'a dyn DeltaSink,
    ) -> BoxFuture<'a, Result<ModelResponse, ModelError>> {
        async move {
            match &self.mode {
                Mode::Record(inner, recorder) => {
                    let outcome = inner.call(request, deltas).await;
                    recorder.lock().exchange(request, &outcome, &self.scrubber);
                    outcome
                }
                Mode::Replay { player, .. } => {
                    let outcome = player.lock().answer(request, &self.scrubber);
                    if let Ok(response) = &outcome {
                        emit_pieces(response, deltas);
                    }
                    outcome
                }
            }
        }
        .boxed()
    }

    fn inner(&self) -> Option<&dyn Model> {
        self.like.as_deref()
    }

    fn action_format(&self) -> ActionFormat {
        self.header.action_format
    }

    fn is_replay(&self) -> bool {
        matches!(self.mode, Mode::Replay { .. })
    }

    fn wire(&self, request: &ModelRequest) -> String {
        match &self.mode {
            Mode::Record(inner, _) => inner.wire(request),
            Mode::Replay { .. } => plain_wire(request),
        }
    }
}
