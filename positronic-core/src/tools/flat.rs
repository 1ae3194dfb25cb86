//! A check against a flat schema, an object whose properties are scalars, without a compiled validator.
//!
//! Most tools have such a schema. Compiling a validator takes longer than everything else up to the first request, so one is
//! compiled only for a schema that is not flat, or for a value that [`Flat::fits`] does not accept: the validator decides then, and
//! words the errors.

use serde_json::{Map, Value};

/// A flat schema.
#[derive(Debug)]
pub(super) struct Flat {
    /// By name.
    properties: Vec<(String, Scalar)>,
    required: Vec<String>,
    is_closed: bool,
}

/// The constraints of a property.
#[derive(Debug, Default)]
struct Scalar {
    /// The types of the values; any if there are none.
    types: Vec<Type>,
    choices: Option<Vec<String>>,
    minimum: Option<i128>,
    maximum: Option<i128>,
    min_length: Option<u64>,
    max_length: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Type {
    Null,
    Boolean,
    Integer,
    Number,
    String,
}

impl Flat {
    /// Reads a schema; `None` if it has a keyword, or a form of one, that this check does not know.
    pub(super) fn of(schema: &Value) -> Option<Self> {
        let fields = schema.as_object()?;
        if fields.get("type")?.as_str()? != "object" {
            return None;
        }
        let mut flat = Self { properties: Vec::new(), required: Vec::new(), is_closed: false };
        for (keyword, value) in fields {
            match keyword.as_str() {
                "type" | "propertyOrdering" => {}
                "title" | "description" => _ = value.as_str()?,
                "properties" => {
                    let scalar = |(name, schema): (&String, &Value)| Some((name.clone(), Scalar::of(schema)?));
                    flat.properties = value.as_object()?.iter().map(scalar).collect::<Option<_>>()?;
                    flat.properties.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
                }
                "required" => flat.required = distinct_texts(value)?,
                "additionalProperties" => flat.is_closed = !value.as_bool()?,
                _ => return None,
            }
        }
        Some(flat)
    }

    /// Returns whether a value is certainly valid. `false` also means that only a validator can tell.
    pub(super) fn fits(&self, value: &Value) -> bool {
        let Value::Object(fields) = value else { return false };
        let is_valid = |(name, field): (&String, &Value)| match self.property(name) {
            Some(property) => property.fits(field),
            None => !self.is_closed,
        };
        self.required.iter().all(|name| fields.contains_key(name)) && fields.iter().all(is_valid)
    }

    fn property(&self, name: &str) -> Option<&Scalar> {
        let found = self.properties.binary_search_by(|(known, _)| known.as_str().cmp(name)).ok()?;
        self.properties.get(found).map(|(_, property)| property)
    }
}

impl Scalar {
    fn of(schema: &Value) -> Option<Self> {
        match schema {
            Value::Bool(true) => Some(Self::default()),
            Value::Object(fields) => Self::of_fields(fields),
            _ => None,
        }
    }

    fn of_fields(fields: &Map<String, Value>) -> Option<Self> {
        let mut scalar = Self::default();
        for (keyword, value) in fields {
            match keyword.as_str() {
                // Formats are annotations in the dialect of schemas without `$schema`.
                "title" | "description" | "format" => _ = value.as_str()?,
                "default" => {}
                "examples" => _ = value.as_array()?,
                "type" if value.is_string() => scalar.types = vec![Type::of(value.as_str()?)?],
                "type" => {
                    let types = distinct_texts(value).filter(|types| !types.is_empty())?;
                    scalar.types = types.iter().map(|name| Type::of(name)).collect::<Option<_>>()?;
                }
                "enum" => scalar.choices = Some(distinct_texts(value).filter(|choices| !choices.is_empty())?),
                "minimum" => scalar.minimum = Some(integer(value)?),
                "maximum" => scalar.maximum = Some(integer(value)?),
                "minLength" => scalar.min_length = Some(value.as_u64()?),
                "maxLength" => scalar.max_length = Some(value.as_u64()?),
                _ => return None,
            }
        }
        Some(scalar)
    }

    fn fits(&self, value: &Value) -> bool {
        let has_type = self.types.is_empty() || self.types.iter().any(|kind| kind.has(value));
        has_type
            && self.choices.as_ref().is_none_or(|choices| value.as_str().is_some_and(|text| has(choices, text)))
            && match value {
                Value::Number(_) => self.holds(value),
                Value::String(text) => self.is_as_long(text),
                Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => true,
            }
    }

    /// Returns whether a number is within the bounds. Only a validator compares floats.
    fn holds(&self, number: &Value) -> bool {
        if self.minimum.is_none() && self.maximum.is_none() {
            return true;
        }
        integer(number).is_some_and(|number| {
            self.minimum.is_none_or(|least| number >= least) && self.maximum.is_none_or(|most| number <= most)
        })
    }

    fn is_as_long(&self, text: &str) -> bool {
        if self.min_length.is_none() && self.max_length.is_none() {
            return true;
        }
        let length = u64::try_from(text.chars().count()).unwrap_or(u64::MAX);
        self.min_length.is_none_or(|least| length >= least) && self.max_length.is_none_or(|most| length <= most)
    }
}

impl Type {
    fn of(name: &str) -> Option<Self> {
        Some(match name {
            "null" => Self::Null,
            "boolean" => Self::Boolean,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "string" => Self::String,
            _ => return None,
        })
    }

