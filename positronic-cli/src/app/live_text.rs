//! The text of streaming answers, for `watch` in another process.
//!
//! Deltas are not in the log. A process that works on the runs of a store in a file appends them to a file for each run beside the
//! store, in a folder that only its owner can read, and removes it when the run is over or released. A reader begins with the text so far; what
//! belongs to answers in the log is ignored by those who show it.
//! A file that cannot be written or read only means that no text is shown before its answer is complete.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::future::BoxFuture;
use positronic_core::record::{Delta, Event, EventKind, RunId, sha256};
use positronic_core::sink::{EventSink, SinkError};

use crate::app::ProjectStore;

/// The size from which a run's file begins anew with the next answer.
const LARGEST: u64 = 1 << 20;

/// The folder of the files beside a store.
#[derive(Debug, Clone)]
pub(crate) struct LiveText {
    folder: PathBuf,
}

impl LiveText {
    /// Returns the texts beside a store; `None` for a store in memory.
    pub(crate) fn beside(store: &ProjectStore) -> Option<Self> {
        let path = store.path.as_deref()?;
        let mut name = path.file_name()?.to_os_string();
        name.push("-live");
        Some(Self { folder: path.with_file_name(name) })
    }

    fn file(&self, run: &RunId) -> PathBuf {
        self.folder.join(sha256(run.as_str().as_bytes()))
    }

    fn append(&self, run: &RunId, delta: &Delta) -> std::io::Result<()> {
        private_folder(&self.folder)?;
        let mut line = serde_json::to_string(delta)?;
        line.push('\n');
        let mut file = OpenOptions::new().create(true).append(true).open(self.file(run))?;
        let is_full = file.metadata()?.len() >= LARGEST;
        // The pieces of an answer stay together.
        if is_full && delta.n == 0 {
            file.set_len(0)?;
        }
        if !is_full || delta.n == 0 { file.write_all(line.as_bytes()) } else { Ok(()) }
    }

    /// Returns a reader of a run's text.
    pub(crate) fn reader(&self, run: &RunId) -> LiveReader {
        LiveReader { file: self.file(run), position: 0, rest: String::new() }
    }
}

/// Creates a folder that only its owner can read.
fn private_folder(folder: &Path) -> std::io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

impl EventSink for LiveText {
    fn name(&self) -> &'static str {
        "live text"
    }

    fn event<'a>(&'a self, run: &'a RunId, event: &'a Arc<Event>) -> BoxFuture<'a, Result<(), SinkError>> {
        let file = self.file(run);
        let is_over = matches!(
            event.kind,
            EventKind::BrainComplete { .. } | EventKind::BrainError(_) | EventKind::BrainCancelled { .. }
        );
        if is_over && event.path.is_root() || matches!(event.kind, EventKind::RunReleased { .. }) {
            _ = fs::remove_file(file);
            // Fails while other runs have a file.
            _ = fs::remove_dir(&self.folder);
        }
        Box::pin(std::future::ready(Ok(())))
    }

    fn delta(&self, run: &RunId, delta: &Delta) {
        _ = self.append(run, delta);
    }
}

/// Reads the text of a run as it grows.
#[derive(Debug)]
pub(crate) struct LiveReader {
    file: PathBuf,
    position: u64,
    /// The beginning of a line that is not complete.
    rest: String,
}

impl LiveReader {
    /// Returns the deltas since the last time.
    pub(crate) fn read(&mut self) -> Vec<Delta> {
        self.new_text().unwrap_or_default();
        let end = self.rest.rfind('\n').map_or(0, |end| end + 1);
        let lines: String = self.rest.drain(..end).collect();
        lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    fn new_text(&mut self) -> std::io::Result<()> {
        let mut file = File::open(&self.file)?;
        if file.metadata()?.len() < self.position {
            // It was emptied.
            (self.position, self.rest) = (0, String::new());
        }
        file.seek(SeekFrom::Start(self.position))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        self.position += u64::try_from(bytes.len()).unwrap_or_default();
        self.rest.push_str(&String::from_utf8_lossy(&bytes));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use positronic_core::record::{DeltaKind, Path as CallPath, Seq, Timestamp};

    use super::*;

    fn delta(n: u32, text: &str) -> Delta {
        Delta {
            path: CallPath::parse("Chat/0").unwrap(),
            attempt: 0,
            generation: 0,
            part: 0,
            kind: DeltaKind::Text,
            call: None,
            tool: None,
            n,
            text: text.to_owned(),
        }
    }

    #[tokio::test]
    async fn reader_in_another_process_gets_the_text_so_far_and_what_follows() {
        let folder = tempfile::tempdir().unwrap();
        let live = LiveText { folder: folder.path().join("runs.db-live") };
        let run = RunId::new("one/../two");
        let texts = |reader: &mut LiveReader| reader.read().into_iter().map(|delta| delta.text).collect::<Vec<_>>();
        live.delta(&run, &delta(0, "The "));
        let mut reader = live.reader(&run);
        assert_eq!(texts(&mut reader), ["The "]);
        live.delta(&run, &delta(1, "sea"));
        assert_eq!((texts(&mut reader), texts(&mut reader)), (vec!["sea".to_owned()], Vec::new()));

        let event = |kind| {
            Arc::new(Event {
                seq: Seq(1),
                at: Timestamp(1),
                epoch: None,
                clock: None,
                with_next: false,
                path: CallPath::root(),
                kind,
            })
        };
        live.event(&run, &event(EventKind::BrainComplete { result: serde_json::Value::Null })).await.unwrap();
        assert!(!live.folder.exists());
        assert!(texts(&mut reader).is_empty());
    }
}
