//! Files in requests.
//!
//! The files of a user's message precede its text: Anthropic's documentation says that a model reads pictures and documents best
//! before the question about them. The files of a tool's result follow its text, which has a line about each. The prefixes that
//! are cached stay the same in either order, since a message is never cut.

use positronic_core::model::http::FileContent;
use positronic_core::record::{Attachment, FileKind, FileLocation, ModelRequest};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

/// Returns whether the API takes a file.
pub(crate) fn takes(kind: FileKind, media_type: &str, location: FileLocation<'_>) -> bool {
    match kind {
        FileKind::Image => matches!(media_type, "image/jpeg" | "image/png" | "image/gif" | "image/webp"),
        FileKind::Pdf => true,
        FileKind::Text => media_type == "text/plain" && matches!(location, FileLocation::Uploaded { .. }),
        _ => false,
    }
}

/// Returns whether a message has a file that was uploaded to the provider.
pub(crate) fn has_uploads(request: &ModelRequest) -> bool {
    let is_uploaded = |file: &Attachment| matches!(file.file().location(), FileLocation::Uploaded { .. });
    request.messages.read().iter().any(|entry| entry.message.files().any(is_uploaded))
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum FileBlock<'a> {
    Text { text: String },
    Image { source: Source<'a> },
    Document { source: Source<'a>, title: &'a str },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Source<'a> {
    Base64 { media_type: &'a str, data: String },
    Url { url: &'a str },
    File { file_id: &'a str },
}

/// Encodes a file as a block.
pub(crate) fn encode_file(attachment: &Attachment) -> Box<RawValue> {
    let file = attachment.file();
    let source = match FileContent::of(attachment) {
        FileContent::Base64(data) => Some(Source::Base64 { media_type: &file.media_type, data }),
        FileContent::Url(url) => Some(Source::Url { url }),
        FileContent::Id(file_id) => Some(Source::File { file_id }),
        FileContent::Text(text) => return encode(&FileBlock::Text { text }),
        _ => None,
    };
    encode(&match (source, file.kind()) {
        (Some(source), FileKind::Image) => FileBlock::Image { source },
        (Some(source), _) => FileBlock::Document { source, title: &file.name },
        (None, _) => FileBlock::Text { text: file.line() },
    })
}

fn encode(block: &FileBlock<'_>) -> Box<RawValue> {
    to_raw_value(block).unwrap_or_default()
}
