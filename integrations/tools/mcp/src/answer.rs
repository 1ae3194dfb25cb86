//! Conversion of a server's answer into a tool result and files.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use positronic_core::record::{check_depth, quote_inexact_numbers};
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::{Value, json};

/// Base64 of servers, which may lack its padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// The maximum number of stored files per answer.
const MAX_FILES: usize = 50;

/// The maximum length of a file name, in characters.
const MAX_NAME: usize = 80;

/// A converted answer.
#[derive(Debug, PartialEq)]
pub(super) struct ConvertedAnswer {
    pub(super) value: Value,
    pub(super) files: Vec<AnswerFile>,
    /// Whether the server reports that the call failed.
    pub(super) is_error: bool,
}

/// A file in an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AnswerFile {
    pub(super) name: String,
    pub(super) media_type: String,
    pub(super) bytes: Vec<u8>,
    /// Whether it is content for the model, as a picture is, and not only a file for people.
    pub(super) for_model: bool,
}

impl ConvertedAnswer {
    /// Converts an answer. The value for the model has at most `limit` bytes; a longer one is also stored as a file.
    pub(super) fn read(tool: &str, result: CallToolResult, limit: usize) -> Self {
        let mut files = Files { tool: file_name(tool), found: Vec::new() };
        let pieces: Vec<_> = result.content.into_iter().map(|block| files.piece(block)).collect();
        let value = value(pieces.join("\n"), result.structured_content);
        let value = files.cut(value, limit);
        Self { value, files: files.found, is_error: result.is_error == Some(true) }
    }

    /// Returns the error message of a failed call.
    pub(super) fn into_error(self) -> String {
        match self.value {
            Value::String(text) if text.trim().is_empty() => "the call failed without an error message".to_owned(),
            Value::String(text) => text,
            value => value.to_string(),
        }
    }
}

/// Combines text and structured content. Servers often repeat one in the other, which is dropped.
fn value(text: String, structured: Option<Value>) -> Value {
    let Some(mut structured) = structured else { return Value::String(text) };
    if check_depth(&structured).is_err() {
        return Value::String(if text.is_empty() { structured.to_string() } else { text });
    }
    structured.sort_all_objects();
    // Servers without structured data wrap their text in a field.
    let wrapped = structured.as_object().filter(|fields| fields.len() == 1).and_then(|fields| fields.values().next());
    if wrapped.and_then(Value::as_str) == Some(&text) {
        return Value::String(text);
    }
    let repeats = || {
        serde_json::from_str::<Value>(&quote_inexact_numbers(&text)).is_ok_and(|mut parsed| {
            parsed.sort_all_objects();
            parsed == structured || wrapped == Some(&parsed)
        })
    };
    if text.is_empty() || repeats() {
        return structured;
    }
    json!({ "structured": structured, "text": text })
}

struct Files {
    tool: String,
    found: Vec<AnswerFile>,
}

