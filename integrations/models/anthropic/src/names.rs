//! Replacement of field names that the API refuses.
//!
//! Its rule for the properties of a tool's input ([`AnthropicName`]) has status 400. Tools of others have names that break it, `$filter` or
//! `filter[id]`, and one of them would make the API refuse every request. So a field gets another name on its way to the model, which no
//! other field of its tool has, and its own name back in the arguments of calls, at every depth. Arguments with a field's own name, which
//! the model may know from the history, are accepted, too.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use positronic_core::record::{ModelResponse, OrderedJson, ToolDecl};
use positronic_model_http::schema::AnthropicName;
use serde_json::Value;

/// Keywords whose values are data.
const DATA: [&str; 4] = ["enum", "const", "default", "examples"];

/// Keywords whose values map names that are not keywords to schemas.
const NAMED: [&str; 4] = ["$defs", "definitions", "patternProperties", "dependentSchemas"];

/// The names of fields that the model sees, by tool and own name, where they differ.
#[derive(Debug, Default)]
pub(crate) struct FieldNames(HashMap<String, BTreeMap<String, String>>);

impl FieldNames {
    /// Chooses the names of the fields of all tools.
    pub(crate) fn of(tools: &[ToolDecl]) -> Self {
        let names = tools.iter().map(|tool| (tool.id.wire_name().into_owned(), choose(&tool.parameters)));
        Self(names.filter(|(_, names)| !names.is_empty()).collect())
    }

    /// Gives the fields of a tool's schema the names that the model sees.
    pub(crate) fn apply(&self, tool: &str, schema: OrderedJson) -> OrderedJson {
        match self.0.get(tool) {
            Some(names) => renamed(&schema, names),
            None => schema,
        }
    }

    /// Gives the fields in the arguments of calls their own names back.
    pub(crate) fn restore(&self, response: &mut ModelResponse) {
        if self.0.is_empty() {
            return;
        }
        for call in &mut response.calls {
            if let Some(names) = self.0.get(&call.name) {
                let own: HashMap<&str, &str> = names.iter().map(|(own, sent)| (sent.as_str(), own.as_str())).collect();
                call.arguments = with_own_names(&call.arguments, &own);
            }
        }
    }
}

/// Chooses a name for each field whose own name is not valid.
fn choose(schema: &Value) -> BTreeMap<String, String> {
    let mut known = BTreeSet::new();
    collect(schema, &mut known);
    let mut names = BTreeMap::new();
    for own in known.iter().filter(|own| !AnthropicName::is_valid(own)) {
        let readable: String =
            own.chars().map(|char| if AnthropicName::is_valid_char(char) { char } else { '_' }).collect();
        let readable = if readable.is_empty() { "field" } else { &readable };
        let numbered = |number: u32| {
            let end = if number == 1 { String::new() } else { format!("_{number}") };
            let start = readable.get(..AnthropicName::MAX - end.len()).unwrap_or(readable);
            format!("{start}{end}")
        };
        let is_free = |name: &String| !known.contains(name.as_str()) && !names.values().any(|taken| taken == name);
        if let Some(sent) = (1..).map(numbered).find(is_free) {
            names.insert((*own).to_owned(), sent);
        }
    }
    names
}

