//! Records what a run said to a model and what it got, and replays it without a key.
//!
//! A cassette answers for the model alone. Steps and tools run for real when it is played, with all their effects: what must not
//! happen twice belongs into services, which a test or a demonstration replaces.
//!
//! A cassette is a text of JSON lines, readable and writable by hand. The first line is the header:
//!
//! ```json
//! {"cassette": 1, "note": "recorded from openai/gpt-5", "model": "openai/gpt-5", "goal": "Refund order 7"}
//! ```
//!
//! `note`, `model` (the recorded model's name), `goal`, `options`, `decisions` (how the recorded model was asked for
//! decisions, `schema` if left out) and `exact` (whether it answers for runs with these `options` alone) may be left out. Each
//! further line is one of these; blank lines and lines that begin with `//` are skipped:
//!
//! | line | fields |
//! |---|---|
//! | an exchange | `at`: the path of the request; `attempt`, 0 if left out; `request`; `reply` or `error` |
//! | a signal | `after`: what it answered, such as a call's path; `signal`: the [`SignalKind`] |
//!
//! A `request` holds what is new against the request before it in the same loop: `system`, `context`, `tools` and
//! `settings` where they changed, and `messages` from number `from` on, which is the end of the messages before if left
//! out. So a cassette grows with the transcript. A `reply` is `{"text": …, "calls": [{"name": …, "arguments": {…}}]}`, or
//! the full form with `parts`; `arguments` may be a text, which need not be JSON. To a loop that asks for decisions it may be
//! `{"decision": {"reasoning": …, "action": …, "input": {…}}}`, which is the text of the answer. Each takes the answer's
//! `usage`, such as `{"input": 900, "output": 60}`, and is then an answer of the header's `model` that can be priced. An
//! `error` is a [`ModelError`].
//!
//! On replay a request is found by path and attempt, so loops that run side by side do not disturb each other, and
//! has to equal the recorded one. The runs of a conversation ask at the same places, and are answered in their order. A hand-written exchange may leave out `request`, which then can be anything; its `at`
//! may name the loop (`Chat`), whose such replies are given in order, or be missing, for whoever asks next.
//!
//! Keys, tokens and [`Cassette::hide`]den texts are replaced before a line is kept. [`Recording`] writes a cassette from what
//! has happened already.

mod difference;
mod player;
mod recorder;
mod recording;
mod scrub;
mod signals;
mod tape;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt as _;
use futures::future::BoxFuture;

use player::Player;
use recorder::Recorder;
use scrub::Scrubber;
use signals::Signals;

pub use recording::Recording;
pub use scrub::SHORTEST_SECRET;
pub use signals::Pending;
pub use tape::{CassetteError, Header};

use super::plain::{give_pieces, plain_wire};
use super::{DeltaSink, Model};
use crate::record::{ActionFormat, ModelError, ModelRequest, ModelResponse, ResponseMetadata, SignalKind};

/// A model that records another one, or replays what was recorded.
pub struct Cassette {
    header: Header,
    scrubber: Scrubber,
    mode: Mode,
    /// Whose messages requests are made of.
    like: Option<Arc<dyn Model>>,
}

enum Mode {
    Record(Arc<dyn Model>, Mutex<Recorder>),
    Replay { text: String, player: Mutex<Player>, signals: Mutex<Signals> },
}

impl Cassette {
    /// Records what `inner` is asked and answers.
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

    /// Replays a cassette's text.
    ///
    /// # Errors
    ///
    /// [`CassetteError`] when the header is missing or of another version, or a line cannot be read.
    pub fn replay(text: &str) -> Result<Self, CassetteError> {
        let tape = tape::read(text)?;
        let (player, signals) = (Mutex::new(Player::new(tape.exchanges)?), Mutex::new(Signals::new(tape.signals)));
        let mode = Mode::Replay { text: text.to_owned(), player, signals };
        Ok(Self { header: tape.header, scrubber: Scrubber::default(), mode, like: None })
    }

    /// Makes messages as a model does that has a way of its own ([`Model::project`]), as the recording of it did: a tape holds no
    /// code. The model is not asked.
    #[must_use]
    pub fn like(self, model: Arc<dyn Model>) -> Self {
        Self { like: Some(model), ..self }
    }

