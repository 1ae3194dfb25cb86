//! Schemas in the bodies of requests.

use positronic_core::record::{OrderedJson, OutputFormat, ToolDecl};
use positronic_model_http::schema::{SchemaRole, WireSchema};
use serde::Serialize;

use super::config::OpenAiConfig;

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
    };
    let WireSchema { json, strict } = WireSchema::new(&schema, SchemaRole::Answer, config.is_strict());
    Some(WireFormat { name, schema: json, strict })
}

/// Returns the schema of a tool's arguments as sent.
pub(super) fn wire_parameters(tool: &ToolDecl, strict: bool) -> WireSchema {
    WireSchema::new(&OrderedJson::of_schema(&tool.parameters), SchemaRole::Arguments, strict)
}