impl Files {
    /// Returns a block as text, and stores binary content as a file.
    fn piece(&mut self, block: ContentBlock) -> String {
        match block {
            ContentBlock::Text(text) => text.text,
            ContentBlock::Image(image) => self.decoded("image", None, &image.mime_type, &image.data),
            ContentBlock::Audio(audio) => self.decoded("audio", None, &audio.mime_type, &audio.data),
            ContentBlock::Resource(embedded) => match embedded.resource {
                ResourceContents::TextResourceContents { uri, text, .. } => format!("[{uri}]\n{text}"),
                ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                    let media_type = mime_type.as_deref().unwrap_or("application/octet-stream");
                    let name = uri.rsplit('/').find(|part| !part.is_empty()).map(file_name);
                    let name = name.map(|name| {
                        if name.contains('.') { name } else { format!("{name}.{}", ending(&media_type_of(media_type))) }
                    });
                    self.decoded(&uri, name, media_type, &blob)
                }
                _ => "[a resource of an unknown kind]".to_owned(),
            },
            ContentBlock::ResourceLink(link) => {
                let about = link.description.or(link.title).map(|about| format!(": {about}")).unwrap_or_default();
                format!("[{} is at {}{about}]", link.name, link.uri)
            }
            _ => "[content of an unknown kind]".to_owned(),
        }
    }

    fn decoded(&mut self, what: &str, name: Option<String>, media_type: &str, data: &str) -> String {
        let Ok(bytes) = BASE64.decode(data.trim()) else {
            return format!("[{what}: {media_type} that cannot be read: it is not valid Base64]");
        };
        if self.found.len() >= MAX_FILES {
            return format!("[{what}: {media_type}, left out, since the answer has more than {MAX_FILES} files]");
        }
        let media_type = media_type_of(media_type);
        let name = self.keep(name, &media_type, bytes);
        // The message of the result has a line with the type and the size of each file.
        format!("[{what}: the file `{name}`]")
    }

    /// Stores a file under a unique name.
    fn keep(&mut self, name: Option<String>, media_type: &str, bytes: Vec<u8>) -> String {
        let number = self.found.len() + 1;
        let mut name = name.unwrap_or_else(|| format!("{}-{number}.{}", self.tool, ending(media_type)));
        if self.found.iter().any(|file| file.name == name) {
            name = format!("{number}-{name}");
        }
        let for_model = media_type.starts_with("image/") || media_type.starts_with("audio/");
        self.found.push(AnswerFile { name: name.clone(), media_type: media_type.to_owned(), bytes, for_model });
        name
    }

    /// Truncates a text that is too long for a model, and stores all of it as a file.
    fn cut(&mut self, value: Value, limit: usize) -> Value {
        let (text, media_type) = match value {
            Value::String(text) if text.len() <= limit => return Value::String(text),
            Value::String(text) => (text, "text/plain"),
            value => {
                let text = value.to_string();
                if text.len() <= limit {
                    return value;
                }
                (text, "application/json")
            }
        };
        let half = limit / 2;
        let beginning = text.get(..text.floor_char_boundary(half)).unwrap_or_default().to_owned();
        let end = text.get(text.ceil_char_boundary(text.len().saturating_sub(half))..).unwrap_or_default().to_owned();
        let left_out = text.len() - beginning.len() - end.len();
        let name = Some(format!("{}-full.{}", self.tool, ending(media_type)));
        let name = self.keep(name, media_type, text.into_bytes());
        Value::String(format!(
            "{beginning}\n[cut: {left_out} bytes are omitted here; the file `{name}` has the full text]\n{end}"
        ))
    }
}

/// Returns a media type without its parameters; an invalid one becomes `application/octet-stream`.
fn media_type_of(said: &str) -> String {
    let kind = said.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let begins = |part: &str| part.starts_with(|char: char| char.is_ascii_alphanumeric());
    let is_one = kind.split('/').count() == 2
        && kind.split('/').all(begins)
        && kind.len() <= 100
        && kind.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/.+-_".contains(&byte));
    if is_one { kind } else { "application/octet-stream".to_owned() }
}

/// Returns the usual file extension of a media type.
fn ending(media_type: &str) -> &'static str {
    match media_type {
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "image/svg+xml" => "svg",
        "audio/wav" | "audio/x-wav" => "wav",
        "audio/mpeg" => "mp3",
        "audio/ogg" => "ogg",
        "application/pdf" => "pdf",
        "application/json" => "json",
        "text/csv" => "csv",
        "text/html" => "html",
        "text/markdown" => "md",
        "text/plain" => "txt",
        _ => "bin",
    }
}

