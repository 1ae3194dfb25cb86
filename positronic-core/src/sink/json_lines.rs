//! A sink that writes each event as a line of JSON.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;

use super::{EventSink, SinkError};
use crate::record::{Event, RunId};

/// Writes each event as one line of JSON, and flushes after it.
pub struct JsonLines<W> {
    writer: Mutex<W>,
}

impl<W: Write + Send + 'static> JsonLines<W> {
    /// Makes a sink over a writer.
    pub const fn new(writer: W) -> Self {
        Self { writer: Mutex::new(writer) }
    }

    fn write(&self, event: &Event) -> Result<(), SinkError> {
        let fails = |error: &dyn std::fmt::Display| SinkError(format!("an event could not be written: {error}"));
        let mut line = event.to_json().map_err(|error| fails(&error))?;
        line.push('\n');
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        writer.write_all(line.as_bytes()).and_then(|()| writer.flush()).map_err(|error| fails(&error))
    }
}

impl<W: Write + Send + 'static> EventSink for JsonLines<W> {
    fn name(&self) -> &'static str {
        "json lines"
    }

    fn event<'a>(&'a self, _: &'a RunId, event: &'a Arc<Event>) -> BoxFuture<'a, Result<(), SinkError>> {
        Box::pin(std::future::ready(self.write(event)))
    }
}

impl<W> std::fmt::Debug for JsonLines<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JsonLines")
    }
}
