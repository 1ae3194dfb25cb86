//! The lines of the events that were sent last: readers of a run that get the same event share its line.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use positronic_core::record::Event;
use serde_json::json;

use crate::redact::{REDACTED, Redact, redacted_answer};

/// The number of lines that are kept, and the most bytes of one.
const KEPT: usize = 64;
const MAX_BYTES: usize = 64 << 10;

/// The last lines.
#[derive(Default)]
pub(crate) struct SharedLines(Mutex<VecDeque<(Weak<Event>, Arc<str>)>>);

impl SharedLines {
    /// Returns the redacted line of an event; `None` if it cannot be encoded.
    pub(crate) async fn of(&self, event: &Arc<Event>, redact: Option<&Redact>) -> Option<Arc<str>> {
        let is_known = |(known, _): &&(Weak<Event>, Arc<str>)| std::ptr::eq(known.as_ptr(), Arc::as_ptr(event));
        if let Some((_, line)) = self.0.lock().iter().rev().find(is_known) {
            return Some(Arc::clone(line));
        }
        let line: Arc<str> = redacted_line(redact, event.to_json().ok()?).await.into();
        if line.len() <= MAX_BYTES {
            let mut kept = self.0.lock();
            if kept.len() >= KEPT {
                kept.pop_front();
            }
            kept.push_back((Arc::downgrade(event), Arc::clone(&line)));
        }
        Some(line)
    }
}

/// Redacts a line; one that cannot be redacted is withheld.
pub(crate) async fn redacted_line(redact: Option<&Redact>, line: String) -> String {
    match redact {
        Some(redact) => redacted_answer(redact, line).await.unwrap_or_else(|_| json!(REDACTED).to_string()),
        None => line,
    }
}
