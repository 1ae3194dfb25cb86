//! A sink that stores everything in memory, for tests.

use std::sync::Arc;

use futures::future::BoxFuture;
use parking_lot::Mutex;

use super::{EventSink, SinkError};
use crate::record::{Delta, Event, RunId};

/// Stores the events and deltas of all runs in memory. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Recorder {
    recorded: Arc<Mutex<RecordedEvents>>,
}

#[derive(Debug, Default)]
struct RecordedEvents {
    events: Vec<Arc<Event>>,
    deltas: Vec<Delta>,
}

impl Recorder {
    /// Creates an empty recorder.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the events so far.
    #[must_use]
    pub fn events(&self) -> Vec<Arc<Event>> {
        self.recorded.lock().events.clone()
    }

    /// Returns the deltas so far.
    #[must_use]
    pub fn deltas(&self) -> Vec<Delta> {
        self.recorded.lock().deltas.clone()
    }
}

impl EventSink for Recorder {
    fn name(&self) -> &'static str {
        "recorder"
    }

    fn event<'a>(&'a self, _: &'a RunId, event: &'a Arc<Event>) -> BoxFuture<'a, Result<(), SinkError>> {
        self.recorded.lock().events.push(Arc::clone(event));
        Box::pin(std::future::ready(Ok(())))
    }

    fn delta(&self, _: &RunId, delta: &Delta) {
        self.recorded.lock().deltas.push(delta.clone());
    }
}