/// Collects the names of all fields of a schema, at every depth.
fn collect<'s>(schema: &'s Value, into: &mut BTreeSet<&'s str>) {
    match schema {
        Value::Array(items) => items.iter().for_each(|item| collect(item, into)),
        Value::Object(fields) => {
            for (keyword, value) in fields {
                match (keyword.as_str(), value) {
                    ("properties", Value::Object(properties)) => {
                        into.extend(properties.keys().map(String::as_str));
                        properties.values().for_each(|schema| collect(schema, into));
                    }
                    (named, Value::Object(schemas)) if NAMED.contains(&named) => {
                        schemas.values().for_each(|schema| collect(schema, into));
                    }
                    (data, _) if DATA.contains(&data) => {}
                    (_, value) => collect(value, into),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn renamed(schema: &OrderedJson, names: &BTreeMap<String, String>) -> OrderedJson {
    let name = |own: &String| names.get(own).unwrap_or(own).clone();
    let list = |list: &OrderedJson| match list.as_str() {
        Some(own) => names.get(own).map_or(own, String::as_str).into(),
        None => list.clone(),
    };
    match schema {
        OrderedJson::List(items) => OrderedJson::List(items.iter().map(|item| renamed(item, names)).collect()),
        OrderedJson::Leaf(_) => schema.clone(),
        OrderedJson::Object(fields) => {
            let fields = fields.iter().map(|(keyword, value)| {
                let value = match (keyword.as_str(), value) {
                    ("properties" | "dependentSchemas", OrderedJson::Object(schemas)) => {
                        let schemas = schemas
                            .iter()
                            .map(|(own, schema)| (name(own), described(own, renamed(schema, names), names)));
                        OrderedJson::Object(schemas.collect())
                    }
                    ("required", OrderedJson::List(required)) => OrderedJson::List(required.iter().map(list).collect()),
                    ("dependentRequired", OrderedJson::Object(lists)) => {
                        let required = |required: &OrderedJson| match required.as_list() {
                            Some(required) => OrderedJson::List(required.iter().map(list).collect()),
                            None => required.clone(),
                        };
                        OrderedJson::Object(lists.iter().map(|(own, list)| (name(own), required(list))).collect())
                    }
                    ("$ref", target) => match target.as_str() {
                        Some(target) => renamed_pointer(target, names).into(),
                        None => target.clone(),
                    },
                    (named, OrderedJson::Object(schemas)) if NAMED.contains(&named) => {
                        let schemas = schemas.iter().map(|(name, schema)| (name.clone(), renamed(schema, names)));
                        OrderedJson::Object(schemas.collect())
                    }
                    (data, value) if DATA.contains(&data) => value.clone(),
                    (_, value) => renamed(value, names),
                };
                (keyword.clone(), value)
            });
            OrderedJson::Object(fields.collect())
        }
    }
}

/// Tells the model the own name of a field. Nothing may stand beside a reference.
fn described(own: &str, schema: OrderedJson, names: &BTreeMap<String, String>) -> OrderedJson {
    match schema {
        OrderedJson::Object(mut fields) if names.contains_key(own) && !fields.contains_key("$ref") => {
            let known = fields.get("description").and_then(OrderedJson::as_str).unwrap_or_default().trim_end();
            let dot = if known.is_empty() || known.ends_with(['.', '!', '?', ':']) { "" } else { "." };
            let text = format!("{known}{dot} The field `{own}`.");
            fields.insert("description".to_owned(), text.trim_start().into());
            OrderedJson::Object(fields)
        }
        schema => schema,
    }
}

/// Renames the fields in a reference such as `#/properties/$filter`.
fn renamed_pointer(target: &str, names: &BTreeMap<String, String>) -> String {
    let mut after_properties = false;
    let tokens = target.split('/').map(|token| {
        let is_name = std::mem::replace(&mut after_properties, token == "properties");
        let own = token.replace("~1", "/").replace("~0", "~");
        match names.get(&own).filter(|_| is_name) {
            Some(sent) => {
                after_properties = false;
                sent.clone()
            }
            None => token.to_owned(),
        }
    });
    tokens.collect::<Vec<_>>().join("/")
}

/// Renames the fields of all objects in a JSON text. The rest stays as the model wrote it, also if it is not JSON.
fn with_own_names(json: &str, own: &HashMap<&str, &str>) -> String {
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
    while let Some((before, from_quote)) = rest.find('"').and_then(|at| rest.split_at_checked(at)) {
        out.push_str(before);
        let end = end_of_string(from_quote);
        let (string, after) = from_quote.split_at_checked(end).unwrap_or((from_quote, ""));
        let is_name = after.trim_start().starts_with(':');
        let name = is_name.then(|| serde_json::from_str::<String>(string).ok()).flatten();
        match name.and_then(|name| own.get(name.as_str())) {
            Some(own) => out.push_str(&Value::from(*own).to_string()),
            None => out.push_str(string),
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Returns the length of the string with which a text begins, with its quotes.
fn end_of_string(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use positronic_core::record::{CallFlags, ProposedCall, ToolId};
    use serde_json::json;

    use super::*;

    fn tool(parameters: Value) -> ToolDecl {
        let (title, flags) = (None, CallFlags::default());
        let id = ToolId::new("list.orders").unwrap();
        ToolDecl { id, title, description: String::new(), parameters: parameters.into(), flags }
    }

    #[test]
    fn every_name_is_valid_and_comes_back_at_every_depth() {
        let long = "settings__approved__or__denied__countries__or__regions__approved__list";
        let inner = json!({
            "type": "object",
            "properties": {
                "größe": {"type": "string", "description": "In metres"}, "gr__e": {"type": "string"}, " ": {}, "": {},
                (long): {"$ref": "#/properties/$filter"},
            },
            "required": ["größe", ""],
        });
        let parameters = json!({
            "type": "object",
            "properties": {
                "$filter": {"type": "string"}, "filter[id]": {"type": "array", "items": inner},
                "properties": {"type": "object", "properties": {"a b": {"enum": [{"a b": 1}]}}},
            },
            "required": ["$filter"],
        });
        let tools = [tool(parameters.clone())];
        let names = FieldNames::of(&tools);
        let sent = names.apply("list_orders", OrderedJson::of_schema(&parameters)).to_value();

        assert_eq!(sent["required"], json!(["_filter"]));
        assert_eq!(sent["properties"]["_filter"]["description"], "The field `$filter`.");
        let items = &sent["properties"]["filter_id_"]["items"];
        assert_eq!(items["required"], json!(["gr__e_2", "field"]));
        assert_eq!(items["properties"]["gr__e_2"]["description"], "In metres. The field `größe`.");
        assert_eq!(items["properties"][&long[..64]], json!({"$ref": "#/properties/_filter"}));
        assert_eq!(sent["properties"]["properties"]["properties"]["a_b"]["enum"], json!([{"a b": 1}]));
        let mut known = BTreeSet::new();
        collect(&sent, &mut known);
        assert!(known.iter().all(|name| AnthropicName::is_valid(name)), "{known:?}");

        let arguments = format!(
            r#"{{"_filter": "_filter: \"_filter\":", "filter_id_" :[{{"gr__e_2":1e400,"gr__e":"b","_":18446744073709551617,"field":[],"{}":0}}]}}"#,
            &long[..64]
        );
        let call = ProposedCall { provider_id: None, name: "list_orders".to_owned(), arguments, data: None };
        let mut response = ModelResponse { calls: vec![call], ..ModelResponse::default() };
        names.restore(&mut response);
        assert_eq!(
            response.calls[0].arguments,
            format!(
                r#"{{"$filter": "_filter: \"_filter\":", "filter[id]" :[{{"größe":1e400,"gr__e":"b"," ":18446744073709551617,"":[],"{long}":0}}]}}"#
            )
        );
    }

    #[test]
    fn tools_with_valid_names_stay_as_they_are() {
        let parameters = json!({"type": "object", "properties": {"a.b-c_1": {"type": "string"}}});
        let names = FieldNames::of(&[tool(parameters.clone())]);

        assert!(names.0.is_empty());
        assert_eq!(names.apply("list_orders", OrderedJson::of_schema(&parameters)).to_value(), parameters);
        assert_eq!(with_own_names(r#"{"a": "unended \" :"#, &HashMap::from([("a", "ä")])), r#"{"ä": "unended \" :"#);
    }
}