    /// Returns whether a value has this type. A float may be an integer, too; a validator tells.
    fn has(self, value: &Value) -> bool {
        match self {
            Self::Null => value.is_null(),
            Self::Boolean => value.is_boolean(),
            Self::Integer => value.is_i64() || value.is_u64(),
            Self::Number => value.is_number(),
            Self::String => value.is_string(),
        }
    }
}

fn has(texts: &[String], text: &str) -> bool {
    texts.iter().any(|known| known == text)
}

/// Reads a list of texts that are all different.
fn distinct_texts(list: &Value) -> Option<Vec<String>> {
    let texts: Vec<_> = list.as_array()?.iter().map(|text| text.as_str().map(str::to_owned)).collect::<Option<_>>()?;
    let mut sorted: Vec<_> = texts.iter().collect();
    sorted.sort_unstable();
    sorted.is_sorted_by(|one, next| one < next).then_some(texts)
}

fn integer(number: &Value) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::tools::with_integer_bounds;

    fn types() -> impl Strategy<Value = Value> {
        let names = || vec!["null", "boolean", "integer", "number", "string"];
        let one = prop::sample::select(names()).prop_map(Value::from);
        let some = prop::sample::subsequence(names(), 1..4).prop_map(Value::from);
        prop_oneof![3 => one, 1 => some]
    }

    /// Properties as tools have them, and some keywords that are not flat.
    fn property() -> impl Strategy<Value = Value> {
        let keyword = prop_oneof![
            4 => types().prop_map(|types| ("type", types)),
            1 => prop::sample::subsequence(vec!["a", "b", "ü", ""], 0..4).prop_map(|texts| ("enum", json!(texts))),
            1 => (-3_i64..4).prop_map(|least| ("minimum", json!(least))),
            1 => (-3_i64..4).prop_map(|most| ("maximum", json!(most))),
            1 => (0_u64..3).prop_map(|least| ("minLength", json!(least))),
            1 => (0_u64..3).prop_map(|most| ("maxLength", json!(most))),
            1 => prop::sample::select(vec!["uint8", "int8", "uint64", "date", "double"]).prop_map(|name| ("format", json!(name))),
            1 => Just(("description", json!("What it is."))),
            1 => Just(("default", json!({"any": 1}))),
            1 => prop::sample::select(vec![("pattern", json!("^a")), ("minimum", json!(0.5)), ("enum", json!([1, 1])), ("type", json!("array")),
                ("required", json!(["a"])), ("const", json!("a")), ("type", json!([]))]),
        ];
        prop_oneof![
            9 => prop::collection::vec(keyword, 0..4).prop_map(|keywords| keywords.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>().into()),
            1 => any::<bool>().prop_map(Value::Bool),
        ]
    }

    fn name() -> impl Strategy<Value = String> {
        prop::sample::select(vec!["a", "b", "c", "ü/~", ""]).prop_map(str::to_owned)
    }

    prop_compose! {
        fn schema()(
            properties in prop::option::of(prop::collection::btree_map(name(), property(), 0..4)),
            required in prop::option::of(prop::collection::vec(name(), 0..3)),
            more in prop::option::of(prop_oneof![4 => any::<bool>().prop_map(Value::Bool), 1 => Just(json!({"type": "string"}))]),
            kind in prop_oneof![9 => Just(json!("object")), 1 => Just(json!(["object"]))],
        ) -> Value {
            let mut schema = json!({"type": kind});
            let optional = [("properties", properties.map(|all| json!(all))), ("required", required.map(|all| json!(all))), ("additionalProperties", more)];
            for (name, value) in optional {
                if let Some(value) = value {
                    schema[name] = value;
                }
            }
            schema
        }
    }

    fn field() -> impl Strategy<Value = Value> {
        prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            (-5_i64..300).prop_map(Value::from),
            prop::sample::select(vec![
                json!(1.0),
                json!(0.5),
                json!(u64::MAX),
                json!(i64::MIN),
                json!(1e300),
                json!(-0.0)
            ]),
            "[abü]{0,3}".prop_map(Value::from),
            Just(json!(["a"])),
            Just(json!({"a": 1})),
        ]
    }

    fn value() -> impl Strategy<Value = Value> {
        let object = prop::collection::btree_map(name(), field(), 0..4).prop_map(|fields| json!(fields));
        prop_oneof![9 => object, 1 => field()]
    }

    fn has_float(value: &Value) -> bool {
        match value {
            Value::Object(fields) => fields.values().any(has_float),
            value => value.is_f64(),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn flat_schema_decides_as_its_validator(schema in schema(), values in prop::collection::vec(value(), 1..12)) {
            let bounded = with_integer_bounds(&schema);
            let Some(flat) = Flat::of(&bounded) else { return Ok(()) };
            let validator = jsonschema::options().build(&bounded);
            prop_assert!(validator.is_ok(), "{schema}: {validator:?}");
            let validator = validator.unwrap();
            for value in values {
                let (fits, is_valid) = (flat.fits(&value), validator.is_valid(&value));
                // Floats are left to the validator.
                prop_assert!(fits == is_valid || (is_valid && has_float(&value)), "{schema} {value} {fits} {is_valid}");
            }
        }

        #[test]
        fn errors_are_those_of_the_validator(schema in schema(), values in prop::collection::vec(value(), 1..6)) {
            let (quick, compiled) = (crate::tools::Schema::new(schema.clone()), crate::tools::Schema::new(schema));
            for mut value in values {
                let mut same = value.clone();
                prop_assert_eq!(quick.check(&value), compiled.check_compiled(&value));
                prop_assert_eq!(quick.accept(&mut value), compiled.accept_compiled(&mut same));
                prop_assert_eq!(value, same);
            }
        }
    }
}
