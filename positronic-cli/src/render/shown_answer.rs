//! What people see of an answer: its texts, the provider's tools, files and sources.

use std::borrow::Cow;
use std::collections::HashSet;

use positronic_core::record::{Citation, FileRef, Part, ProviderToolUse};

/// What people see of an answer.
#[derive(Debug, Default)]
pub(crate) struct ShownAnswer<'a> {
    /// The visible parts, in order.
    pub(crate) parts: Vec<ShownPart<'a>>,
    /// The sources of the texts, in order and each once.
    pub(crate) sources: Vec<&'a Citation>,
}

/// A visible part of an answer.
#[derive(Debug)]
pub(crate) enum ShownPart<'a> {
    /// A text.
    Text(Cow<'a, str>),
    /// The reasoning of structured actions.
    Reason(&'a str),
    /// What a tool of the provider did.
    Tool(&'a ProviderToolUse),
    /// A file that the model made.
    File(&'a FileRef),
}

impl<'a> ShownAnswer<'a> {
    /// Reads the parts of an answer. Texts between which there are only sources are one text, as the model wrote them.
    pub(crate) fn of(parts: &'a [Part]) -> Self {
        let mut shown = Self::default();
        let mut continues = false;
        for part in parts {
            let is_source = matches!(part, Part::Citations { .. });
            match part {
                Part::Text { text } | Part::Refusal { text } => shown.text(text, continues),
                // Reasoning of a provider has its own data.
                Part::Reasoning { text, data: None } if !text.trim().is_empty() => {
                    shown.parts.push(ShownPart::Reason(text));
                }
                Part::ProviderTool(used) => shown.parts.push(ShownPart::Tool(used)),
                Part::File { file, .. } => shown.parts.push(ShownPart::File(file.file())),
                Part::Citations { citations, .. } => shown.sources.extend(citations),
                _ => {}
            }
            continues = is_source && (continues || matches!(shown.parts.last(), Some(ShownPart::Text(_))));
        }
        shown.parts.retain(|part| !matches!(part, ShownPart::Text(text) if text.trim().is_empty()));
        let mut known = HashSet::new();
        shown.sources.retain(|source| known.insert((&source.url, &source.title)));
        shown
    }

    /// Returns whether people see nothing of it.
    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty() && self.sources.is_empty()
    }

    /// Joins the texts.
    pub(crate) fn texts(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            ShownPart::Text(text) => Some(text.trim()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n\n")
    }

    /// Lists what the provider's tools did.
    pub(crate) fn tools(&self) -> impl Iterator<Item = &'a ProviderToolUse> {
        self.parts.iter().filter_map(|part| match part {
            ShownPart::Tool(used) => Some(*used),
            _ => None,
        })
    }

    /// Lists the files that the model made.
    pub(crate) fn files(&self) -> impl Iterator<Item = &'a FileRef> {
        self.parts.iter().filter_map(|part| match part {
            ShownPart::File(file) => Some(*file),
            _ => None,
        })
    }

    fn text(&mut self, text: &'a str, continues: bool) {
        match self.parts.last_mut() {
            Some(ShownPart::Text(before)) if continues => before.to_mut().push_str(text),
            _ => self.parts.push(ShownPart::Text(Cow::Borrowed(text))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Part {
        Part::Text { text: text.to_owned() }
    }

    fn cited(urls: &[&str]) -> Part {
        let citations = urls.iter().map(|url| Citation::builder().url(*url).build()).collect();
        Part::Citations { citations, data: None }
    }

    #[test]
    fn texts_with_sources_between_them_are_one_text_and_each_source_is_listed_once() {
        let parts =
            [text("Bees "), cited(&["https://a", "https://b"]), text("dance."), cited(&["https://a"]), text("")];
        let shown = ShownAnswer::of(&parts);

        assert_eq!((shown.texts().as_str(), shown.parts.len()), ("Bees dance.", 1));
        let urls: Vec<_> = shown.sources.iter().filter_map(|source| source.url.as_deref()).collect();
        assert_eq!(urls, ["https://a", "https://b"]);
        assert_eq!(ShownAnswer::of(&[text("One."), text("Two.")]).texts(), "One.\n\nTwo.");
        let used = Part::ProviderTool(Box::new(ProviderToolUse::new("web_search")));
        assert_eq!(ShownAnswer::of(&[text("One."), used, cited(&[]), text("Two.")]).texts(), "One.\n\nTwo.");
        assert!(ShownAnswer::of(&[text(" ")]).is_empty());
    }
}
