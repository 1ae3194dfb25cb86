//! Writer for request bodies, assembled from fragments that were encoded once.
//!
//! Fields keep the order in which they are written, so a request begins with the same bytes as the previous one, up to the
//! first differing message. A field in the request's own `extra` overrides the adapter's.

use serde::Serialize;

use super::config::OpenAiConfig;
use crate::model::schema::{SchemaRole, WireSchema};
use crate::record::{OrderedJson, OutputFormat, Settings, ToolDecl};

/// A partially written JSON object.
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
        // Only maps with non-string keys fail to encode; there are none here.
        if let Ok(text) = serde_json::to_string(value) {
            self.raw(name, &text);
        }
    }

    /// Writes a field if it is set.
    pub(super) fn some<T: Serialize>(&mut self, name: &str, value: Option<T>) {
        if let Some(value) = value {
            self.field(name, &value);
        }
    }

    /// Writes a field that is already encoded.
    pub(super) fn raw(&mut self, name: &str, text: &str) {
        if self.key(name) {
            self.out.push_str(text);
        }
    }

    /// Writes a list field; `items` calls its argument with each encoded element.
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

    /// Writes the request's `extra` fields and closes the object.
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
    // A string always encodes.
    out.push_str(&serde_json::to_string(name).unwrap_or_default());
    out.push(':');
}

/// Returns arguments that every server accepts. Some parse them for a template and reject the full request if they are
/// not JSON, so malformed arguments are wrapped.
pub(super) fn sendable_arguments(arguments: &str) -> std::borrow::Cow<'_, str> {
    if arguments.trim().is_empty() {
        return "{}".into();
    }
    if serde_json::from_str::<serde::de::IgnoredAny>(arguments).is_ok() {
        return arguments.into();
    }
    serde_json::json!({ "malformed_arguments": arguments }).to_string().into()
}

/// An output format: the schema's name, the schema, and whether the server must enforce it.
#[derive(Serialize)]
pub(super) struct WireFormat<'a> {
    pub(super) name: &'a str,
    pub(super) schema: OrderedJson,
    pub(super) strict: bool,
}

/// Returns the output format of the settings; `None` for natural language.
pub(super) fn wire_format<'a>(config: &OpenAiConfig, output: &'a OutputFormat) -> Option<WireFormat<'a>> {
    let (name, schema) = match output {
        OutputFormat::Text => return None,
        OutputFormat::JsonSchema { name, schema } => (name, OrderedJson::of_schema(schema)),
        // The server rejects text that is not JSON, with its reason.
        OutputFormat::JsonText { name, schema } => {
            (name, serde_json::from_str(schema).unwrap_or_else(|_| OrderedJson::from(&**schema)))
        }
    };
    let WireSchema { json, strict } = WireSchema::new(&schema, SchemaRole::Answer, config.is_strict());
    Some(WireFormat { name, schema: json, strict })
}

/// Returns the schema of a tool's arguments as sent.
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
