//! A run as it reads in a snapshot.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::Value;

use crate::projection::{Prompts, transcript};
use crate::record::Event;
use crate::runner::Settled;

/// A run up to where it has ended or waits: its events, its transcript and its state, as text.
#[derive(Debug, Clone)]
pub struct Story {
    settled: Settled,
    events: Vec<Arc<Event>>,
    state: Value,
}

/// How many characters of an event's fields a line of [`Story::events`] shows.
const WIDTH: usize = 120;

impl Story {
    pub(super) const fn new(settled: Settled, events: Vec<Arc<Event>>, state: Value) -> Self {
        Self { settled, events, state }
    }

    /// Returns what the run came to.
    #[must_use]
    pub const fn settled(&self) -> &Settled {
        &self.settled
    }

    /// Returns the events themselves.
    #[must_use]
    pub fn log(&self) -> &[Arc<Event>] {
        &self.events
    }

    /// Writes an event a line: its number, path and name, and its fields, shortened to 120 characters. Times are left
    /// out.
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

    /// Writes the events as they are stored, a JSON object a line.
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

    /// Writes the records of all loops as a conversation.
    #[must_use]
    pub fn transcript(&self) -> String {
        transcript(&Prompts::of(self.events.iter().map(|event| &**event)))
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
