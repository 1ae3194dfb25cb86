//! Folder for the files of runs, under names that cannot lead out of it: the original names come from tools, possibly from
//! a model.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use positronic_core::record::sha256;

use crate::app::{numbered_name, safe_file_name};
use positronic_core::private;

/// How many files of one name there may be.
const MOST: usize = 1000;

/// A folder of saved files.
#[derive(Debug, Clone)]
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    /// Returns the folder of a conversation. An id that cannot be a file name becomes one with a hash of the id, so that no two
    /// conversations share a folder.
    pub(crate) fn of_conversation(parent: &Path, conversation: &str) -> Self {
        let mut name = safe_file_name(&conversation.replace(['/', '\\'], "_"));
        if name != conversation {
            name.push('-');
            name.extend(sha256(conversation.as_bytes()).chars().take(16));
        }
        Self(parent.join(name))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Saves a file, and returns its path. A file is never replaced: the same content is saved once, and other content under
    /// the same name gets a number.
    pub(crate) fn save(&self, name: &str, bytes: &[u8]) -> io::Result<PathBuf> {
        private::make_folder(&self.0)?;
        let name = safe_file_name(name);
        for number in 1..=MOST {
            let path = self.0.join(numbered_name(&name, number));
            match private::options().write(true).create_new(true).open(&path) {
                Ok(mut file) => {
                    let written = file.write_all(bytes);
                    if written.is_err() {
                        _ = fs::remove_file(&path);
                    }
                    return written.map(|()| path);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    if is_same(&path, bytes) {
                        return Ok(path);
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other(format!("there are {MOST} files of that name")))
    }
}

/// Says whether a file has this content. A link has not: it may lead anywhere.
fn is_same(path: &Path, bytes: &[u8]) -> bool {
    let length = u64::try_from(bytes.len()).ok();
    fs::symlink_metadata(path).is_ok_and(|known| known.is_file() && Some(known.len()) == length)
        && fs::read(path).is_ok_and(|known| known == bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn save_replaces_no_file_and_saves_the_same_content_once() {
        let parent = tempfile::tempdir().unwrap();
        let folder = Folder::of_conversation(parent.path(), "c-1");
        let save = |bytes: &[u8]| folder.save("list.md", bytes).unwrap();

        let (first, second, again) = (save(b"eggs"), save(b"milk"), save(b"eggs"));

        assert_eq!(first, parent.path().join("c-1/list.md"));
        assert_eq!(second, parent.path().join("c-1/list (2).md"));
        assert_eq!((again, fs::read(&first).unwrap()), (first, b"eggs".to_vec()));
    }

    #[test]
    fn each_conversation_has_a_folder_and_none_leads_out() {
        let parent = Path::new("files");
        let long = "a".repeat(200);
        let ids = [
            "x",
            "alice/x",
            "carol/x",
            "alice\\x",
            "alice_x",
            "a/../x",
            "..",
            "../x",
            "/x",
            ".x",
            " x",
            &long,
            &long[1..],
        ];

        let folders = ids.map(|id| Folder::of_conversation(parent, id).0);

        assert_eq!((&folders[0], &folders[4]), (&parent.join("x"), &parent.join("alice_x")), "a plain name stays");
        assert!(folders.iter().all(|folder| folder.parent() == Some(parent)), "{folders:?}");
        let different: std::collections::BTreeSet<_> = folders.iter().collect();
        assert_eq!(different.len(), ids.len(), "{folders:?}");
    }

    #[test]
    #[cfg(unix)]
    fn save_follows_no_link() {
        let parent = tempfile::tempdir().unwrap();
        let folder = Folder::of_conversation(parent.path(), "c");
        fs::create_dir_all(folder.path()).unwrap();
        let outside = parent.path().join("outside");
        std::os::unix::fs::symlink(&outside, folder.path().join("list.md")).unwrap();

        let saved = folder.save("list.md", b"eggs").unwrap();

        assert_eq!(saved, folder.path().join("list (2).md"));
        assert!(!outside.exists());
    }
}
