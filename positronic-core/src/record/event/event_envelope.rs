//! A line of a run's log, and its JSON.
//!
//! A line is a flat object: the envelope's fields, then `type` and the event's fields. The format's version is in `v`,
//! which is omitted while it is 1; an unknown `type` is an error, never skipped.
//!
//! A log is a sequence of transitions: the events that one outcome, one signal or one rule of the machine leads to. They are
//! always appended together, and `with_next` marks all but the last of them. Only the end of a transition is a state in which
//! a run can stop.

use serde::{Deserialize, Serialize};

use super::event_kind::EventKind;
use super::undo::UndoCause;
use crate::record::ids::{Epoch, Seq, SignalId, Timestamp};
use crate::record::path::Path;
use crate::record::prompt::file::FileRef;
use crate::record::prompt::part::Part;
use crate::record::prompt::side_output::SideOutput;
use crate::record::request::model_response::ResponseMetadata;

/// The version of the log's format that this crate writes.
pub const FORMAT_VERSION: u32 = 1;

/// One line of a run's log.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Its number in the log.
    pub seq: Seq,
    /// When it was appended.
    pub at: Timestamp,
    /// The epoch of the worker's claim; `None` for a signal.
    pub epoch: Option<Epoch>,
    /// The time on the worker's clock, if that is earlier than `at`: a log's times never decrease, although another
    /// machine's clock stamped the events before.
    pub clock: Option<Timestamp>,
    /// Whether the next event belongs to the same transition.
    pub with_next: bool,
    /// Where in the run's tree it happened.
    pub path: Path,
    /// What happened.
    pub kind: EventKind,
}

/// Serializes as its line of JSON, so that authors can embed events. [`Event::to_json`] is faster.
impl Serialize for Event {
    fn serialize<T: serde::Serializer>(&self, serializer: T) -> Result<T::Ok, T::Error> {
        let line = self.to_json().map_err(serde::ser::Error::custom)?;
        let fields: serde_json::Value = serde_json::from_str(&line).map_err(serde::ser::Error::custom)?;
        fields.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = serde_json::Value::deserialize(deserializer)?;
        Self::from_json(&fields.to_string()).map_err(serde::de::Error::custom)
    }
}

/// An event without number and time.
#[derive(Debug, Clone, PartialEq)]
pub struct NewEvent {
    /// Where in the run's tree it happens.
    pub path: Path,
    /// What happens.
    pub kind: EventKind,
    /// Whether the next one belongs to the same transition.
    pub(crate) with_next: bool,
}

impl NewEvent {
    /// Makes a new event.
    #[must_use]
    pub const fn new(path: Path, kind: EventKind) -> Self {
        Self { path, kind, with_next: false }
    }

    /// Makes a transition of events.
    #[must_use]
    pub(crate) fn transition(mut new_events: Vec<Self>) -> Vec<Self> {
        if let [before @ .., _] = &mut *new_events {
            before.iter_mut().for_each(|event| event.with_next = true);
        }
        new_events
    }
}

/// Error from parsing an [`Event`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EventError {
    /// The text is not JSON, or its fields do not match its type.
    #[error("invalid event of format {FORMAT_VERSION}: {0}")]
    Json(#[from] serde_json::Error),
    /// The event nests so deep that its line could not be parsed.
    #[error("the event nests deeper than {MAX_LINE_DEPTH} levels, so its line could not be parsed again")]
    TooDeep,
    /// The event was written by a newer release.
    #[error("the event has format {found}, but this release reads only up to {FORMAT_VERSION}: use a newer release")]
    Version {
        /// The event's format.
        found: u32,
    },
}

/// The maximum nesting of a line. JSON parsers stop at 128, and a line is parsed one level deeper, as an enum variant.
const MAX_LINE_DEPTH: usize = 126;

/// Returns whether the JSON of a line has at most this many levels.
fn nests_within(line: &[u8], levels: usize) -> bool {
    // Almost every line has fewer brackets. The two differ in one bit, and small sums let the compiler count many bytes at
    // once.
    let opens = |byte: &u8| u8::from(byte & !0x20 == b'[');
    let brackets = |chunk: &[u8]| usize::from(chunk.iter().map(opens).sum::<u8>());
    if line.chunks(128).map(brackets).sum::<usize>() <= levels {
        return true;
    }
    let (mut open, mut deepest) = (0_usize, 0);
    let (mut quoted, mut escaped) = (false, false);
    for byte in line {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'{' | b'[' => {
                open += 1;
                deepest = deepest.max(open);
            }
            b'}' | b']' => open = open.saturating_sub(1),
            _ => {}
        }
    }
    deepest <= levels
}

