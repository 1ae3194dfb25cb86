//! Input history of earlier chats: one JSON line per entry, in a file next to the store that only its owner can read.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::app::atomic_write::replace;

/// Maximum number of entries, and the number at which the file is rewritten.
const KEPT: usize = 500;
const TOO_MANY: usize = 1000;

/// The file, where there is one.
#[derive(Debug)]
pub(super) struct Past(Option<PathBuf>);

impl Past {
    /// Returns the history of a store; a store in memory has none.
    pub(super) fn of(store: Option<&Path>) -> Self {
        Self(store.map(|store| {
            let mut name = store.file_name().unwrap_or_default().to_owned();
            name.push("-typed");
            store.with_file_name(name)
        }))
    }

    /// Reads the entries, the last one at the end. Unreadable entries are skipped.
    pub(super) fn read(&self) -> Vec<String> {
        let Some(text) = self.0.as_ref().and_then(|path| fs::read_to_string(path).ok()) else { return Vec::new() };
        let mut lines: Vec<&str> = text.lines().collect();
        let older = lines.len().saturating_sub(KEPT);
        let many = lines.len() > TOO_MANY;
        lines.drain(..older);
        if let (true, Some(path)) = (many, &self.0) {
            _ = replace(path, &(lines.join("\n") + "\n"));
        }
        lines.into_iter().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Appends an entry.
    pub(super) fn add(&self, text: &str) -> io::Result<()> {
        let Some(path) = &self.0 else { return Ok(()) };
        // In one write, so that the lines of concurrent chats do not mix.
        open(path)?.write_all(format!("{}\n", serde_json::to_string(text)?).as_bytes())
    }
}

fn open(path: &Path) -> io::Result<File> {
    crate::app::private::options().create(true).append(true).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_there_in_the_next_chat() {
        let folder = tempfile::tempdir().unwrap();
        let past = Past::of(Some(&folder.path().join("runs.db")));

        assert_eq!(past.read(), Vec::<String>::new());
        for text in ["one", "two\nlines \u{1b}", "ü"] {
            past.add(text).unwrap();
        }

        assert_eq!(past.read(), ["one", "two\nlines \u{1b}", "ü"]);
        let file = folder.path().join("runs.db-typed");
        #[cfg(unix)]
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&file).unwrap().permissions()) & 0o777, 0o600);
        fs::write(&file, "no json\n\"two\"\n").unwrap();
        assert_eq!(past.read(), ["two"], "a line that is damaged is left out");
        assert_eq!(Past::of(None).read(), Vec::<String>::new());
    }

    #[test]
    fn the_file_does_not_grow_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        let past = Past::of(Some(&folder.path().join("runs.db")));
        let lines: String = (0..=TOO_MANY).map(|n| format!("\"{n}\"\n")).collect();
        fs::write(folder.path().join("runs.db-typed"), lines).unwrap();

        assert_eq!(past.read().last().unwrap(), "1000");

        let left = fs::read_to_string(folder.path().join("runs.db-typed")).unwrap();
        assert_eq!(left.lines().count(), KEPT);
    }
}
