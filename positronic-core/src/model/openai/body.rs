//! Writes a request's body out of fragments, each a copy of what was encoded once.
//!
//! Fields stand in the order in which they are written, so a request begins with the same bytes as the one before it,
//! up to where their messages part. A field that the request's own `extra` names is left to it.

use serde::Serialize;
use serde_json::Value;

use crate::record::ModelRequest;
use crate::record::Settings;

/// A JSON object that is being written.
pub(super) struct Body<'a> {
    out: String,
    settings: &'a Settings,
}

impl<'a> Body<'a> {
    /// Begins a request's body with the model's name.
    pub(super) fn begin(settings: &'a Settings, model: &str) -> Self {
        let mut body = Self { out: String::from("{"), settings };
        body.field("model", settings.model.as_deref().unwrap_or(model));
        body
    }

    /// Writes a field.
    pub(super) fn field<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) {
        // Only a map with keys that are no strings cannot be encoded, and nothing here holds one.
        if let Ok(text) = serde_json::to_string(value) {
            self.raw(name, &text);
        }
    }

    /// Writes a field if it has a value.
    pub(super) fn some<T: Serialize>(&mut self, name: &str, value: Option<T>) {
        if let Some(value) = value {
            self.field(name, &value);
        }
    }

    /// Writes a field that is encoded already.
    pub(super) fn raw(&mut self, name: &str, text: &str) {
        if self.key(name) {
            self.out.push_str(text);
        }
    }

    /// Writes a field that is a list; `items` calls its argument with each encoded element.
    pub(super) fn list(&mut self, name: &str, items: impl FnOnce(&mut dyn FnMut(&str))) {
        if !self.key(name) {
            return;
        }
        self.out.push('[');
        let out = &mut self.out;
        let mut first = true;
        items(&mut |item| {
            if !std::mem::take(&mut first) {
                out.push(',');
            }
            out.push_str(item);
        });
        self.out.push(']');
    }

    /// Writes the request's own fields and ends the object.
    pub(super) fn end(mut self) -> String {
        for (name, value) in &self.settings.extra {
            separate(&mut self.out, name);
            self.out.push_str(&value.to_string());
        }
        self.out.push('}');
        self.out
    }

    fn key(&mut self, name: &str) -> bool {
        let ours = !self.settings.extra.contains_key(name);
        if ours {
            separate(&mut self.out, name);
        }
        ours
    }
}

fn separate(out: &mut String, name: &str) {
    if out.len() > 1 {
        out.push(',');
    }
    // A text can always be encoded.
    out.push_str(&serde_json::to_string(name).unwrap_or_default());
    out.push(':');
}

/// Joins the system prompt and the context items with blank lines: many chat templates take one system message only.
pub(super) fn system_prompt(request: &ModelRequest) -> String {
    let texts = request.context.iter().map(|item| item.text.as_str());
    let mut prompt = String::new();
    for text in std::iter::once(&*request.system).chain(texts).filter(|text| !text.is_empty()) {
        if !prompt.is_empty() {
            prompt.push_str("\n\n");
        }
        prompt.push_str(text);
    }
    prompt
}

/// Returns arguments that every server can read. Some parse them while they apply a template and refuse the whole
/// request where they are no JSON, so a malformed text is wrapped.
pub(super) fn sendable_arguments(arguments: &str) -> std::borrow::Cow<'_, str> {
    if arguments.trim().is_empty() {
        return "{}".into();
    }
    if serde_json::from_str::<serde::de::IgnoredAny>(arguments).is_ok() {
        return arguments.into();
    }
    serde_json::json!({ "malformed_arguments": arguments }).to_string().into()
}

/// Writes an output format whose schema is sent as it is written; `first` stands before its name.
pub(super) fn text_format(name: &str, schema: &str, first: &str) -> String {
    let strict = serde_json::from_str(schema).is_ok_and(|schema| is_strict(&schema));
    let name = Value::from(name);
    format!("{{{first}\"name\":{name},\"schema\":{schema},\"strict\":{strict}}}")
}

/// Says whether a schema meets what OpenAI asks of strict ones: every object closed, every property required.
pub(super) fn is_strict(schema: &Value) -> bool {
    match schema {
        Value::Object(fields) => {
            let closed = || fields.get("additionalProperties") == Some(&Value::Bool(false));
            let complete = || match fields.get("properties") {
                Some(Value::Object(properties)) => {
                    let required = fields.get("required").and_then(Value::as_array);
                    properties.keys().all(|name| required.is_some_and(|names| names.iter().any(|known| known == name)))
                }
                _ => true,
            };
            let is_object =
                fields.get("type").is_some_and(|kind| kind == "object") || fields.contains_key("properties");
            (!is_object || (closed() && complete())) && !fields.contains_key("oneOf") && fields.values().all(is_strict)
        }
        Value::Array(items) => items.iter().all(is_strict),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_is_strict_when_it_leaves_nothing_open() {
        let inner = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": false});
        assert!(is_strict(&inner));
        assert!(is_strict(&json!({"$defs": {"Inner": inner}, "type": "array", "items": {"$ref": "#/$defs/Inner"}})));
        assert!(!is_strict(&json!({"type": "object", "properties": {"a": {}}, "additionalProperties": false})));
        assert!(!is_strict(&json!({"items": {"type": "object", "properties": {}}})));
    }

    #[test]
    fn arguments_are_always_sent_as_json() {
        assert_eq!(sendable_arguments(r#"{"a": 1}"#), r#"{"a": 1}"#);
        assert_eq!(sendable_arguments(" "), "{}");
        assert_eq!(sendable_arguments(r#"{"a""#), r#"{"malformed_arguments":"{\"a\""}"#);
    }
}
