//! The files that a person has attached to the next message of a chat.

use positronic_core::record::{Attachment, FileRef};

use crate::render::{one_line, words};

/// The files of the next message.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Attached(Vec<Attachment>);

impl Attached {
    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn add(&mut self, file: Attachment) {
        self.0.push(file);
    }

    /// Takes all files, for a message.
    pub(super) fn take(&mut self) -> Vec<Attachment> {
        std::mem::take(&mut self.0)
    }

    /// Puts the files of a refused message before the later ones.
    pub(super) fn put_back(&mut self, files: Vec<Attachment>) {
        self.0.splice(0..0, files);
    }

    /// Removes all files of a name, or all files without a name, and says so.
    pub(super) fn remove(&mut self, name: &str) -> String {
        let before = self.0.len();
        self.0.retain(|file| !name.is_empty() && file.file().name != name);
        match (before - self.0.len(), name) {
            (0, "") => "no file is attached".to_owned(),
            (0, name) => format!("no file `{}` is attached", one_line(name)),
            _ => self.list(),
        }
    }

    /// Lists the files in one line.
    pub(super) fn line(&self) -> Option<String> {
        (!self.is_empty()).then(|| {
            let files: Vec<FileRef> = self.0.iter().map(|file| file.file().clone()).collect();
            one_line(&format!("attached to the next message: {}", words::files(&files)))
        })
    }

    /// Lists the files, and says how to add and to remove some.
    pub(super) fn list(&self) -> String {
        match self.line() {
            Some(line) => format!("{line}\n/detach removes them, and /detach NAME removes one"),
            None => "no file is attached; /attach FILE adds one to the next message".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_listed_removed_by_name_and_returned_after_a_refusal() {
        let file = |name: &str| Attachment::new(name, "image/png", [1_u8, 2, 3]);
        let mut attached = Attached::default();
        assert_eq!(attached.remove(""), "no file is attached");
        attached.add(file("a.png"));
        attached.add(file("b\u{1b}.png"));

        insta::assert_snapshot!(attached.list(), @r"
        attached to the next message: a.png (image/png, 3 bytes), b␛.png (image/png, 3 bytes)
        /detach removes them, and /detach NAME removes one
        ");
        assert_eq!(attached.remove("c.png"), "no file `c.png` is attached");
        assert!(attached.remove("a.png").contains("message: b␛.png"));
        let sent = attached.take();
        attached.add(file("later.png"));
        attached.put_back(sent);
        assert!(attached.line().unwrap().ends_with("b␛.png (image/png, 3 bytes), later.png (image/png, 3 bytes)"));
        assert!(attached.remove("").starts_with("no file is attached; /attach FILE"));
    }
}
