//! JSON schemas, each generated and compiled once.

use std::any::TypeId;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use jsonschema::PatternOptions;
use jsonschema::error::ValidationErrorKind;
use parking_lot::RwLock;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use super::absent::remove_absent;
use super::declaration_order::record_order;
use super::flat::Flat;
use super::integer_bounds::with_integer_bounds;
use super::mismatch::{MAX_ERRORS, MAX_EXPLAINED, cut, explain};
use super::validation_work::{MAX_TRIES, Outline, is_recursive, nodes};
use crate::record::{check_depth, check_numbers};

/// A JSON schema with its lazily compiled validator.
///
/// The schema of a type is cached for the life of the process, so that a loop's closure can rebuild its tools in every
/// iteration at no cost.
pub struct Schema {
    json: Arc<Value>,
    /// The schema as a flat one, if it is.
    flat: OnceLock<Option<Flat>>,
    compiled: OnceLock<Result<Compiled, String>>,
    /// Whether it was generated from a type, and not written by hand or by another program.
    generated: bool,
    /// Whether it wraps the value in an object; see [`Schema::object_of`].
    wrapped: bool,
}

/// A validator, with the bounds of its work; without bounds if a check of a value takes as long as reading it.
struct Compiled {
    validator: jsonschema::Validator,
    outline: Option<Outline>,
}

/// The field that wraps a value that is not an object.
const WRAPPED: &str = "value";

impl Schema {
    /// Creates a schema from its JSON. Its checks are bounded, since it may be another program's.
    #[must_use]
    pub fn new(json: Value) -> Self {
        Self {
            json: Arc::new(json),
            flat: OnceLock::new(),
            compiled: OnceLock::new(),
            generated: false,
            wrapped: false,
        }
    }

    fn generated(json: Value) -> Self {
        Self { generated: true, ..Self::new(json) }
    }

