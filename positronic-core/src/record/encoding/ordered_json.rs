//! JSON whose objects keep the order of their keys, for JSON schemas.
//!
//! Models fill in fields in the order of the schema, so the author's order (such as `reasoning` before `answer`) must reach
//! the provider. [`Value`] sorts keys unless some crate enables a feature of `serde_json`, so a schema in the log states the
//! order itself: first the fields in its keyword `propertyOrdering` (Google's keyword), then those in `required`, then the
//! other properties by name.

use std::fmt;

use indexmap::IndexMap;
use serde::Serialize;
use serde_json::{Map, Value};

/// The keyword that lists the properties of an object in the author's order. It is not sent to providers.
pub const PROPERTY_ORDERING: &str = "propertyOrdering";

/// A JSON document whose objects keep the order of their keys.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum OrderedJson {
    /// A number, string, boolean, or `null`.
    Leaf(Value),
    /// An array.
    List(Vec<Self>),
    /// An object.
    Object(OrderedObject),
}

/// The ordered fields of an object.
pub type OrderedObject = IndexMap<String, OrderedJson>;

impl OrderedJson {
    /// Orders a JSON schema: the properties of object schemas as listed, other keys in the
    /// conventional order, such as `type` before `properties`. [`PROPERTY_ORDERING`] is dropped.
    #[must_use]
    pub fn of_schema(schema: &Value) -> Self {
        match schema {
            Value::Object(fields) => {
                let ordering = fields.get("properties").is_some_and(Value::is_object);
                let mut keys: Vec<&String> =
                    fields.keys().filter(|key| !(ordering && *key == PROPERTY_ORDERING)).collect();
                keys.sort_by_key(|key| (rank(key), key.as_str()));
                Self::Object(keys.into_iter().map(|key| (key.clone(), Self::keyword(key, fields))).collect())
            }
            Value::Array(items) => Self::List(items.iter().map(Self::of_schema).collect()),
            leaf => Self::Leaf(leaf.clone()),
        }
    }

    fn keyword(key: &str, schema: &Map<String, Value>) -> Self {
        let value = schema.get(key).unwrap_or(&Value::Null);
        match (key, value) {
            ("properties", Value::Object(properties)) => {
                let ordered = property_order(schema, properties).into_iter();
                let property = |name: &str| properties.get(name).map(Self::of_schema);
                Self::Object(ordered.filter_map(|name| Some((name.to_owned(), property(name)?))).collect())
            }
            // The names of definitions are not keywords.
            ("$defs" | "definitions", Value::Object(definitions)) => {
                let mut names: Vec<_> = definitions.iter().collect();
                names.sort_by_key(|(name, _)| name.as_str());
                Self::Object(names.into_iter().map(|(name, schema)| (name.clone(), Self::of_schema(schema))).collect())
            }
            ("enum" | "const" | "default" | "examples", value) => value.into(),
            (_, value) => Self::of_schema(value),
        }
    }

    /// Returns the fields of an object.
    #[must_use]
    pub const fn as_object(&self) -> Option<&OrderedObject> {
        match self {
            Self::Object(fields) => Some(fields),
            Self::Leaf(_) | Self::List(_) => None,
        }
    }

    /// Returns the items of an array.
    #[must_use]
    pub fn as_list(&self) -> Option<&[Self]> {
        match self {
            Self::List(items) => Some(items),
            Self::Leaf(_) | Self::Object(_) => None,
        }
    }

