//! Allowed names of files in an output folder.

use std::path::{Component, Path, PathBuf};

use positronic_core::record::is_invisible;

use super::FolderError;

/// The maximum length of a path, in bytes: a quarter of Linux's, to leave room for the folder's own path.
const MAX_PATH: usize = 1024;

/// The maximum length of a part of a path, in bytes, as on most file systems.
const MAX_PART: usize = 255;

/// The prefix of internal files.
pub(crate) const OWN: &str = ".positronic-";

/// Validates the path of a file or a folder, and returns it without its `.` parts.
///
/// The folder's capability confines every path; this rejects names that would deceive or hinder people.
pub(super) fn checked(path: &str) -> Result<PathBuf, FolderError> {
    let refused = |reason: &'static str| Err(FolderError::Name { path: path.escape_debug().to_string(), reason });
    if path.is_empty() {
        return refused("it is empty");
    }
    if path.len() > MAX_PATH {
        return refused("it is longer than 1024 bytes");
    }
    if path.chars().any(char::is_control) {
        return refused("it contains a control character");
    }
    if path.chars().any(is_invisible) {
        return refused("it contains a character that cannot be seen, or that changes the direction of writing");
    }
    if path.contains('\\') {
        return refused("it contains a backslash; parts are separated by `/`");
    }
    let mut inside = PathBuf::new();
    for component in Path::new(path).components() {
        match component {
            Component::CurDir => {}
            Component::Normal(part) => {
                let text = part.to_string_lossy();
                if text.len() > MAX_PART {
                    return refused("one of its parts is longer than 255 bytes");
                }
                if text.trim() != text {
                    return refused("one of its parts begins or ends with a space");
                }
                if text.starts_with(OWN) {
                    return refused("names that begin with `.positronic-` are the toolbox's own");
                }
                if [".git", "git~1"].iter().any(|name| text.eq_ignore_ascii_case(name)) {
                    return refused("`.git` is for Git, which runs programs that its configuration names");
                }
                inside.push(part);
            }
            Component::ParentDir => return refused("`..` leads out of the folder"),
            Component::RootDir | Component::Prefix(_) => return refused("it is not relative to the folder"),
        }
    }
    Ok(inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_names_are_normalised() {
        for (path, inside) in [
            ("a.md", "a.md"),
            ("./a/./b.md", "a/b.md"),
            ("a//b", "a/b"),
            ("写作/ü…", "写作/ü…"),
            ("..a", "..a"),
            (".gitignore", ".gitignore"),
        ] {
            assert_eq!(checked(path).unwrap(), Path::new(inside), "{path}");
        }
        assert_eq!(checked(".").unwrap(), Path::new(""), "the folder itself, which no file can be");
    }

    #[test]
    fn deceptive_names_are_rejected_with_a_reason() {
        let long = "x".repeat(256);
        let deep = "x/".repeat(600);
        for (path, reason) in [
            ("", "empty"),
            ("/etc/passwd", "relative"),
            ("../a", "`..`"),
            ("a/../../b", "`..`"),
            ("a\\..\\b", "backslash"),
            ("a\0b", "control"),
            ("a\nb", "control"),
            ("invoice\u{202e}fdp.exe", "direction"),
            ("a\u{200b}.md", "cannot be seen"),
            ("a\u{3164}.md", "cannot be seen"),
            ("\u{2800}", "cannot be seen"),
            ("json\u{fe0f}.py", "cannot be seen"),
            ("json\u{e0100}.py", "cannot be seen"),
            ("a /b", "space"),
            (".positronic-1/x", "own"),
            (".git/config", "runs programs"),
            ("a/.GIT/hooks/post-checkout", "runs programs"),
            (long.as_str(), "255"),
            (deep.as_str(), "1024"),
        ] {
            let error = checked(path).unwrap_err().to_string();
            assert!(error.contains(reason), "{path:?}: {error}");
        }
    }
}