/// Replaces the characters that are special in paths.
fn file_name(text: &str) -> String {
    let allowed = |char: char| char.is_alphanumeric() || matches!(char, '.' | '-' | '_');
    let name: String = text.chars().map(|char| if allowed(char) { char } else { '_' }).take(MAX_NAME).collect();
    let name = name.trim_start_matches('.');
    if name.is_empty() { "file".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(result: Value, limit: usize) -> ConvertedAnswer {
        ConvertedAnswer::read("get.chart", serde_json::from_value(result).unwrap(), limit)
    }

    #[test]
    fn repeated_structure_is_dropped() {
        let text = |text: &str| json!([{"type": "text", "text": text}]);

        assert_eq!(
            read(json!({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}), 99).value,
            "a\nb"
        );
        let both = json!({"content": text(r#"{"b": 1, "a": [2]}"#), "structuredContent": {"a": [2], "b": 1}});
        assert_eq!(read(both, 99).value, json!({"a": [2], "b": 1}));
        let apart = json!({"content": text("one b"), "structuredContent": {"b": 1}});
        assert_eq!(read(apart, 99).value, json!({"structured": {"b": 1}, "text": "one b"}));
        let wrapped = json!({"content": text("one b"), "structuredContent": {"content": "one b"}});
        assert_eq!(read(wrapped, 99).value, "one b");
        let wrapped = json!({"content": text("42"), "structuredContent": {"result": 42}});
        assert_eq!(read(wrapped, 99).value, json!({"result": 42}));
        assert_eq!(read(json!({"content": [], "structuredContent": [1]}), 99).value, json!([1]));
        assert_eq!(read(json!({"content": []}), 99).value, "");
    }

    #[test]
    fn binary_content_becomes_files_with_safe_names() {
        let blob =
            |uri: &str| json!({"type": "resource", "resource": {"uri": uri, "mimeType": "text/csv", "blob": "YSxi"}});
        let answer = read(
            json!({"content": [
                {"type": "text", "text": "Here:"},
                {"type": "image", "mimeType": "image/png", "data": "iVBORw\n"},
                {"type": "audio", "mimeType": "../evil", "data": "AAAA"},
                blob("file:///a/sales.csv"), blob("file:///b/sales.csv"), blob("x:/../..\\..\u{202e}"),
                {"type": "image", "mimeType": "image/png", "data": "%%%"},
                {"type": "resource", "resource": {"uri": "note:1", "text": "read me"}},
                {"type": "resource_link", "uri": "https://example.org/a", "name": "a", "description": "more"},
            ]}),
            4096,
        );

        let files: Vec<_> =
            answer.files.iter().map(|file| (&*file.name, &*file.media_type, file.bytes.len())).collect();
        assert_eq!(
            files,
            [
                ("get.chart-1.png", "image/png", 4),
                ("get.chart-2.bin", "application/octet-stream", 3),
                ("sales.csv", "text/csv", 3),
                ("4-sales.csv", "text/csv", 3),
                ("_.._", "text/csv", 3),
            ]
        );
        let text = answer.value.as_str().unwrap();
        assert!(text.starts_with("Here:\n[image: the file `get.chart-1.png`]\n"), "{text}");
        assert!(text.contains("[image: image/png that cannot be read"), "{text}");
        assert!(text.ends_with("[note:1]\nread me\n[a is at https://example.org/a: more]"), "{text}");
    }

    #[test]
    fn long_text_is_truncated_between_characters_and_stored() {
        let long = "ä".repeat(50);
        let answer = read(json!({"content": [{"type": "text", "text": long}]}), 21);
        let text = answer.value.as_str().unwrap();
        assert_eq!(
            text,
            "äääää\n[cut: 80 bytes are omitted here; the file `get.chart-full.txt` has the full text]\näääää"
        );
        assert_eq!(answer.files[0].bytes, long.as_bytes());

        let answer = read(json!({"content": [], "structuredContent": {"rows": vec![1; 50]}}), 40);
        assert!(answer.value.as_str().unwrap().starts_with("{\"rows\":[1,"), "{:?}", answer.value);
        assert_eq!(answer.files[0].name, "get.chart-full.json");
        assert_eq!(answer.files[0].media_type, "application/json");
    }

    #[test]
    fn failure_without_a_message_is_reported() {
        let answer = read(json!({"content": [], "isError": true}), 99);

        assert!(answer.is_error);
        assert_eq!(answer.into_error(), "the call failed without an error message");
    }
}
