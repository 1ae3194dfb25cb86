//! Files in requests.
//!
//! The files of a user's message precede its text, as Google's documentation advises for a picture with a question. Those of a
//! tool's result follow the results of all calls, as parts of their own, which every model takes; only Gemini 3 takes files
//! within a result.

use positronic_core::record::{Attachment, FileKind, FileLocation};
use positronic_model_http::FileContent;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

/// The media types of the API, with other names of them.
const MEDIA_TYPES: [(&str, &[&str]); 21] = [
    ("image/png", &[]),
    ("image/jpeg", &["image/jpg"]),
    ("image/webp", &[]),
    ("image/heic", &[]),
    ("image/heif", &[]),
    ("application/pdf", &[]),
    ("audio/wav", &["audio/x-wav", "audio/wave", "audio/vnd.wave"]),
    ("audio/mp3", &["audio/mpeg"]),
    ("audio/aiff", &["audio/x-aiff"]),
    ("audio/aac", &[]),
    ("audio/ogg", &[]),
    ("audio/flac", &["audio/x-flac"]),
    ("video/mp4", &[]),
    ("video/mpeg", &[]),
    ("video/mpg", &[]),
    ("video/mov", &["video/quicktime"]),
    ("video/avi", &["video/x-msvideo"]),
    ("video/x-flv", &[]),
    ("video/webm", &[]),
    ("video/wmv", &["video/x-ms-wmv"]),
    ("video/3gpp", &[]),
];

/// Returns the API's name of a media type; `None` if it does not take such files.
fn known(media_type: &str) -> Option<&'static str> {
    let named = MEDIA_TYPES.iter().find(|(name, others)| *name == media_type || others.contains(&media_type));
    named.map(|(name, _)| *name)
}

/// Returns whether the API takes a file. It loads texts of any kind by their URL or their id.
pub(crate) fn takes(kind: FileKind, media_type: &str, _: FileLocation<'_>) -> bool {
    kind == FileKind::Text || known(media_type).is_some()
}

#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
struct FilePart<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inline_data: Option<InlineData<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_data: Option<FileData<'a>>,
    #[serde(flatten)]
    more: Option<&'a Map<String, Value>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InlineData<'a> {
    mime_type: &'a str,
    data: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FileData<'a> {
    mime_type: &'a str,
    file_uri: &'a str,
}

/// Encodes a file as a part, with the fields that the model gave to its own file.
pub(crate) fn encode_file(attachment: &Attachment, more: Option<&Map<String, Value>>) -> Box<RawValue> {
    let file = attachment.file();
    let mime_type = known(&file.media_type).unwrap_or(&file.media_type);
    let part = match FileContent::of(attachment) {
        FileContent::Base64(data) => {
            FilePart { inline_data: Some(InlineData { mime_type, data }), more, ..FilePart::default() }
        }
        FileContent::Url(file_uri) | FileContent::Id(file_uri) => {
            FilePart { file_data: Some(FileData { mime_type, file_uri }), ..FilePart::default() }
        }
        FileContent::Text(text) => FilePart { text: Some(text), ..FilePart::default() },
    };
    to_raw_value(&part).unwrap_or_default()
}

/// Encodes a line about a file instead of the file.
pub(crate) fn encode_line(attachment: &Attachment) -> Box<RawValue> {
    to_raw_value(&line(attachment)).unwrap_or_default()
}

fn line(attachment: &Attachment) -> FilePart<'_> {
    FilePart { text: Some(attachment.file().line()), ..FilePart::default() }
}