    /// Returns the schema of a type. It records the declared order of the fields
    /// ([`OrderedJson::of_schema`](crate::record::OrderedJson::of_schema)).
    #[must_use]
    pub fn of<T: JsonSchema + 'static>() -> Arc<Self> {
        static SCHEMAS: Cache = Cache::new(None);
        cached::<T>(&SCHEMAS, || Self::generated(schema_of::<T>()))
    }

    /// Returns the schema of a tool's arguments: a closed object ([`Schema::object_of`]), which rejects unknown fields unless
    /// the type itself allows them.
    #[must_use]
    pub fn of_arguments<T: JsonSchema + 'static>() -> Arc<Self> {
        static SCHEMAS: Cache = Cache::new(None);
        cached::<T>(&SCHEMAS, || {
            let mut schema = schema_of::<T>();
            if let Some(object) = schema.as_object_mut() {
                close(object);
                schema.sort_all_objects();
            }
            Self::within_object(schema)
        })
    }

    /// Returns the schema of a type as an object schema, which providers require for arguments and structured answers. If the
    /// values of the type are not objects, or objects of several forms, it describes an object whose only field `value` contains
    /// the value; [`Schema::inner`] returns that.
    #[must_use]
    pub fn object_of<T: JsonSchema + 'static>() -> Arc<Self> {
        static SCHEMAS: Cache = Cache::new(None);
        cached::<T>(&SCHEMAS, || Self::within_object(schema_of::<T>()))
    }

    fn within_object(mut schema: Value) -> Self {
        // A schema without constraints comes from elsewhere and stays as it is.
        let any = schema.as_object().is_none_or(serde_json::Map::is_empty);
        if any || describes_object(&schema, &schema) {
            return Self::generated(schema);
        }
        let definitions = schema.as_object_mut().and_then(|fields| fields.remove("$defs"));
        let mut json = json!({
            "type": "object",
            "properties": { WRAPPED: schema },
            "required": [WRAPPED],
            "additionalProperties": false,
        });
        if let (Some(definitions), Some(fields)) = (definitions, json.as_object_mut()) {
            fields.insert("$defs".to_owned(), definitions);
        }
        json.sort_all_objects();
        Self { wrapped: true, ..Self::generated(json) }
    }

    /// Returns the value of the type for which [`Schema::object_of`] made the schema.
    #[must_use]
    pub fn inner<'v>(&self, value: &'v Value) -> &'v Value {
        let wrapped = value.as_object().filter(|fields| self.wrapped && fields.len() == 1);
        wrapped.and_then(|fields| fields.get(WRAPPED)).unwrap_or(value)
    }

    /// Returns the schema as JSON.
    #[must_use]
    pub const fn json(&self) -> &Arc<Value> {
        &self.json
    }

    /// Compiles the schema if it is not yet compiled. A flat schema, an object whose properties are scalars, is compiled for the
    /// first value that does not fit.
    ///
    /// # Errors
    ///
    /// A message why the schema is invalid, or why the work of validation cannot be bounded.
    pub fn compile(&self) -> Result<(), String> {
        if self.flat().is_some() { Ok(()) } else { self.compiled().map(drop) }
    }

    fn flat(&self) -> Option<&Flat> {
        let flat = self.flat.get_or_init(|| {
            let is_bounded = self.generated || Outline::of(&self.json).is_ok();
            Flat::of(&with_integer_bounds(&self.json)).filter(|_| is_bounded)
        });
        flat.as_ref()
    }

    fn compiled(&self) -> Result<&Compiled, String> {
        let compiled = self.compiled.get_or_init(|| {
            // The value decides how often the schema of a recursive type applies.
            let is_bounded = !self.generated || is_recursive(&self.json);
            let outline = is_bounded.then(|| Outline::of(&self.json)).transpose();
            let outline = outline.map_err(|what| format!("schema rejected: {what}"))?;
            let patterns = PatternOptions::fancy_regex()
                .backtrack_limit(MAX_TRIES)
                .size_limit(MAX_PATTERN)
                .dfa_size_limit(MAX_PATTERN);
            let bounded = with_integer_bounds(&self.json);
            let validator = jsonschema::options().with_pattern_options(patterns).build(&bounded);
            let validator = validator.map_err(|error| format!("invalid schema: {}", cut(&error)))?;
            Ok(Compiled { validator, outline })
        });
        compiled.as_ref().map_err(Clone::clone)
    }

    /// Returns the validator and, if its work is bounded, the maximum number of its steps for a value.
    fn bounded(&self, value: &Value) -> Result<(&jsonschema::Validator, Option<u64>), String> {
        let Compiled { validator, outline } = self.compiled()?;
        let steps = outline.as_ref().map(|outline| outline.bound(&self.json, value)).transpose()?;
        Ok((validator, steps))
    }

    /// Validates a value. It refuses in advance a validation with too many steps by a schema of another program or of a recursive
    /// type.
    ///
    /// # Errors
    ///
    /// A message with the invalid locations, or the reason why the value or the schema cannot be checked.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        if self.flat().is_some_and(|flat| flat.fits(value)) { Ok(()) } else { self.check_compiled(value) }
    }

    /// Validates a value with the compiled validator.
    pub(super) fn check_compiled(&self, value: &Value) -> Result<(), String> {
        let (validator, steps) = self.bounded(value)?;
        explain(validator, steps, value)
    }

    /// Validates a model's value, and removes each `null` that stands for an absent property: where an endpoint enforces
    /// schemas, a model must send every property, and `null` for those that it would omit.
    ///
    /// # Errors
    ///
    /// See [`Schema::check`]; the value is unchanged then.
    pub fn accept(&self, value: &mut Value) -> Result<(), String> {
        if self.flat().is_some_and(|flat| flat.fits(value)) { Ok(()) } else { self.accept_compiled(value) }
    }

    /// Does what [`Schema::accept`] does with the compiled validator.
    pub(super) fn accept_compiled(&self, value: &mut Value) -> Result<(), String> {
        let (validator, steps) = self.bounded(value)?;
        if validator.is_valid(value) {
            return Ok(());
        }
        let mut present = value.clone();
        if steps.unwrap_or_else(|| nodes(value)) <= MAX_EXPLAINED {
            remove_absent(validator, &mut present);
        }
        explain(validator, steps, &present)?;
        *value = present;
        Ok(())
    }

    /// Returns a value in which each text that stands where its schema requires another type is the JSON in it; `None` if there is
    /// no such text.
    pub(crate) fn unquoted(&self, value: &Value) -> Option<Value> {
        let (validator, steps) = self.bounded(value).ok()?;
        if steps.unwrap_or_else(|| nodes(value)) > MAX_EXPLAINED {
            return None;
        }
        let mut unquoted = None;
        for error in validator.iter_errors(value).take(MAX_ERRORS) {
            let (ValidationErrorKind::Type { .. }, Value::String(text)) = (error.kind(), error.instance().as_ref())
            else {
                continue;
            };
            if check_numbers(text).is_err() {
                continue;
            }
            let Ok(json) = serde_json::from_str::<Value>(text) else { continue };
            let at = unquoted.get_or_insert_with(|| value.clone()).pointer_mut(error.instance_path().as_str());
            if let Some(at) = at {
                *at = json;
            }
        }
        unquoted.filter(|unquoted| check_depth(unquoted).is_ok())
    }
}