/// The fields of a line before its type, as [`Event::write_envelope`] writes them.
#[derive(Deserialize)]
struct Envelope {
    #[serde(default = "first")]
    v: u32,
    seq: Seq,
    at: Timestamp,
    #[serde(default)]
    epoch: Option<Epoch>,
    #[serde(default)]
    clock: Option<Timestamp>,
    #[serde(default)]
    with_next: bool,
    #[serde(default)]
    path: Path,
}

const fn first() -> u32 {
    1
}

impl Event {
    /// Returns the time on the clock of the machine that appended it.
    #[must_use]
    pub fn clock(&self) -> Timestamp {
        self.clock.unwrap_or(self.at)
    }

    /// Returns the currency of the run's money limits, if the event sets it. The first such event applies
    /// to the full run; amounts in other currencies count as unknown.
    #[must_use]
    pub fn currency(&self) -> Option<&str> {
        if let EventKind::BrainStart(start) = &self.kind {
            return start.start.as_ref()?.shared_budget.as_ref()?.currency_of_limit();
        }
        let metadata = self.kind.answer_metadata()?;
        // An answer without a provider costs nothing, in no currency.
        metadata.cost.as_ref().filter(|_| !metadata.is_free()).map(|charge| charge.currency.as_str())
    }

    /// Encodes the event as one line of JSON, without a line break.
    ///
    /// # Errors
    ///
    /// [`EventError::TooDeep`] when the line could not be parsed again, [`EventError::Json`] when a value in it cannot be
    /// encoded, which does not happen for values of this crate.
    pub fn to_json(&self) -> Result<String, EventError> {
        let mut line = Vec::with_capacity(256);
        self.write_line(&mut line)?;
        String::from_utf8(line).map_err(serde::ser::Error::custom).map_err(EventError::Json)
    }

    /// Writes the line of [`to_json`](Self::to_json) at the end of a buffer, which the lines of an append share.
    pub(crate) fn write_line(&self, line: &mut Vec<u8>) -> Result<(), EventError> {
        let before = line.len();
        self.write_envelope(line)?;
        // `{"NAME":{fields}}` becomes `,"type":"NAME",fields}` in place: the new head is six bytes longer.
        let (begin, name) = (line.len(), self.kind.name());
        line.extend_from_slice(b"      ");
        serde_json::to_writer(&mut *line, &self.kind)?;
        line.pop();
        let mut place = begin;
        for part in [",\"type\":\"", name, "\","] {
            let end = place + part.len();
            if let Some(old) = line.get_mut(place..end) {
                old.copy_from_slice(part.as_bytes());
            }
            place = end;
        }
        if line.ends_with(b",}") {
            line.truncate(line.len() - 2);
            line.push(b'}');
        }
        if nests_within(line.get(before..).unwrap_or_default(), MAX_LINE_DEPTH) {
            Ok(())
        } else {
            Err(EventError::TooDeep)
        }
    }

    /// Writes the envelope without the closing bracket. Every event has one, and a derived encoder takes three times as long.
    fn write_envelope(&self, line: &mut Vec<u8>) -> serde_json::Result<()> {
        const { assert!(FORMAT_VERSION == 1, "another version is written first, as `v`") };
        write_field(line, "{\"seq\":", &self.seq)?;
        write_field(line, ",\"at\":", &self.at)?;
        if let Some(epoch) = self.epoch {
            write_field(line, ",\"epoch\":", &epoch)?;
        }
        if let Some(clock) = self.clock {
            write_field(line, ",\"clock\":", &clock)?;
        }
        if self.with_next {
            write_field(line, ",\"with_next\":", &true)?;
        }
        if !self.path.is_root() {
            write_field(line, ",\"path\":", &self.path)?;
        }
        Ok(())
    }

    /// Decodes an event from one line of JSON.
    ///
    /// # Errors
    ///
    /// [`EventError::Version`] when a newer release wrote it, [`EventError::Json`] when it is invalid.
    pub fn from_json(line: &str) -> Result<Self, EventError> {
        match own_form(line) {
            Some((envelope, body)) => Self::of(serde_json::from_str(&envelope)?, || serde_json::from_str(&body)),
            None => Self::from_any_form(line),
        }
    }

    fn of(envelope: Envelope, kind: impl FnOnce() -> serde_json::Result<EventKind>) -> Result<Self, EventError> {
        let Envelope { v, seq, at, epoch, clock, with_next, path } = envelope;
        if v > FORMAT_VERSION {
            return Err(EventError::Version { found: v });
        }
        Ok(Self { seq, at, epoch, clock, with_next, path, kind: kind()? })
    }

