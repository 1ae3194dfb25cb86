//! Files that a model makes.

use positronic_core::model::http::from_base64;
use positronic_core::record::{Attachment, Part};
use serde_json::{Map, Value, json};

use crate::wire::ITEM;

/// Reads a file from a part with inline data; `None` if it is not one. `number` counts the files of the answer from 1.
pub(crate) fn read(part: &Map<String, Value>, number: usize) -> Option<Part> {
    let inline = part.get("inlineData")?;
    let field = |name: &str| inline.get(name).and_then(Value::as_str);
    let media_type = field("mimeType")?;
    let bytes = from_base64(field("data")?)?;
    let around: Map<_, _> = part
        .iter()
        .filter(|(name, _)| *name != "inlineData")
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let file = Attachment::new(name(media_type, number), media_type, bytes);
    Some(Part::File { file, data: (!around.is_empty()).then(|| json!({ ITEM: around })) })
}

/// Names a file by its media type: `image-1.png`.
fn name(media_type: &str, number: usize) -> String {
    let (kind, rest) = media_type.split_once('/').unwrap_or((media_type, ""));
    let kind = if matches!(kind, "image" | "audio" | "video") { kind } else { "file" };
    let subtype = rest.split([';', '+']).next().unwrap_or_default().trim_start_matches("x-").to_ascii_lowercase();
    let is_plain =
        !subtype.is_empty() && subtype.len() <= 5 && subtype.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let extension = match &*subtype {
        "jpeg" => "jpg",
        "mpeg" if kind == "audio" => "mp3",
        "plain" => "txt",
        other if is_plain => other,
        _ => "bin",
    };
    format!("{kind}-{number}.{extension}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_follows_from_the_media_type() {
        assert_eq!(name("image/jpeg", 1), "image-1.jpg");
        assert_eq!(name("audio/L16;codec=pcm;rate=24000", 2), "audio-2.l16");
        assert_eq!(name("application/vnd.ms-excel", 3), "file-3.bin");
        assert_eq!(name("../x", 4), "file-4.x");
    }
}
