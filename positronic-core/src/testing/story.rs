//! A run as text for snapshots.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::Value;

use crate::projection::timeline::Timeline;
use crate::projection::transcript;
use crate::record::Event;
use crate::runner::Settled;

/// A run up to where it has ended or waits: its events, its transcript and its state, as text.
#[derive(Debug, Clone)]
pub struct Story {
    settled: Settled,
    events: Vec<Arc<Event>>,
    state: Value,
}

/// The maximum number of characters of an event's fields in [`Story::events`].
const WIDTH: usize = 120;

impl Story {
    pub(super) const fn new(settled: Settled, events: Vec<Arc<Event>>, state: Value) -> Self {
        Self { settled, events, state }
    }

    /// Returns the outcome of the run.
    #[must_use]
    pub const fn settled(&self) -> &Settled {
        &self.settled
    }

    /// Returns the events.
    #[must_use]
    pub fn log(&self) -> &[Arc<Event>] {
        &self.events
    }

    /// Writes one line per event: its number, path and name, and its fields, truncated to 120 characters. Times
    /// are omitted.
    #[must_use]
    pub fn events(&self) -> String {
        let mut text = String::new();
        for event in &self.events {
            let mut fields = event.kind.to_value();
            if let Some(object) = fields.as_object_mut() {
                object.remove("type");
            }
            fields.sort_all_objects();
            let path = if event.path.is_root() { "·" } else { event.path.as_str() };
            _ = write!(text, "{:>3} {path} {}", event.seq.0, event.kind.name());
            if fields.as_object().is_some_and(|fields| !fields.is_empty()) {
                _ = write!(text, " {}", shortened(&fields.to_string()));
            }
            text.push('\n');
        }
        text
    }

    /// Writes the events as they are stored, one JSON object per line.
    #[must_use]
    pub fn json_lines(&self) -> String {
        let mut text = String::new();
        for event in &self.events {
            if let Ok(line) = event.to_json() {
                text.push_str(&line);
                text.push('\n');
            }
        }
        text
    }

    /// Returns the run as people see it.
    #[must_use]
    pub fn timeline(&self) -> Timeline {
        Timeline::of(self.events.iter().map(|event| &**event))
    }

    /// Writes the loops of the run as text: messages, answers, calls and outcomes.
    #[must_use]
    pub fn transcript(&self) -> String {
        transcript(&self.timeline())
    }

    /// Returns the state of the brain.
    #[must_use]
    pub const fn state(&self) -> &Value {
        &self.state
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(WIDTH) {
        Some((cut, _)) => format!("{}…", text.get(..cut).unwrap_or_default()),
        None => text.to_owned(),
    }
}