    /// Replays a cassette's file.
    ///
    /// # Errors
    ///
    /// As [`Cassette::replay`], and [`CassetteError::File`] when the file cannot be read.
    pub fn load(path: impl AsRef<std::path::Path>) -> Result<Self, CassetteError> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path).map_err(|source| CassetteError::file(path, source))?;
        Self::replay(&text)
    }

    /// Writes what was recorded into a file, which only its owner may read where it is new.
    ///
    /// # Errors
    ///
    /// [`CassetteError::File`] when the file cannot be written.
    pub fn save(&self, path: impl AsRef<std::path::Path>) -> Result<(), CassetteError> {
        let path = path.as_ref();
        crate::private::write(path, self.to_text().as_bytes()).map_err(|source| CassetteError::file(path, source))
    }

    /// Replaces the given secrets in texts, beside what looks like a secret anyhow. A replay has to hide what its recording
    /// hid.
    ///
    /// A secret of 16 bytes or more is replaced wherever it stands, a shorter one where it stands as a word, and not in the
    /// fields that give a line its form, such as `type` or a tool's `name`. One shorter than [`SHORTEST_SECRET`] is not
    /// replaced, which is logged as a warning: it would also replace ordinary text.
    #[must_use]
    pub fn hide(mut self, secrets: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.scrubber.hide(secrets.into_iter().map(Into::into));
        self
    }

    /// Describes the recording in its header; the model's name and how it is asked for decisions are kept.
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

    /// Returns what was recorded so far; of a replay, the header alone.
    #[must_use]
    pub fn to_text(&self) -> String {
        match &self.mode {
            Mode::Record(_, recorder) => tape::text(&self.header, lock(recorder).lines(), &self.scrubber),
            Mode::Replay { .. } => tape::text(&self.header, &[], &self.scrubber),
        }
    }

    /// Records a signal; `after` says what it answered, such as a call's path. A replay takes no notice.
    pub fn record_signal(&self, after: &str, signal: &SignalKind) {
        if let Mode::Record(_, recorder) = &self.mode {
            lock(recorder).signal(after, signal, &self.scrubber);
        }
    }

    /// Returns the first recorded signal that answers one of what is pending, each signal once. A recording has none.
    #[must_use]
    pub fn next_signal(&self, pending: &[Pending<'_>]) -> Option<SignalKind> {
        match &self.mode {
            Mode::Record(..) => None,
            Mode::Replay { signals, .. } => lock(signals).next(pending),
        }
    }

    /// Plays a replay from its beginning again, as for another conversation. A recording takes no notice.
    pub fn restart(&self) {
        let Mode::Replay { text, player, signals } = &self.mode else { return };
        // It was read before, so it can be read.
        let Ok(tape) = tape::read(text) else { return };
        let Ok(anew) = Player::new(tape.exchanges) else { return };
        (*lock(player), *lock(signals)) = (anew, Signals::new(tape.signals));
    }

    /// Returns the metadata of the answers that a replay can give: which model gave each, and its tokens. A recording has none.
    #[must_use]
    pub fn metadata(&self) -> Vec<ResponseMetadata> {
        match &self.mode {
            Mode::Record(..) => Vec::new(),
            Mode::Replay { player, .. } => lock(player).metadata(),
        }
    }

    /// Returns what was recorded and never asked for: the paths of exchanges, and what signals answered.
    #[must_use]
    pub fn unused(&self) -> Vec<String> {
        let signals = self.unused_signals().into_iter().map(|after| format!("a signal after `{after}`"));
        self.unused_exchanges().into_iter().chain(signals).collect()
    }

    /// Returns the paths of the exchanges that were never asked for.
    #[must_use]
    pub fn unused_exchanges(&self) -> Vec<String> {
        match &self.mode {
            Mode::Record(..) => Vec::new(),
            Mode::Replay { player, .. } => lock(player).unused(),
        }
    }

    /// Returns after what the signals were recorded that nothing waited for.
    #[must_use]
    pub fn unused_signals(&self) -> Vec<String> {
        match &self.mode {
            Mode::Record(..) => Vec::new(),
            Mode::Replay { signals, .. } => lock(signals).unused(),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
                    lock(recorder).exchange(request, &outcome, &self.scrubber);
                    outcome
                }
                Mode::Replay { player, .. } => {
                    let outcome = lock(player).answer(request, &self.scrubber);
                    if let Ok(response) = &outcome {
                        give_pieces(response, deltas);
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

    fn wire(&self, request: &ModelRequest) -> String {
        match &self.mode {
            Mode::Record(inner, _) => inner.wire(request),
            Mode::Replay { .. } => plain_wire(request),
        }
    }
}
