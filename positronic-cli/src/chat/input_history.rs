//! Input history: the texts that were entered in this and earlier chats.
//!
//! They are stored beside the store, in a file of JSON lines that only its owner can read.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::app::replace_file;

/// How many texts are read, and with how many lines the file is rewritten.
const KEPT: usize = 500;
const TOO_MANY: usize = 1000;

/// The texts, and which of them is shown.
#[derive(Debug, Default)]
pub(super) struct InputHistory {
    /// The last one at the end.
    texts: Vec<String>,
    at: Option<usize>,
    /// What was written before an earlier text was shown.
    draft: String,
}

impl InputHistory {
    pub(super) fn new(texts: Vec<String>) -> Self {
        Self { texts, ..Self::default() }
    }

    /// Adds a text that was sent.
    pub(super) fn add(&mut self, text: &str) {
        self.at = None;
        if self.texts.last().is_none_or(|last| last != text) {
            self.texts.push(text.to_owned());
        }
    }

    /// Returns the text before the one that is shown; the first time, `current` becomes the draft.
    pub(super) fn previous(&mut self, current: &str) -> Option<String> {
        let earlier = self.at.unwrap_or(self.texts.len()).checked_sub(1)?;
        if self.at.is_none() {
            current.clone_into(&mut self.draft);
        }
        self.at = Some(earlier);
        self.texts.get(earlier).cloned()
    }

    /// Returns the text after the one that is shown, or the draft after the last one.
    pub(super) fn next(&mut self) -> Option<String> {
        let later = self.at? + 1;
        self.at = Some(later).filter(|later| *later < self.texts.len());
        Some(self.texts.get(later).cloned().unwrap_or_else(|| std::mem::take(&mut self.draft)))
    }
}

/// The file of a store's input history; a store in memory has none.
#[derive(Debug)]
pub(super) struct HistoryFile(Option<PathBuf>);

impl HistoryFile {
    pub(super) fn of(store: Option<&Path>) -> Self {
        Self(store.map(|store| {
            let mut name = store.file_name().unwrap_or_default().to_owned();
            name.push("-typed");
            store.with_file_name(name)
        }))
    }

    /// Reads the texts. Damaged lines, or a file that cannot be read, are skipped.
    pub(super) fn read(&self) -> Vec<String> {
        let Some(text) = self.0.as_ref().and_then(|path| fs::read_to_string(path).ok()) else { return Vec::new() };
        let mut lines: Vec<&str> = text.lines().collect();
        let older = lines.len().saturating_sub(KEPT);
        let is_long = lines.len() > TOO_MANY;
        lines.drain(..older);
        if let (true, Some(path)) = (is_long, &self.0) {
            _ = replace_file(path, &(lines.join("\n") + "\n"));
        }
        lines.into_iter().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Appends a text.
    pub(super) fn add(&self, text: &str) -> io::Result<()> {
        let Some(path) = &self.0 else { return Ok(()) };
        // In one write, so that two chats do not mix their lines.
        open(path)?.write_all(format!("{}\n", serde_json::to_string(text)?).as_bytes())
    }
}

fn open(path: &Path) -> io::Result<File> {
    positronic_core::private::options().create(true).append(true).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn previous_and_next_walk_through_the_texts_and_return_to_the_draft() {
        let mut history = InputHistory::new(vec!["one".to_owned(), "two".to_owned()]);
        history.add("two");
        history.add("three");

        let back: Vec<_> = std::iter::from_fn(|| history.previous("draft")).collect();
        let forth: Vec<_> = std::iter::from_fn(|| history.next()).collect();

        assert_eq!(back, ["three", "two", "one"]);
        assert_eq!(forth, ["two", "three", "draft"]);
    }

    #[test]
    fn next_chat_reads_what_was_entered() {
        let folder = tempfile::tempdir().unwrap();
        let history = HistoryFile::of(Some(&folder.path().join("runs.db")));

        assert_eq!(history.read(), Vec::<String>::new());
        for text in ["one", "two\nlines \u{1b}", "ü"] {
            history.add(text).unwrap();
        }

        assert_eq!(history.read(), ["one", "two\nlines \u{1b}", "ü"]);
        let file = folder.path().join("runs.db-typed");
        #[cfg(unix)]
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&file).unwrap().permissions()) & 0o777, 0o600);
        fs::write(&file, "no json\n\"two\"\n").unwrap();
        assert_eq!(history.read(), ["two"], "a damaged line is skipped");
        assert_eq!(HistoryFile::of(None).read(), Vec::<String>::new());
    }

    #[test]
    fn long_file_is_rewritten() {
        let folder = tempfile::tempdir().unwrap();
        let history = HistoryFile::of(Some(&folder.path().join("runs.db")));
        let lines: String = (0..=TOO_MANY).map(|n| format!("\"{n}\"\n")).collect();
        fs::write(folder.path().join("runs.db-typed"), lines).unwrap();

        assert_eq!(history.read().last().unwrap(), "1000");

        let left = fs::read_to_string(folder.path().join("runs.db-typed")).unwrap();
        assert_eq!(left.lines().count(), KEPT);
    }
}