/// Makes an object schema reject unknown fields.
fn close(schema: &mut serde_json::Map<String, Value>) {
    let says_more = ["$ref", "allOf", "anyOf", "oneOf", "patternProperties", "unevaluatedProperties"];
    let is_plain = schema.get("type").and_then(Value::as_str) == Some("object");
    if is_plain && !says_more.iter().any(|key| schema.contains_key(*key)) {
        schema.entry("additionalProperties").or_insert(Value::Bool(false));
    }
}

/// The maximum size of a compiled pattern in bytes: enough for hand-written patterns, but not for `(a{999}){999}`.
const MAX_PATTERN: usize = 1 << 20;

type Cache = RwLock<Option<HashMap<TypeId, Arc<Schema>>>>;

fn cached<T: 'static>(schemas: &Cache, make: impl FnOnce() -> Schema) -> Arc<Schema> {
    let id = TypeId::of::<T>();
    let known = schemas.read();
    if let Some(known) = known.as_ref().and_then(|known| known.get(&id)) {
        return Arc::clone(known);
    }
    drop(known);
    let made = Arc::new(make());
    let mut known = schemas.write();
    Arc::clone(known.get_or_insert_default().entry(id).or_insert(made))
}

fn schema_of<T: JsonSchema>() -> Value {
    let settings = || SchemaSettings::draft2020_12().with(|settings| settings.meta_schema = None);
    let mut json = settings().into_generator().into_root_schema_for::<T>().to_value();
    let written = settings().for_serialize().into_generator().into_root_schema_for::<T>().to_value();
    if let Some(object) = json.as_object_mut() {
        object.remove("title");
    }
    record_order(&mut json, &written);
    json.sort_all_objects();
    json
}

/// Returns whether a schema describes an object and is not a union.
fn describes_object(root: &Value, schema: &Value) -> bool {
    if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
        let target = target.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        return target.is_some_and(|target| target.get("$ref").is_none() && describes_object(root, target));
    }
    let union = ["anyOf", "oneOf", "allOf"].iter().any(|keyword| schema.get(*keyword).is_some());
    !union && schema.get("type").and_then(Value::as_str) == Some("object")
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.json, f)
    }
}

