//! Capabilities of models: which kinds of files they read.

use indexmap::IndexMap;
use positronic_core::prices::longest_match;
use positronic_core::record::FileKind;
use serde::{Deserialize, Serialize};

/// Which kinds of files models read, as of a date.
///
/// A key is `provider/model` or a model's name, and matches as in a [`PriceTable`](positronic_core::prices::PriceTable). A request with a file
/// that its model does not read fails before it is sent; a file in a tool's result is left out then, and the model reads the line about
/// it. A model without a match is sent all files, and its provider decides.
///
/// ```toml
/// as_of = "2026-11-01"
///
/// [inputs]
/// "openai/gpt-4o" = ["image", "pdf"]
/// "ollama/llama3.2" = []
/// ```
///
/// **Models change.** Nothing here updates the table; set your own where it is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Capabilities {
    /// The date of the table, as `YYYY-MM-DD`.
    pub as_of: String,
    /// The kinds of files, by provider and model. Text is always read.
    pub inputs: IndexMap<String, Vec<FileKind>>,
}

use FileKind::{Audio, Image, Pdf, Video};

/// The bundled table.
const BUNDLED: [(&str, &[FileKind]); 19] = [
    ("anthropic/*", &[Image, Pdf]),
    ("gemini/*", &[Image, Pdf, Audio, Video]),
    ("gemini/gemma*", &[Image]),
    ("openai/gpt-5*", &[Image, Pdf]),
    ("openai/gpt-4.1*", &[Image, Pdf]),
    ("openai/gpt-4o*", &[Image, Pdf]),
    ("openai/gpt-4o-audio*", &[Audio]),
    ("openai/gpt-audio*", &[Audio]),
    ("openai/gpt-4-turbo*", &[Image]),
    ("openai/gpt-4", &[]),
    ("openai/gpt-3.5*", &[]),
    ("openai/o1", &[Image, Pdf]),
    ("openai/o1-mini", &[]),
    ("openai/o3", &[Image, Pdf]),
    ("openai/o3-pro", &[Image, Pdf]),
    ("openai/o3-mini", &[]),
    ("openai/o4-mini", &[Image, Pdf]),
    ("deepseek/*", &[]),
    ("deepseek-*", &[]),
];

impl Capabilities {
    /// Returns the table that is bundled with the library, from the providers' public descriptions of their models as known in
    /// November 2026.
    #[must_use]
    pub fn bundled() -> Self {
        let inputs = BUNDLED.into_iter().map(|(model, kinds)| (model.to_owned(), kinds.to_vec())).collect();
        Self { as_of: "2026-11-23".to_owned(), inputs }
    }

    /// Returns whether a model reads files of a kind; `None` if the table does not know the model, and for other documents.
    #[must_use]
    pub fn reads(&self, provider: &str, model: &str, kind: FileKind) -> Option<bool> {
        match kind {
            FileKind::Text => return Some(true),
            Image | Audio | Video | Pdf => {}
            // The table has no models of other documents.
            _ => return None,
        }
        longest_match(&self.inputs, provider, model).map(|kinds| kinds.contains(&kind))
    }

    /// Returns the kinds of files that a model reads, as words for people: `images and PDFs`.
    #[must_use]
    pub fn describe(&self, provider: &str, model: &str) -> String {
        let kinds = longest_match(&self.inputs, provider, model).map_or(&[][..], Vec::as_slice);
        let words: Vec<_> = kinds
            .iter()
            .map(|kind| match kind {
                Image => "images",
                Audio => "audio",
                Video => "videos",
                Pdf => "PDFs",
                _ => "other files",
            })
            .collect();
        match words.split_last() {
            None => "text".to_owned(),
            Some((last, [])) => format!("text and {last}"),
            Some((last, first)) => format!("text, {} and {last}", first.join(", ")),
        }
    }
}

impl Default for Capabilities {
    fn default() -> Self {
        Self::bundled()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_model_may_read_anything() {
        let table = Capabilities::bundled();

        assert_eq!(table.reads("openai", "gpt-4o-mini", Image), Some(true));
        assert_eq!(table.reads("openai", "gpt-4o-audio-preview", Image), Some(false));
        assert_eq!(table.reads("openai", "o3-mini-2025-01-31", Pdf), Some(false));
        assert_eq!(table.reads("anthropic", "claude-sonnet-4-5", Video), Some(false));
        assert_eq!(table.reads("openai", "my-own", Video), None);
        assert_eq!(table.reads("openai", "gpt-3.5-turbo", FileKind::Text), Some(true));
        assert_eq!(table.describe("gemini", "gemini-2.5-pro"), "text, images, PDFs, audio and videos");
        assert_eq!(table.describe("openai", "gpt-3.5-turbo"), "text");
    }
}
