//! Files in the items of the Responses API.

use std::borrow::Cow;

use positronic_core::record::{Attachment, FileKind, FileLocation};
use positronic_model_http::FileContent;
use serde::Serialize;
use serde_json::{Value, json};

/// A part of a message's content, or of a call's output.
#[derive(Serialize)]
#[serde(tag = "type")]
pub(super) enum InputPart<'a> {
    #[serde(rename = "input_text")]
    Text { text: Cow<'a, str> },
    #[serde(rename = "input_image")]
    Image {
        #[serde(skip_serializing_if = "Option::is_none")]
        image_url: Option<Cow<'a, str>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        file_id: Option<&'a str>,
        detail: &'static str,
    },
    #[serde(rename = "input_file")]
    File {
        #[serde(skip_serializing_if = "Option::is_none")]
        filename: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        file_data: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        file_url: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        file_id: Option<&'a str>,
    },
}

/// Returns whether the API takes a file: pictures, PDFs and other documents.
pub(super) const fn takes(kind: FileKind, _: &str, _: FileLocation<'_>) -> bool {
    matches!(kind, FileKind::Image | FileKind::Pdf | FileKind::Other | FileKind::Text)
}

/// Encodes files, and the text after them: the context of a request follows the text, so the bytes of the files stay in the prefix
/// that the provider has cached.
pub(super) fn content<'a>(files: &'a [Attachment], text: &'a str) -> Vec<InputPart<'a>> {
    let text = (!text.is_empty()).then_some(InputPart::Text { text: text.into() });
    files.iter().map(part).chain(text).collect()
}

fn part(attachment: &Attachment) -> InputPart<'_> {
    let file = attachment.file();
    let url = |data: String| format!("data:{};base64,{data}", file.media_type);
    let image = |image_url, file_id| InputPart::Image { image_url, file_id, detail: "auto" };
    let document = |filename, file_data, file_url, file_id| InputPart::File { filename, file_data, file_url, file_id };
    let is_image = file.kind() == FileKind::Image;
    match FileContent::of(attachment) {
        FileContent::Text(text) => InputPart::Text { text: text.into() },
        FileContent::Base64(data) if is_image => image(Some(url(data).into()), None),
        FileContent::Url(url) if is_image => image(Some(url.into()), None),
        FileContent::Id(id) if is_image => image(None, Some(id)),
        FileContent::Base64(data) => document(Some(&file.name), Some(url(data)), None, None),
        FileContent::Url(url) => document(None, None, Some(url), None),
        FileContent::Id(id) => document(None, None, None, Some(id)),
    }
}

/// The field of a picture's item that contains its bytes.
const RESULT: &str = "result";

/// Reads a picture that the model made; the item without its bytes is provider data.
pub(super) fn made_image(item: &Value, number: usize) -> Option<(Attachment, Value)> {
    let bytes = positronic_model_http::from_base64(item.get(RESULT)?.as_str()?)?;
    let format = item.get("output_format").and_then(Value::as_str).unwrap_or("png");
    let file = Attachment::made(number, &format!("image/{format}"), bytes);
    let mut rest = item.clone();
    if let Value::Object(fields) = &mut rest {
        fields.remove(RESULT);
    }
    Some((file, rest))
}

/// Encodes a picture that the model made as the item that it came with; as text if another provider made it.
pub(super) fn echo(attachment: &Attachment, item: Option<&Value>) -> Value {
    let made = item.filter(|item| item.get("type").is_some_and(|kind| kind == "image_generation_call"));
    match (made, FileContent::of(attachment)) {
        (Some(item), FileContent::Base64(data)) => {
            let mut item = item.clone();
            if let Value::Object(fields) = &mut item {
                fields.insert(RESULT.to_owned(), data.into());
            }
            item
        }
        _ => json!({ "type": "message", "role": "assistant", "content": attachment.file().line() }),
    }
}
