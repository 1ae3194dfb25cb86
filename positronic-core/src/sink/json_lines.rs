//! A sink that writes each event as a line of JSON.

use std::io::Write;
use std::sync::Arc;

use derive_where::derive_where;
use futures::future::BoxFuture;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;

use super::{EventSink, SinkError};
use crate::record::{Event, RunId};

/// Writes each event as one line of JSON, and flushes after it.
///
/// It may block: an unread pipe blocks the sink, but not the run.
#[derive_where(Debug)]
pub struct JsonLines<W> {
    #[derive_where(skip)]
    writer: Arc<Mutex<W>>,
}

impl<W: Write + Send + 'static> JsonLines<W> {
    /// Creates a sink that writes to a writer.
    pub fn new(writer: W) -> Self {
        Self { writer: Arc::new(Mutex::new(writer)) }
    }
}

fn fails(error: &dyn std::fmt::Display) -> SinkError {
    SinkError(format!("cannot write the event: {error}"))
}

impl<W: Write + Send + 'static> EventSink for JsonLines<W> {
    fn name(&self) -> &'static str {
        "json lines"
    }

    fn event<'a>(&'a self, _: &'a RunId, event: &'a Arc<Event>) -> BoxFuture<'a, Result<(), SinkError>> {
        Box::pin(async move {
            let mut line = event.to_json().map_err(|error| fails(&error))?;
            line.push('\n');
            let mut writer = Arc::clone(&self.writer).lock_owned().await;
            let write = move || writer.write_all(line.as_bytes()).and_then(|()| writer.flush());
            spawn_blocking(write).await.map_err(|error| fails(&error))?.map_err(|error| fails(&error))
        })
    }
}
