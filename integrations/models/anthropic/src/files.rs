//! Files in requests.
//!
//! The files of a user's message precede its text: Anthropic's documentation says that a model reads pictures and documents best
//! before the question about them. The files of a tool's result follow its text, which has a line about each. The prefixes that
//! are cached stay the same in either order, since a message is never cut.

use positronic_core::record::{Attachment, FileKind, FileLocation, ModelRequest};
use positronic_model_http::FileContent;
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
    Text {
        text: String,
    },
    Image {
        source: FileSource<'a>,
    },
    Document {
        source: FileSource<'a>,
        title: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        citations: Option<Citations>,
    },
}

#[derive(Serialize)]
struct Citations {
    enabled: bool,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum FileSource<'a> {
    Base64 { media_type: &'a str, data: String },
    Text { media_type: &'static str, data: String },
    Url { url: &'a str },
    File { file_id: &'a str },
}

/// Encodes a file as a block. `cites` says whether the model cites documents; a text is a document only then.
pub(crate) fn encode_file(attachment: &Attachment, cites: bool) -> Box<RawValue> {
    let file = attachment.file();
    let source = match FileContent::of(attachment) {
        FileContent::Base64(data) => FileSource::Base64 { media_type: &file.media_type, data },
        FileContent::Url(url) => FileSource::Url { url },
        FileContent::Id(file_id) => FileSource::File { file_id },
        FileContent::Text(text) => match attachment.bytes().filter(|bytes| cites && !bytes.is_empty()) {
            Some(bytes) => {
                let data = String::from_utf8_lossy(bytes).into_owned();
                FileSource::Text { media_type: "text/plain", data }
            }
            None => return encode(&FileBlock::Text { text }),
        },
    };
    encode(&if file.kind() == FileKind::Image {
        FileBlock::Image { source }
    } else {
        let citations = cites.then_some(Citations { enabled: true });
        FileBlock::Document { source, title: &file.name, citations }
    })
}

fn encode(block: &FileBlock<'_>) -> Box<RawValue> {
    to_raw_value(block).unwrap_or_default()
}