/// Validates a value against a JSON schema.
///
/// # Errors
///
/// Describes the mismatch, also of a value that is nested too deeply.
pub(crate) fn check_json(schema: &Value, value: &Value) -> Result<(), String> {
    check_depth(value)?;
    Schema::new(schema.clone()).check(value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only the schema is used")]
    struct Refund {
        /// The order to refund.
        order: String,
        amount: u32,
    }

    #[test]
    fn type_has_one_schema_with_its_docs() {
        let schema = Schema::of::<Refund>();

        assert!(Arc::ptr_eq(&schema, &Schema::of::<Refund>()));
        assert_eq!(schema.json()["properties"]["order"]["description"], "The order to refund.");
    }

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only the schema is used")]
    struct Judgement {
        reasoning: String,
        notes: Option<String>,
        #[serde(default)]
        confidence: f64,
        answer: bool,
    }

    #[test]
    fn schema_of_a_type_records_the_declared_order() {
        let ordered = crate::record::OrderedJson::of_schema(Schema::of::<Judgement>().json());
        let fields: Vec<_> = ordered.get("properties").unwrap().as_object().unwrap().keys().collect();

        assert_eq!(fields, ["reasoning", "notes", "confidence", "answer"]);
        assert_eq!(Schema::of::<Refund>().json().get("propertyOrdering"), None, "`required` says it");
    }

    #[derive(JsonSchema)]
    #[serde(rename_all = "snake_case")]
    #[expect(dead_code, reason = "only the schema is used")]
    enum Way {
        North,
        South,
    }

    #[test]
    fn value_that_is_not_an_object_is_wrapped() {
        let schema = Schema::object_of::<Vec<Way>>();

        assert_eq!(schema.json()["properties"]["value"]["items"]["$ref"], "#/$defs/Way");
        schema.check(&json!({"value": ["north"]})).unwrap();
        assert_eq!(schema.inner(&json!({"value": ["north"]})), &json!(["north"]));
        assert_eq!(schema.inner(&json!(["north"])), &json!(["north"]));
        let object = Schema::object_of::<Refund>();
        assert_eq!(object.json(), Schema::of::<Refund>().json());
        assert_eq!(object.inner(&json!({"value": 1})), &json!({"value": 1}));
    }

    #[test]
    fn null_counts_as_an_absent_property() {
        let schema = Schema::of::<Judgement>();
        let mut value = json!({"reasoning": "so", "notes": null, "confidence": null, "answer": true});
        schema.accept(&mut value).unwrap();
        assert_eq!(value, json!({"reasoning": "so", "notes": null, "answer": true}));

        let error = schema.accept(&mut json!({"reasoning": null, "confidence": null, "answer": true})).unwrap_err();
        assert_eq!(error, "at `/reasoning`: null is not of type \"string\"");
    }

    #[test]
    fn too_expensive_values_are_not_searched_for_absent_properties() {
        let branch = |n: usize| json!({"properties": {"a": {"type": "string"}, format!("b{n}"): {"type": "integer"}}});
        let schema = Schema::new(json!({"items": {"anyOf": (0..4000).map(branch).collect::<Vec<_>>()}}));
        let mut items = Value::Array(vec![json!({"a": null}); 20_000]);

        // A search would visit 80 million branches.
        let error = schema.accept(&mut items).unwrap_err();

        assert!(error.contains("the check would take more than"), "{error}");
        assert_eq!(items[19_999], json!({"a": null}));
    }

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only the schema is used")]
    struct Tree {
        orders: Vec<Refund>,
        branches: Vec<Self>,
    }

    #[test]
    fn checks_are_bounded_for_foreign_schemas_and_recursive_types_only() {
        let bounded = |schema: &Schema| schema.compiled().unwrap().outline.is_some();

        assert!(!bounded(&Schema::of::<Vec<Refund>>()) && !bounded(&Schema::of_arguments::<Refund>()));
        assert!(bounded(&Schema::of::<Tree>()) && bounded(&Schema::object_of::<Vec<Tree>>()));
        assert!(bounded(&Schema::new(Value::clone(Schema::of::<Refund>().json()))));
    }
}
