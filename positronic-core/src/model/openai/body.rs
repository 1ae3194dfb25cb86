//! Writes a request's body out of fragments, each a copy of what was encoded once.
//!
//! Fields stand in the order in which they are written, so a request begins with the same bytes as the one before it,
//! up to where their messages part. A field that the request's own `extra` names is left to it.

use serde::Serialize;

use super::config::OpenAiConfig;
use crate::model::schema::{SchemaRole, WireSchema};
use crate::record::{OrderedJson, OutputFormat, Settings, ToolDecl};

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

/// An output format: the name of its schema, the schema, and whether the server is asked to enforce it.
#[derive(Serialize)]
pub(super) struct WireFormat<'a> {
    pub(super) name: &'a str,
    pub(super) schema: OrderedJson,
    pub(super) strict: bool,
}

/// Makes the output format that settings ask for; `None` for natural language.
pub(super) fn wire_format<'a>(config: &OpenAiConfig, output: &'a OutputFormat) -> Option<WireFormat<'a>> {
    let (name, schema) = match output {
        OutputFormat::Text => return None,
        OutputFormat::JsonSchema { name, schema } => (name, OrderedJson::of_schema(schema)),
        // The server refuses text that is not JSON, and gives its reason.
        OutputFormat::JsonText { name, schema } => {
            (name, serde_json::from_str(schema).unwrap_or_else(|_| OrderedJson::from(&**schema)))
        }
    };
    let WireSchema { json, strict } = WireSchema::new(&schema, SchemaRole::Answer, config.is_strict());
    Some(WireFormat { name, schema: json, strict })
}

/// Makes the schema of a tool's arguments as it is sent.
pub(super) fn wire_parameters(tool: &ToolDecl, strict: bool) -> WireSchema {
    WireSchema::new(&OrderedJson::of_schema(&tool.parameters), SchemaRole::Arguments, strict)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_always_sent_as_json() {
        assert_eq!(sendable_arguments(r#"{"a": 1}"#), r#"{"a": 1}"#);
        assert_eq!(sendable_arguments(" "), "{}");
        assert_eq!(sendable_arguments(r#"{"a""#), r#"{"malformed_arguments":"{\"a\""}"#);
    }
}
