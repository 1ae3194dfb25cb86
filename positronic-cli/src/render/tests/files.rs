//! A run with files, sources and tools of the provider, with texts that would break a terminal.

use std::time::Duration;

use positronic_core::record::{
    Attachment, Citation, EventKind, FileRef, Limits, LoopOutcome, Part, ProviderToolUse, ResponseMetadata, Speaker,
    StageKind,
};
use serde_json::Value;

use super::frame;
use super::stories::Story;

/// A message with a picture.
pub(crate) fn asked() -> Story {
    let start = EventKind::LoopStart {
        input: Some("What is it?".to_owned()),
        from: Speaker::Person,
        message_id: None,
        files: vec![FileRef::stored("bees.png", "image/png", 70, "a".repeat(64))],
        hidden: false,
        continues: None,
        limits: Limits::default(),
    };
    Story::default().brain("", "Viewer", Value::Null, &[("Look", StageKind::Loop)]).event("Look", start)
}

/// An answer with what a provider's tools did, a picture, and sources.
pub(crate) fn answered() -> Story {
    let long = format!("https://bees.org/{}", "a".repeat(3_000));
    let source = |title: &str| Citation::builder().url(long.as_str()).title(title).build();
    let mut search = ProviderToolUse::new("web_\u{1b}[2Jsearch");
    search.input = Some(format!("bees\n{}", "in the world ".repeat(30)));
    search.sources = ["One\nline", "\u{202e}Two", "Three", "Four", "Five"].map(source).to_vec();
    let mut code = ProviderToolUse::new("code_execution");
    code.output = Some("a\n".repeat(500));
    let mut fetch = ProviderToolUse::new("web_fetch");
    fetch.error = Some("not\u{7} found".to_owned());
    let picture = Attachment::new("dance\u{9b}.png", "image/png", *b"dance");
    let parts = vec![
        Part::ProviderTool(Box::new(search)),
        Part::ProviderTool(Box::new(code)),
        Part::ProviderTool(Box::new(fetch)),
        Part::Text { text: "Bees".to_owned() },
        Part::Citations { citations: vec![source("Bees"), Citation::default()], data: None },
        Part::Text { text: " dance.".to_owned() },
        Part::File { file: picture, data: None },
    ];
    let duration = Duration::from_secs(1);
    let answer = EventKind::LoopModelResult { parts: parts.into(), metadata: ResponseMetadata::default(), duration };
    asked().ask("Look/0").event("Look/0", answer).loop_complete("Look", LoopOutcome::Answered)
}

#[test]
fn files_sources_and_tools_of_the_provider_are_shown() {
    insta::assert_snapshot!(frame(&answered(), 60), @r"
    Viewer
    ✓ Look  1 iteration · 1,624 tokens in, 90 out · 1.3 s
      › What is it?
        ▪ bees.png (image/png, 70 bytes)
      ✓ web_␛[2Jsearch bees ⏎ in the world in the world in the…
        → One ⏎ line <https://bees.org/aaaaaaaaaaaaaaaaaaaaaaaa…
        → <U+202E>Two <https://bees.org/aaaaaaaaaaaaaaaaaaaaaaa…
        → Three <https://bees.org/aaaaaaaaaaaaaaaaaaaaaaaaaaaaa…
        → +2 more
      ✓ code_execution
        → a ⏎ a ⏎ a ⏎ a ⏎ a ⏎ a ⏎ a ⏎ a ⏎ a ⏎ a ⏎ a ⏎ a ⏎ a ⏎ a…
      ✗ web_fetch
        → not␇ found
      Bees dance.
      ▪ dance�.png (image/png, 5 bytes)
      → Bees <https://bees.org/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…
      → a source without a name
    ⠦ running · 1 s · cost unknown
    ");
}
