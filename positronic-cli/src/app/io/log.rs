//! Log of the process: the `tracing` events of all crates, one line each on stderr.
//!
//! `POSITRONIC_LOG` filters them, by level and by the crate or module that they come from: `warn` by default, `off`, `info,positronic_core::runner=debug`.
//! `POSITRONIC_LOG_FORMAT=json` makes each line a JSON object. A display that paints the terminal holds the lines back and prints
//! them above itself.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer as _, Registry, fmt};

use super::output::Output;
use crate::render::{escaped_json, one_line};

/// The maximum number of lines that a display holds back.
const MAX_BUFFERED: usize = 1000;

/// What is logged, and how.
#[derive(Debug, Clone, Default)]
pub(crate) struct LogSettings {
    /// The filter.
    pub(crate) filter: Option<String>,
    /// `json`, or text by default.
    pub(crate) format: Option<String>,
}

/// The lines of the log, on their way to stderr. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Log(Option<Arc<LogLines>>);

struct LogLines {
    err: Output,
    buffer: Mutex<Buffer>,
}

#[derive(Default)]
struct Buffer {
    /// How many displays hold the lines back.
    displays: usize,
    lines: VecDeque<String>,
    /// How many lines were dropped.
    lost: usize,
}

impl Log {
    /// Starts the log of the process. A filter that cannot be read is reported, and counts as unset.
    pub(crate) fn start(settings: &LogSettings, err: &Output) -> Self {
        let log = Self::to(err.clone());
        let (subscriber, problem) = log.subscriber(settings);
        // A program that uses this library may have set its own.
        _ = subscriber.try_init();
        if let Some(problem) = problem {
            err.say(&format!("{problem}\n"));
        }
        log
    }

    fn to(err: Output) -> Self {
        Self(Some(Arc::new(LogLines { err, buffer: Mutex::default() })))
    }

    /// Returns the subscriber that writes the log, and what is wrong with the settings.
    fn subscriber(&self, settings: &LogSettings) -> (impl tracing::Subscriber + use<>, Option<String>) {
        let mut problem = None;
        // rmcp warns of every error with which a client is answered, and clients show the lines of `mcp` to their users.
        let default = || Targets::new().with_default(LevelFilter::WARN).with_target("rmcp", LevelFilter::ERROR);
        let targets = settings.filter.as_ref().map_or_else(default, |filter| {
            filter.parse().unwrap_or_else(|error| {
                problem = Some(format!(
                    "POSITRONIC_LOG: cannot read the filter `{}`: {error}; logging warnings and errors",
                    one_line(filter)
                ));
                default()
            })
        });
        let is_json = settings.format.as_deref() == Some("json");
        if let Some(format) = settings.format.as_ref().filter(|format| !matches!(format.as_str(), "json" | "text")) {
            problem.get_or_insert(format!(
                "POSITRONIC_LOG_FORMAT: unknown format `{}`; use `json` or `text`",
                one_line(format)
            ));
        }
        let lines =
            fmt::layer::<Registry>().with_ansi(false).with_writer(MakeEventWriter { log: self.clone(), is_json });
        let layer = if is_json { lines.json().flatten_event(true).boxed() } else { lines.boxed() };
        (Registry::default().with(layer).with(targets), problem)
    }

    /// Holds the lines back until the guard is dropped.
    pub(crate) fn buffer(&self) -> BufferedLog {
        if let Some(lines) = &self.0 {
            lines.buffer().displays += 1;
        }
        BufferedLog(self.clone())
    }

    fn line(&self, line: String) {
        let Some(lines) = &self.0 else { return };
        let mut buffer = lines.buffer();
        if buffer.displays == 0 {
            return lines.err.log(&(line + "\n"));
        }
        buffer.lines.push_back(line);
        if buffer.lines.len() > MAX_BUFFERED {
            buffer.lines.pop_front();
            buffer.lost += 1;
        }
    }
}

impl LogLines {
    fn buffer(&self) -> MutexGuard<'_, Buffer> {
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Buffer {
    fn take(&mut self) -> Vec<String> {
        let lost = std::mem::take(&mut self.lost);
        let lost = (lost > 0)
            .then(|| format!("lines of the log that were dropped, since the display did not show them: {lost}"));
        lost.into_iter().chain(self.lines.drain(..)).collect()
    }
}

/// The lines that a display holds back.
pub(crate) struct BufferedLog(Log);

impl BufferedLog {
    /// Takes the lines since the last time.
    pub(crate) fn take(&self) -> Vec<String> {
        self.0.0.as_ref().map(|lines| lines.buffer().take()).unwrap_or_default()
    }
}

impl Drop for BufferedLog {
    fn drop(&mut self) {
        let Some(lines) = &self.0.0 else { return };
        let mut buffer = lines.buffer();
        buffer.displays = buffer.displays.saturating_sub(1);
        if buffer.displays == 0 {
            buffer.take().into_iter().for_each(|line| lines.err.log(&(line + "\n")));
        }
    }
}

/// Makes a writer of each event.
struct MakeEventWriter {
    log: Log,
    is_json: bool,
}

/// The writer of an event, which gets its text at once.
struct EventWriter<'a>(&'a MakeEventWriter);

impl<'a> MakeWriter<'a> for MakeEventWriter {
    type Writer = EventWriter<'a>;

    fn make_writer(&'a self) -> EventWriter<'a> {
        EventWriter(self)
    }
}

impl Write for EventWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        // Errors may quote texts of models and of unauthenticated callers.
        let line = if self.0.is_json { escaped_json(text.trim_end()) } else { one_line(text.trim_end()) };
        self.0.log.line(line);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
