//! Documents from Markdown files.

use std::path::Path;

use positronic_core::{Error, Result};

use super::{Document, DocumentSource, MemoryIndex};

/// The Markdown files of a folder and its subfolders.
///
/// A document's name is its first heading (`# …`), or else the file's path in the folder without `.md`. A front matter
/// between lines of `---` is not part of the text; its line `tags: one, two` sets the tags. Files and folders
/// whose names begin with a dot are skipped. [`MarkdownFolder::open`] reads everything once.
///
/// ```no_run
/// use positronic_plugins::{Blueprints, MarkdownFolder};
///
/// # fn main() -> positronic_core::Result<()> {
/// let blueprints = Blueprints::new(MarkdownFolder::open("docs/blueprints")?);
/// # let _ = blueprints;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct MarkdownFolder {
    index: MemoryIndex,
}

impl MarkdownFolder {
    /// Reads and indexes a folder.
    ///
    /// # Errors
    ///
    /// An [`Error`] that names the folder or the file that cannot be read, or is not UTF-8.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self> {
        let folder = folder.as_ref();
        let mut documents = Vec::new();
        read_folder(folder, folder, &mut documents)?;
        Ok(Self { index: MemoryIndex::new(documents) })
    }
}

impl DocumentSource for MarkdownFolder {
    async fn search(&self, query: &str, limit: usize) -> Result<Vec<Document>> {
        Ok(self.index.find(query, limit))
    }
}

/// Reads in the order of names, so that the same folder always gives the same index.
fn read_folder(root: &Path, folder: &Path, documents: &mut Vec<Document>) -> Result<()> {
    let failed = |path: &Path, error: std::io::Error| Error::new(format!("cannot read `{}`: {error}", path.display()));
    let entries = std::fs::read_dir(folder).and_then(Iterator::collect::<std::io::Result<Vec<_>>>);
    let mut entries = entries.map_err(|error| failed(folder, error))?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries.into_iter().filter(|entry| !is_hidden(entry)) {
        let path = entry.path();
        // Links to folders are not followed, since they may be circular.
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            read_folder(root, &path, documents)?;
        } else if path.extension().is_some_and(|extension| extension == "md") {
            let text = std::fs::read_to_string(&path).map_err(|error| failed(&path, error))?;
            let name = path.strip_prefix(root).unwrap_or(&path).with_extension("");
            let name = name.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("/");
            documents.push(document(name, &text));
        }
    }
    Ok(())
}

fn is_hidden(entry: &std::fs::DirEntry) -> bool {
    entry.file_name().to_string_lossy().starts_with('.')
}

fn document(name: String, text: &str) -> Document {
    let text = text.replace("\r\n", "\n");
    let (matter, text) = match text.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---\n")) {
        Some((matter, text)) => (matter, text),
        None => ("", text.as_str()),
    };
    let tags = matter.lines().find_map(|line| line.trim().strip_prefix("tags:")).unwrap_or_default();
    let tags =
        tags.trim().trim_start_matches('[').trim_end_matches(']').split(',').map(|tag| tag.trim().trim_matches('"'));
    let (heading, text) =
        match text.trim_start().strip_prefix("# ").map(|rest| rest.split_once('\n').unwrap_or((rest, ""))) {
            Some((heading, text)) => (Some(heading.trim().to_owned()), text),
            None => (None, text),
        };
    Document::new(heading.unwrap_or(name), text.trim()).tags(tags.filter(|tag| !tag.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_sets_its_name_and_tags() {
        let plain = document("shop/tea".to_owned(), "Tea is hot.\n\n# Later\n");
        assert_eq!(plain, Document::new("shop/tea", "Tea is hot.\n\n# Later"));

        let whole = document(
            "tea".to_owned(),
            "---\r\ntitle: x\r\ntags: [hot, \"black tea\"]\r\n---\r\n\r\n# All about tea\r\n\r\nIt is hot.\r\n",
        );
        assert_eq!(whole, Document::new("All about tea", "It is hot.").tags(["hot", "black tea"]));

        assert_eq!(document("a".to_owned(), "# Only"), Document::new("Only", ""));
        assert_eq!(document("a".to_owned(), "---\nno end"), Document::new("a", "---\nno end"));
    }
}