    /// Returns a string.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Leaf(value) => value.as_str(),
            Self::List(_) | Self::Object(_) => None,
        }
    }

    /// Returns a field of an object.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.as_object()?.get(key)
    }

    /// Resolves a JSON pointer such as `/$defs/Node`.
    #[must_use]
    pub fn pointer(&self, pointer: &str) -> Option<&Self> {
        let mut at = self;
        for token in pointer.split('/').skip(1) {
            let token = token.replace("~1", "/").replace("~0", "~");
            at = match at {
                Self::Object(fields) => fields.get(&token)?,
                Self::List(items) => items.get(token.parse::<usize>().ok()?)?,
                Self::Leaf(_) => return None,
            };
        }
        Some(at)
    }

    /// Returns whether this is the schema of an object without listed properties.
    #[must_use]
    pub fn is_bare_object_schema(&self) -> bool {
        const SAYS_MORE: [&str; 5] = ["$ref", "allOf", "anyOf", "oneOf", "required"];
        self.as_object().is_some_and(|fields| {
            let properties = fields.get("properties").and_then(Self::as_object);
            fields.get("type").and_then(Self::as_str) == Some("object")
                && properties.is_none_or(OrderedObject::is_empty)
                && fields.get("additionalProperties").is_none_or(|more| *more == Self::Leaf(Value::Bool(false)))
                && !SAYS_MORE.iter().any(|keyword| fields.contains_key(*keyword))
        })
    }

    /// Converts to a [`Value`], which may sort the keys.
    #[must_use]
    pub fn to_value(&self) -> Value {
        match self {
            Self::Leaf(value) => value.clone(),
            Self::List(items) => items.iter().map(Self::to_value).collect(),
            Self::Object(fields) => {
                Value::Object(fields.iter().map(|(key, value)| (key.clone(), value.to_value())).collect())
            }
        }
    }
}

/// Lists the properties of an object schema in order.
pub(crate) fn property_order<'a>(schema: &'a Map<String, Value>, properties: &'a Map<String, Value>) -> Vec<&'a str> {
    let listed = |key: &str| schema.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let mut names: Vec<&str> = properties.keys().map(String::as_str).collect();
    names.sort_unstable();
    let mut order = indexmap::IndexSet::with_capacity(names.len());
    let known = listed(PROPERTY_ORDERING).chain(listed("required")).filter(|name| properties.contains_key(*name));
    order.extend(known.chain(names));
    order.into_iter().collect()
}

/// Returns the position of a keyword in the conventional order.
fn rank(keyword: &str) -> usize {
    const FIRST: [&str; 13] = [
        "$schema",
        "$ref",
        "type",
        "title",
        "description",
        "enum",
        "const",
        "properties",
        "required",
        "items",
        "anyOf",
        "oneOf",
        "allOf",
    ];
    const LAST: [&str; 3] = ["additionalProperties", "$defs", "definitions"];
    let last = || LAST.iter().position(|known| *known == keyword).map(|index| index + FIRST.len() + 1);
    FIRST.iter().position(|known| *known == keyword).or_else(last).unwrap_or(FIRST.len())
}

impl From<&Value> for OrderedJson {
    /// Keeps the order of keys in the value.
    fn from(value: &Value) -> Self {
        match value {
            Value::Object(fields) => {
                Self::Object(fields.iter().map(|(key, value)| (key.clone(), value.into())).collect())
            }
            Value::Array(items) => Self::List(items.iter().map(Self::from).collect()),
            leaf => Self::Leaf(leaf.clone()),
        }
    }
}

impl From<Value> for OrderedJson {
    fn from(value: Value) -> Self {
        Self::from(&value)
    }
}

impl From<&str> for OrderedJson {
    fn from(text: &str) -> Self {
        Self::Leaf(text.into())
    }
}

impl From<String> for OrderedJson {
    fn from(text: String) -> Self {
        Self::Leaf(text.into())
    }
}

impl fmt::Display for OrderedJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn schema_keeps_its_listed_order() {
        let schema = json!({
            "type": "object",
            "properties": {"answer": {"type": "string"}, "why": {"type": "string"}, "a": {}, "notes": {}},
            "required": ["why", "answer"],
            "propertyOrdering": ["notes"],
        });

        assert_eq!(
            OrderedJson::of_schema(&schema).to_string(),
            r#"{"type":"object","properties":{"notes":{},"why":{"type":"string"},"answer":{"type":"string"},"a":{}},"required":["why","answer"]}"#
        );
    }

    #[test]
    fn pointer_resolves_to_a_definition() {
        let json = OrderedJson::from(json!({"$defs": {"a/b": {"x": [1, 2]}}}));

        assert_eq!(json.pointer("/$defs/a~1b/x/1"), Some(&OrderedJson::Leaf(json!(2))));
        assert_eq!(json.pointer("/$defs/b"), None);
        assert_eq!(json.pointer(""), Some(&json));
    }
}
