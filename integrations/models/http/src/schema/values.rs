//! The values that a schema enumerates, and their types.

use positronic_core::record::{OrderedJson, OrderedObject};
use serde_json::{Value, json};

use super::openai_limits::VALUES;
use super::strict_error::{Result, refuse};
use super::words::Words;

/// Returns the types of a schema's values.
pub(super) fn kinds(fields: &OrderedObject) -> Result<Vec<String>> {
    if let Some(kind) = fields.get("type") {
        let kinds = match kind {
            OrderedJson::List(kinds) => kinds.iter().filter_map(OrderedJson::as_str).map(str::to_owned).collect(),
            kind => kind.as_str().map(str::to_owned).into_iter().collect::<Vec<_>>(),
        };
        return if kinds.is_empty() { refuse("a part of it has no type") } else { Ok(kinds) };
    }
    if fields.contains_key("properties") {
        return Ok(vec!["object".to_owned()]);
    }
    if fields.contains_key("items") || fields.contains_key("prefixItems") {
        return Ok(vec!["array".to_owned()]);
    }
    let mut kinds: Vec<String> = Vec::new();
    for value in listed(fields) {
        let kind = kind_of(value)?.to_owned();
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    if kinds.is_empty() { refuse("a part of it accepts any value") } else { Ok(kinds) }
}

fn kind_of(value: &OrderedJson) -> Result<&'static str> {
    match value {
        OrderedJson::Leaf(Value::Null) => Ok("null"),
        OrderedJson::Leaf(Value::Bool(_)) => Ok("boolean"),
        OrderedJson::Leaf(Value::String(_)) => Ok("string"),
        OrderedJson::Leaf(Value::Number(number)) => Ok(if number.is_f64() { "number" } else { "integer" }),
        _ => refuse("it lists objects or arrays as values"),
    }
}

/// Returns the values that a schema enumerates.
pub(super) fn listed(fields: &OrderedObject) -> impl Iterator<Item = &OrderedJson> {
    let values = fields.get("enum").and_then(OrderedJson::as_list).unwrap_or_default();
    values.iter().chain(fields.get("const"))
}

/// Returns the enumerated values of one type; `None` if the schema does not enumerate values.
pub(super) fn values_of_kind(kind: &str, fields: &OrderedObject) -> Result<Option<Vec<OrderedJson>>> {
    let mut values: Vec<OrderedJson> = Vec::new();
    let count = listed(fields).count();
    if count > VALUES {
        return refuse(format!("it lists {count} values, and {VALUES} are allowed"));
    }
    for value in listed(fields) {
        let own = kind_of(value)?;
        if (own == kind || (own == "integer" && kind == "number")) && !values.contains(value) {
            values.push(value.clone());
        }
    }
    let any = fields.contains_key("enum") || fields.contains_key("const");
    if any && values.is_empty() {
        return refuse("it lists no value of its type");
    }
    Ok(any.then_some(values))
}

/// Merges a union of constants into one enumeration, whose description explains each value.
pub(super) fn constants(fields: &OrderedObject, branches: &[OrderedJson]) -> Option<OrderedObject> {
    let mut out = fields.clone();
    let mut values = Vec::new();
    let mut words = Words::default();
    for branch in branches {
        let branch = branch.as_object()?;
        let own: Vec<_> = listed(branch).cloned().collect();
        let is_null = branch.get("type").and_then(OrderedJson::as_str) == Some("null");
        if own.is_empty() && !is_null {
            return None;
        }
        if let Some(text) = branch.get("description").and_then(OrderedJson::as_str) {
            let names: Vec<_> = own.iter().map(ToString::to_string).collect();
            words.say(format!("{}: {}", names.join(", "), text.trim_end()));
        }
        values.extend(own);
        if is_null {
            values.push(OrderedJson::Leaf(Value::Null));
        }
    }
    if !values.iter().any(|value| *value != OrderedJson::Leaf(json!(null))) {
        return None;
    }
    out.shift_remove("type");
    out.insert("enum".to_owned(), OrderedJson::List(values));
    words.describe(&mut out);
    Some(out)
}

/// Makes a schema also accept `null`.
pub(super) fn nullable(mut schema: OrderedObject) -> OrderedObject {
    let null = || OrderedJson::Object(OrderedObject::from([("type".to_owned(), "null".into())]));
    if let Some(OrderedJson::List(branches)) = schema.get_mut("anyOf") {
        if !branches.contains(&null()) {
            branches.push(null());
        }
        return schema;
    }
    match schema.get("type") {
        Some(OrderedJson::Leaf(Value::String(kind))) if !matches!(kind.as_str(), "object" | "array") => {
            if kind == "null" {
                return schema;
            }
            let kinds = OrderedJson::List(vec![kind.as_str().into(), "null".into()]);
            schema.insert("type".to_owned(), kinds);
            if let Some(OrderedJson::List(values)) = schema.get_mut("enum") {
                values.push(OrderedJson::Leaf(Value::Null));
            }
            schema
        }
        Some(OrderedJson::List(_)) => schema,
        _ => {
            let mut out: OrderedObject =
                schema.shift_remove("description").map(|text| ("description".to_owned(), text)).into_iter().collect();
            out.insert("anyOf".to_owned(), OrderedJson::List(vec![OrderedJson::Object(schema), null()]));
            out
        }
    }
}
