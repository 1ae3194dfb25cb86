//! Files in the messages of chat completions.

use std::borrow::Cow;

use positronic_core::record::{Attachment, FileKind, FileLocation};
use positronic_model_http::FileContent;
use serde::Serialize;

/// A part of a message's content.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ChatPart<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: WireUrl<'a> },
    InputAudio { input_audio: WireAudio },
    File { file: WireFile<'a> },
}

#[derive(Serialize)]
pub(super) struct WireUrl<'a> {
    url: Cow<'a, str>,
}

#[derive(Serialize)]
pub(super) struct WireAudio {
    data: String,
    format: &'static str,
}

#[derive(Serialize)]
pub(super) struct WireFile<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    filename: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_data: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_id: Option<&'a str>,
}

/// Returns whether the API takes a file: pictures by bytes or URL, PDFs by bytes or id, sound as WAV or MP3.
pub(super) fn takes(kind: FileKind, media_type: &str, location: FileLocation<'_>) -> bool {
    match (kind, location) {
        (FileKind::Image, FileLocation::Stored(_) | FileLocation::Url(_))
        | (FileKind::Pdf, FileLocation::Stored(_) | FileLocation::Uploaded { .. }) => true,
        (FileKind::Audio, FileLocation::Stored(_)) => audio_format(media_type).is_some(),
        _ => false,
    }
}

fn audio_format(media_type: &str) -> Option<&'static str> {
    match media_type {
        "audio/wav" | "audio/x-wav" | "audio/wave" => Some("wav"),
        "audio/mpeg" | "audio/mp3" => Some("mp3"),
        _ => None,
    }
}

/// Encodes files, and the text after them: the context of a request follows the text, so the bytes of the files stay in the prefix
/// that the provider has cached.
pub(super) fn content<'a>(files: &'a [Attachment], text: &'a str) -> Vec<ChatPart<'a>> {
    let text = (!text.is_empty()).then_some(ChatPart::Text { text: text.into() });
    files.iter().map(part).chain(text).collect()
}

fn part(attachment: &Attachment) -> ChatPart<'_> {
    let file = attachment.file();
    let url = |data: String| format!("data:{};base64,{data}", file.media_type);
    match (FileContent::of(attachment), file.kind()) {
        (FileContent::Text(text), _) => ChatPart::Text { text: text.into() },
        (FileContent::Url(url), _) => ChatPart::ImageUrl { image_url: WireUrl { url: url.into() } },
        (FileContent::Base64(data), FileKind::Audio) => {
            let format = audio_format(&file.media_type).unwrap_or("wav");
            ChatPart::InputAudio { input_audio: WireAudio { data, format } }
        }
        (FileContent::Base64(data), FileKind::Image) => {
            ChatPart::ImageUrl { image_url: WireUrl { url: url(data).into() } }
        }
        (FileContent::Base64(data), _) => {
            ChatPart::File { file: WireFile { filename: Some(&file.name), file_data: Some(url(data)), file_id: None } }
        }
        (FileContent::Id(id), _) => {
            ChatPart::File { file: WireFile { filename: None, file_data: None, file_id: Some(id) } }
        }
    }
}
