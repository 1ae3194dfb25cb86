//! What a file in an output folder may be called.

use std::path::{Component, Path, PathBuf};

use super::FolderError;
use crate::record::is_invisible;

/// How long a path may be, in bytes: a quarter of what Linux takes, so that the folder's own path has room before it.
const MAX_PATH: usize = 1024;

/// How long one part of a path may be, in bytes: what most file systems take.
const MAX_PART: usize = 255;

/// How the names of files begin that are the toolbox's own.
pub(in crate::toolbox) const OWN: &str = ".positronic-";

/// Checks the path of a file or a folder, and returns it without its `.` parts.
///
/// The folder's capability keeps every path inside; this refuses what would deceive or hinder people, and says why.
pub(super) fn checked(path: &str) -> Result<PathBuf, FolderError> {
    let refused = |reason: &'static str| Err(FolderError::Name { path: path.escape_debug().to_string(), reason });
    if path.is_empty() {
        return refused("it is empty");
    }
    if path.len() > MAX_PATH {
        return refused("it is longer than 1024 bytes");
    }
    if path.chars().any(char::is_control) {
        return refused("it holds a control character");
    }
    if path.chars().any(is_invisible) {
        return refused("it holds a character that cannot be seen, or that changes the direction of writing");
    }
    if path.contains('\\') {
        return refused("it holds a backslash; parts are separated by `/`");
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
    fn plain_names_stay_and_dots_go() {
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
    fn names_that_lead_out_or_deceive_are_refused_with_a_reason() {
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
