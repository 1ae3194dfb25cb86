//! Values that a type's schema describes, to render a template with before there is a value.
//!
//! A sample has every field that the schema names and no other, one item in each list, and some text or number in each leaf. So a template that
//! renders with it uses no field that the type does not have, on the way that the sample takes through its branches.

use std::sync::Arc;

use minijinja::Value;
use minijinja::value::{Enumerator, Object, ObjectRepr};
use serde_json::Value as Json;

/// How many references of a schema are followed in a row.
const DEEPEST: usize = 32;

/// Returns a sample of the type with this schema.
pub(crate) fn of(schema: &Json) -> Value {
    sample(&Arc::new(schema.clone()), schema)
}

/// The part of a type whose fields are looked up.
#[derive(Debug)]
enum Sample {
    /// An object; the fields are those of any of its variants.
    Fields { root: Arc<Json>, variants: Vec<Json> },
    /// A list of items of one type.
    List { root: Arc<Json>, item: Json },
    /// A value of any form.
    Any,
}

fn sample(root: &Arc<Json>, schema: &Json) -> Value {
    let mut variants = Vec::new();
    variants_of(root, schema, DEEPEST, &mut variants);
    let is = |variant: &&Json, name: &str| match variant.get("type") {
        Some(Json::String(only)) => only == name,
        Some(Json::Array(several)) => several.iter().any(|one| one == name),
        _ => false,
    };
    if variants.iter().any(|variant| variant.get("properties").is_some() || is(variant, "object")) {
        let variants = variants.into_iter().cloned().collect();
        return Value::from_object(Sample::Fields { root: Arc::clone(root), variants });
    }
    for variant in &variants {
        if let Some(fixed) = variant.get("const").or_else(|| variant.get("enum")?.get(0)) {
            return Value::from(minijinja::value::Serde(fixed));
        }
        if let Some(items) = variant.get("prefixItems").and_then(Json::as_array) {
            return items.iter().map(|item| sample(root, item)).collect();
        }
        if is(variant, "array") {
            let item = variant.get("items").cloned().unwrap_or(Json::Bool(true));
            return Value::from_object(Sample::List { root: Arc::clone(root), item });
        }
        if is(variant, "string") {
            return Value::from("text");
        }
        if is(variant, "integer") || is(variant, "number") {
            return Value::from(1);
        }
        if is(variant, "boolean") {
            return Value::from(true);
        }
    }
    match variants.iter().all(|variant| is(variant, "null")) && !variants.is_empty() {
        true => Value::from(()),
        false => Value::from_object(Sample::Any),
    }
}

/// Lists the schemas of which a value fits one or all.
fn variants_of<'s>(root: &'s Json, schema: &'s Json, depth: usize, found: &mut Vec<&'s Json>) {
    let Some(depth) = depth.checked_sub(1) else { return };
    found.push(schema);
    if let Some(reference) = schema.get("$ref").and_then(Json::as_str)
        && let Some(target) = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer))
    {
        variants_of(root, target, depth, found);
    }
    for several in ["anyOf", "oneOf", "allOf"] {
        for one in schema.get(several).and_then(Json::as_array).into_iter().flatten() {
            variants_of(root, one, depth, found);
        }
    }
}

/// Returns the field of a variant; a map has any.
fn field(root: &Arc<Json>, variant: &Json, name: &str) -> Option<Value> {
    if let Some(schema) = variant.get("properties").and_then(|properties| properties.get(name)) {
        return Some(sample(root, schema));
    }
    match variant.get("additionalProperties") {
        None | Some(Json::Bool(false)) => None,
        Some(schema) => Some(sample(root, schema)),
    }
}

/// Lists the names of fields, sorted.
pub(crate) fn names(schema: &Json) -> Vec<String> {
    let mut variants = Vec::new();
    variants_of(schema, schema, DEEPEST, &mut variants);
    let mut names = Vec::new();
    for variant in variants {
        let properties = variant.get("properties").and_then(Json::as_object);
        for name in properties.into_iter().flat_map(serde_json::Map::keys) {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
    }
    names.sort();
    names
}

impl Object for Sample {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        match **self {
            Self::List { .. } => ObjectRepr::Seq,
            Self::Fields { .. } | Self::Any => ObjectRepr::Map,
        }
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        match &**self {
            Self::Fields { root, variants } => {
                let name = key.as_str()?;
                variants.iter().find_map(|variant| field(root, variant, name))
            }
            Self::List { root, item } => key.as_usize().map(|_| sample(root, item)),
            Self::Any => Some(Value::from_object(Self::Any)),
        }
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        match &**self {
            Self::List { .. } => Enumerator::Seq(1),
            Self::Any => Enumerator::Str(&["key"]),
            Self::Fields { variants, .. } => {
                let mut keys: Vec<String> = variants.iter().flat_map(names).collect();
                if variants.iter().any(|variant| variant.get("additionalProperties").is_some_and(|more| more != false))
                {
                    keys.push("key".to_owned());
                }
                Enumerator::Values(keys.into_iter().map(Value::from).collect())
            }
        }
    }
}