    /// Decodes a line from another writer, with its fields in any order.
    fn from_any_form(line: &str) -> Result<Self, EventError> {
        use serde::de::Error as _;
        let mut fields: serde_json::Map<String, serde_json::Value> = serde_json::from_str(line)?;
        let envelope = ["v", "seq", "at", "epoch", "clock", "with_next", "path"].into_iter();
        let envelope = envelope.filter_map(|name| fields.remove_entry(name)).collect();
        let Some(serde_json::Value::String(name)) = fields.remove("type") else {
            return Err(serde_json::Error::missing_field("type").into());
        };
        let body = serde_json::Value::Object([(name, fields.into())].into_iter().collect());
        Self::of(Envelope::deserialize(serde_json::Value::Object(envelope))?, || EventKind::deserialize(body))
    }
}

fn write_field<T: Serialize>(line: &mut Vec<u8>, key: &str, value: &T) -> serde_json::Result<()> {
    line.extend_from_slice(key.as_bytes());
    serde_json::to_writer(line, value)
}

/// Splits a line written by [`Event::to_json`] into its envelope and `{"NAME":{fields}}`; `None` for other
/// lines. Text in the envelope cannot be mistaken for the name, since its quotes are escaped.
fn own_form(line: &str) -> Option<(String, String)> {
    let (envelope, rest) = line.split_once(",\"type\":\"")?;
    let (name, fields) = rest.split_once('"')?;
    let fields = fields.strip_prefix(',').unwrap_or(fields);
    let known = envelope.starts_with("{\"seq\":") && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    // Concatenation, since formatting would take a fifth of the time of reading a log.
    known.then(|| ([envelope, "}"].concat(), ["{\"", name, "\":{", fields, "}"].concat()))
}

impl EventKind {
    /// Returns the files that it records of a tool or a model; those of messages are not among them.
    pub fn made_files(&self) -> impl Iterator<Item = &FileRef> {
        let (output, parts) = match self {
            Self::LoopOutput { output: SideOutput::File(output), .. } => (Some(&output.file), [].as_slice()),
            Self::LoopModelResult { parts, .. } => (None, &**parts),
            _ => (None, [].as_slice()),
        };
        let made = parts.iter().filter_map(|part| match part {
            Part::File { file, .. } => Some(file.file()),
            _ => None,
        });
        output.into_iter().chain(made)
    }

    /// Returns the metadata of a model's answer that has used tokens: a complete, a refused or a broken one.
    #[must_use]
    pub fn answer_metadata(&self) -> Option<&ResponseMetadata> {
        match self {
            Self::LoopModelResult { metadata, .. } => Some(metadata),
            Self::LoopAnswerRefused { metadata, .. } | Self::LoopAnswerBroken { metadata } => Some(metadata),
            _ => None,
        }
    }

    /// Returns whether it only says which worker has the run, or that none has taken it.
    #[must_use]
    pub const fn is_about_workers(&self) -> bool {
        matches!(self, Self::RunClaimed { .. } | Self::RunReleased { .. } | Self::RunNotClaimed { .. })
    }

    /// Returns the kind as in an event's line: its `type` and its fields.
    #[must_use]
    pub fn to_value(&self) -> serde_json::Value {
        let mut value = serde_json::to_value(self).unwrap_or_default();
        let mut fields = value.get_mut(self.name()).map(serde_json::Value::take).unwrap_or_default();
        if let Some(fields) = fields.as_object_mut() {
            fields.insert("type".to_owned(), self.name().into());
        }
        fields
    }

    /// Returns the signal that the event accepts, if any.
    #[must_use]
    pub fn signal(&self) -> Option<&SignalId> {
        match self {
            Self::BrainStart(begin) => begin.start.as_ref()?.id.as_ref(),
            Self::BrainCancelled { signal, .. }
            | Self::UndoStart { cause: UndoCause::Cancelled { signal, .. }, .. }
            | Self::LoopResume { signal, .. }
            | Self::StageResume { signal, .. }
            | Self::LoopMessage { signal, .. } => signal.as_ref(),
            Self::BrainPaused { signal, .. }
            | Self::BrainResumed { signal, .. }
            | Self::LoopApprovalDecided { signal, .. }
            | Self::LoopPluginUpdate { signal, .. }
            | Self::BudgetDecided { signal, .. } => Some(signal),
            _ => None,
        }
    }

    /// Returns the event's name, in `SCREAMING_SNAKE_CASE`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.into()
    }
}
