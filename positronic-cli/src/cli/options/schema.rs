//! The type that a JSON schema expects, as far as the command line can parse it from text.

use positronic_core::record::check_numbers;
use serde_json::Value;

/// The expected type of a value.
#[derive(Debug, Clone)]
pub(super) struct Shape<'a> {
    root: &'a Value,
    schema: &'a Value,
    pub(super) kind: Kind<'a>,
    /// Whether `null` is allowed too.
    nullable: bool,
}

#[derive(Debug, Clone)]
pub(super) enum Kind<'a> {
    Text,
    /// One of several values; values other than text are compared as JSON.
    Choice(Vec<&'a Value>),
    Integer,
    Number,
    Flag,
    List(Option<&'a Value>),
    Object,
    Null,
    /// One of several shapes.
    Either(Vec<&'a Value>),
    Any,
}

/// Maximum number of references to follow before a schema counts as cyclic.
const DEPTH: usize = 32;

/// Follows references to the effective schema.
pub(super) fn resolve<'a>(root: &'a Value, mut schema: &'a Value) -> &'a Value {
    for _ in 0..DEPTH {
        let next = match (schema.get("$ref"), schema.get("allOf")) {
            (Some(Value::String(reference)), _) => reference.strip_prefix('#').and_then(|at| root.pointer(at)),
            (_, Some(Value::Array(all))) if schema.get("properties").is_none() => match all.as_slice() {
                [only] => Some(only),
                _ => None,
            },
            _ => None,
        };
        match next {
            Some(next) => schema = next,
            None => break,
        }
    }
    schema
}

/// Finds the schema of a property, declared or additional.
pub(super) fn property<'a>(root: &'a Value, schema: &'a Value, name: &str) -> Option<&'a Value> {
    let shape = Shape::of(root, schema);
    if let Kind::Either(branches) = &shape.kind {
        return branches.iter().find_map(|branch| property(root, branch, name));
    }
    let schema = shape.schema;
    schema.get("properties").and_then(|properties| properties.get(name)).or_else(|| {
        schema.get("additionalProperties").filter(|further| further.is_object() || **further == Value::Bool(true))
    })
}

/// Returns the names of the properties: required ones first, then in alphabetical order.
pub(super) fn names<'a>(root: &'a Value, schema: &'a Value) -> Vec<&'a str> {
    let schema = Shape::of(root, schema).schema;
    let properties = schema.get("properties").and_then(Value::as_object);
    let mut names: Vec<&str> = properties.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
    names.sort_by_key(|name| (!is_required(schema, name), *name));
    names
}

/// Returns whether a property is required.
pub(super) fn is_required(schema: &Value, name: &str) -> bool {
    let required = schema.get("required").and_then(Value::as_array);
    required.is_some_and(|names| names.iter().any(|required| required == name))
}

impl<'a> Shape<'a> {
    pub(super) fn of(root: &'a Value, schema: &'a Value) -> Self {
        let schema = resolve(root, schema);
        let make = |kind, nullable| Self { root, schema, kind, nullable };
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            let choices: Vec<&Value> = values.iter().filter(|value| !value.is_null()).collect();
            let nullable = choices.len() < values.len();
            return make(Kind::Choice(choices), nullable);
        }
        if let Some(value) = schema.get("const") {
            return make(Kind::Choice(vec![value]), false);
        }
        if let Some(branches) = ["anyOf", "oneOf"].iter().find_map(|key| schema.get(*key).and_then(Value::as_array)) {
            return Self::either(root, schema, branches);
        }
        let types: Vec<&str> = match schema.get("type") {
            Some(Value::String(one)) => vec![one.as_str()],
            Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let nullable = types.len() > 1 && types.contains(&"null");
        let rest: Vec<&str> = types.iter().copied().filter(|kind| !nullable || *kind != "null").collect();
        let kind = match rest.as_slice() {
            ["string"] => Kind::Text,
            ["integer"] => Kind::Integer,
            ["number"] => Kind::Number,
            ["boolean"] => Kind::Flag,
            ["array"] => Kind::List(schema.get("items")),
            ["object"] => Kind::Object,
            ["null"] => Kind::Null,
            [] if schema.get("properties").is_some() => Kind::Object,
            _ => Kind::Any,
        };
        make(kind, nullable)
    }

    fn either(root: &'a Value, schema: &'a Value, branches: &'a [Value]) -> Self {
        let is_null = |branch: &&'a Value| matches!(Self::of(root, branch).kind, Kind::Null);
        let rest: Vec<&Value> = branches.iter().filter(|branch| !is_null(branch)).collect();
        let nullable = rest.len() < branches.len();
        if let [only] = rest.as_slice() {
            let inner = Self::of(root, only);
            return Self { nullable: nullable || inner.nullable, ..inner };
        }
        let choices: Vec<&Value> = rest
            .iter()
            .filter_map(|branch| match Self::of(root, branch).kind {
                Kind::Choice(values) => Some(values),
                _ => None,
            })
            .flatten()
            .collect();
        let all_choices = rest.iter().all(|branch| matches!(Self::of(root, branch).kind, Kind::Choice(_)));
        let kind = if all_choices { Kind::Choice(choices) } else { Kind::Either(rest) };
        Self { root, schema, kind, nullable }
    }

    /// Returns a standalone schema with its references.
    pub(super) fn own(&self) -> Value {
        self.schema.clone()
    }

    pub(super) const fn is_list(&self) -> bool {
        matches!(self.kind, Kind::List(_))
    }

    /// Parses a text as the expected type; the error describes it.
    pub(super) fn read(&self, text: &str) -> Result<Value, String> {
        if self.nullable && text == "null" && !matches!(self.kind, Kind::Text) {
            return Ok(Value::Null);
        }
        let json = || serde_json::from_str::<Value>(text).ok().filter(|_| check_numbers(text).is_ok());
        let read = match &self.kind {
            Kind::Text => Some(Value::from(text)),
            Kind::Choice(choices) => choices
                .iter()
                .find(|choice| choice.as_str().map_or_else(|| choice.to_string() == text, |choice| choice == text))
                .map(|choice| (*choice).clone()),
            Kind::Integer => json().filter(|value| value.is_i64() || value.is_u64()),
            Kind::Number => json().filter(Value::is_number),
            Kind::Flag => text.parse().ok().map(Value::Bool),
            Kind::Null => json().filter(Value::is_null),
            Kind::Object => json().filter(Value::is_object),
            Kind::Any => Some(json().unwrap_or_else(|| Value::from(text))),
            Kind::List(items) => match json().filter(Value::is_array) {
                Some(list) => Some(list),
                None if text.starts_with('[') => None,
                None => {
                    let item = items.map_or_else(|| Ok(Value::from(text)), |items| self.at(items).read(text));
                    item.ok().map(|item| Value::Array(vec![item]))
                }
            },
            Kind::Either(branches) => branches
                .iter()
                .map(|branch| self.at(branch))
                .filter(|branch| !matches!(branch.kind, Kind::Text | Kind::Any))
                .find_map(|branch| branch.read(text).ok())
                .or_else(|| branches.iter().find_map(|branch| self.at(branch).read(text).ok())),
        };
        read.ok_or_else(|| self.expected())
    }

    fn at(&self, schema: &'a Value) -> Self {
        Self::of(self.root, schema)
    }

    /// Describes the expected type as the end of a sentence.
    pub(super) fn expected(&self) -> String {
        let mut expected = match &self.kind {
            Kind::Text => "text".to_owned(),
            Kind::Choice(choices) => {
                let names: Vec<String> = choices.iter().map(|choice| bare(choice)).collect();
                format!("one of {}", names.join(", "))
            }
            Kind::Integer => "a whole number".to_owned(),
            Kind::Number => "a number".to_owned(),
            Kind::Flag => "true or false".to_owned(),
            Kind::Null => "nothing".to_owned(),
            Kind::Object => "a JSON object".to_owned(),
            Kind::Any => "any JSON".to_owned(),
            Kind::List(None) => "a list".to_owned(),
            Kind::List(Some(items)) => format!("a list, each item {}", self.at(items).expected()),
            Kind::Either(branches) => {
                let branches: Vec<String> = branches.iter().map(|branch| self.at(branch).expected()).collect();
                branches.join(", or ")
            }
        };
        expected.push_str(&self.bounds());
        expected
    }

    fn bounds(&self) -> String {
        const BOUNDS: [(&str, &str); 9] = [
            ("minimum", "at least"),
            ("exclusiveMinimum", "more than"),
            ("maximum", "at most"),
            ("exclusiveMaximum", "less than"),
            ("minLength", "minimum characters:"),
            ("maxLength", "maximum characters:"),
            ("pattern", "matching"),
            ("minItems", "minimum items:"),
            ("maxItems", "maximum items:"),
        ];
        let bounds: Vec<String> = BOUNDS
            .iter()
            .filter_map(|(key, words)| self.schema.get(*key).map(|limit| format!("{words} {}", bare(limit))))
            .collect();
        if bounds.is_empty() { String::new() } else { format!(", {}", bounds.join(" and ")) }
    }

    /// Renders a valid example value.
    pub(super) fn sample(&self) -> String {
        let given = self.schema.get("examples").and_then(|examples| examples.get(0));
        if let Some(value) = given.or_else(|| self.schema.get("default")).filter(|value| !value.is_null()) {
            return bare(value);
        }
        match &self.kind {
            Kind::Text => "text".to_owned(),
            Kind::Choice(choices) => choices.first().map_or_else(|| "null".to_owned(), |choice| bare(choice)),
            Kind::Integer => self.schema.get("minimum").map_or_else(
                || "1".to_owned(),
                |least| least.as_f64().filter(|least| *least > 1.0).map_or_else(|| "1".to_owned(), |_| bare(least)),
            ),
            Kind::Number => "1.5".to_owned(),
            Kind::Flag => "true".to_owned(),
            Kind::Null => "null".to_owned(),
            Kind::Object => "{}".to_owned(),
            Kind::Any => "text".to_owned(),
            Kind::List(items) => items.map_or_else(|| "text".to_owned(), |items| self.at(items).sample()),
            Kind::Either(branches) => {
                branches.first().map_or_else(|| "text".to_owned(), |branch| self.at(branch).sample())
            }
        }
    }

    /// Returns the properties, and whether each is required, in the order of [`names`].
    pub(super) fn properties(&self) -> Vec<(&'a str, Self, bool)> {
        let properties = self.schema.get("properties");
        names(self.root, self.schema)
            .into_iter()
            .filter_map(|name| Some((name, self.at(properties?.get(name)?), is_required(self.schema, name))))
            .collect()
    }

    /// Returns the description and the default of a property.
    pub(super) fn notes(&self, name: &str) -> (Option<String>, Option<String>) {
        let property = self.schema.get("properties").and_then(|properties| properties.get(name));
        let described = |schema: &Value| schema.get("description").and_then(Value::as_str).map(str::to_owned);
        let description =
            property.and_then(|property| described(property).or_else(|| described(resolve(self.root, property))));
        let default = property.and_then(|property| property.get("default")).filter(|value| !value.is_null()).map(bare);
        (description, default)
    }

    pub(super) fn is_object(&self) -> bool {
        matches!(self.kind, Kind::Object) && self.schema.get("properties").is_some()
    }
}

/// Renders a value; text has no quotes.
pub(super) fn bare(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
