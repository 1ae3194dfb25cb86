//! Files that a model makes.

use positronic_core::record::{Attachment, Part};
use positronic_model_http::from_base64;
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
    let file = Attachment::made(number, media_type, bytes);
    Some(Part::File { file, data: (!around.is_empty()).then(|| json!({ ITEM: around })) })
}
