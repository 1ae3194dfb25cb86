//! Tests of schema conversions.

use schemars::JsonSchema;
use serde_json::{Value, json};

use super::*;

#[expect(clippy::needless_pass_by_value, reason = "callers write the schema in place")]
fn strict(schema: Value) -> Result<Value, String> {
    let schema = OrderedJson::of_schema(&schema);
    strict_schema(&schema, SchemaRole::Arguments, SchemaDialect::OpenAi)
        .map(|json| json.to_value())
        .map_err(|error| error.to_string())
}

fn of<T: JsonSchema>() -> Value {
    let settings = schemars::generate::SchemaSettings::draft2020_12();
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

#[expect(clippy::needless_pass_by_value, reason = "callers write the schema in place")]
fn property(schema: Value) -> Result<Value, String> {
    let mut whole = strict(json!({"type": "object", "properties": {"p": schema}, "required": ["p"]}))?;
    Ok(whole["properties"]["p"].take())
}

#[test]
fn tool_without_arguments_is_a_closed_object_with_properties() {
    let closed = json!({"type": "object", "properties": {}, "required": [], "additionalProperties": false});

    assert_eq!(strict(json!({"type": "object"})).unwrap(), closed);
    assert_eq!(strict(json!({"type": "object", "properties": {}})).unwrap(), closed);
    assert_eq!(strict(json!({"type": "object", "additionalProperties": false})).unwrap(), closed);
}

#[test]
fn objects_are_closed_and_optional_properties_accept_null() {
    let schema = json!({
        "type": "object",
        "properties": {
            "must": {"type": "string"},
            "may": {"type": "integer", "default": 3},
            "kind": {"type": "string", "enum": ["a", "b"]},
            "inner": {"type": "object", "description": "Where.", "properties": {"x": {"type": ["number", "null"]}}},
        },
        "required": ["must"],
    });
    let nested = json!({
        "type": "object", "properties": {"x": {"type": ["number", "null"]}}, "required": ["x"], "additionalProperties": false,
    });

    assert_eq!(
        strict(schema).unwrap(),
        json!({
            "type": "object",
            "properties": {
                "must": {"type": "string"},
                "inner": {"description": "Where.", "anyOf": [nested, {"type": "null"}]},
                "kind": {"type": ["string", "null"], "enum": ["a", "b", null]},
                "may": {"type": ["integer", "null"], "description": "Default: 3."},
            },
            "required": ["must", "inner", "kind", "may"],
            "additionalProperties": false,
        })
    );
}

#[test]
fn unsupported_constraints_move_into_the_description() {
    let cases = [
        (
            json!({"type": "integer", "format": "uint8", "minimum": 0, "maximum": 255, "description": "How many"}),
            json!({"type": "integer", "minimum": 0, "maximum": 255, "description": "How many. Format: uint8."}),
        ),
        (
            json!({"type": "string", "minLength": 2, "maxLength": 9, "format": "date", "title": "Day"}),
            json!({"type": "string", "format": "date", "description": "Day. At most 9 characters. At least 2 characters."}),
        ),
        (
            json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true, "minItems": 1}),
            json!({"type": "array", "items": {"type": "string"}, "minItems": 1, "description": "No element twice."}),
        ),
        (
            json!({"type": "array", "prefixItems": [{"type": "string"}, {"type": "string"}], "minItems": 2, "maxItems": 2}),
            json!({
                "type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 2,
                "description": "The elements, in this order: {\"type\":\"string\"}, {\"type\":\"string\"}.",
            }),
        ),
        (json!({"type": "string", "pattern": "^(?=a)"}), json!({"type": "string", "description": "Pattern: ^(?=a)."})),
        (json!({"const": "a"}), json!({"type": "string", "enum": ["a"]})),
        (
            json!({"type": "string", "not": {"const": "x"}}),
            json!({"type": "string", "description": "It has to fit this JSON schema, too: {\"not\":{\"const\":\"x\"}}."}),
        ),
        (
            json!({"type": ["string", "integer", "null"], "maxLength": 3}),
            json!({"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]}),
        ),
    ];
    for (schema, sent) in cases {
        let is = property(schema.clone()).unwrap();
        if schema["type"].is_array() {
            assert_eq!(is["anyOf"].as_array().unwrap().len(), sent["anyOf"].as_array().unwrap().len(), "{is}");
            assert_eq!(is["anyOf"][0]["description"], "At most 3 characters.", "{is}");
        } else {
            assert_eq!(is, sent);
        }
    }
}

#[test]
fn references_have_no_siblings_and_definitions_move_to_the_root() {
    let schema = json!({
        "type": "object",
        "properties": {
            "at": {"$ref": "#/$defs/Place", "description": "Where from"},
            "to": {"$ref": "#/properties/deep/$defs/Place"},
            "deep": {"type": "boolean", "$defs": {"Place": {"type": "string"}}},
        },
        "required": ["at", "to", "deep"],
        "$defs": {"Place": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Place"}}}, "Unused": {"type": "string"}},
    });

    assert_eq!(
        strict(schema).unwrap(),
        json!({
            "type": "object",
            "properties": {
                "at": {"description": "Where from", "anyOf": [{"$ref": "#/$defs/Place"}]},
                "to": {"$ref": "#/$defs/Place_2"},
                "deep": {"type": "boolean"},
            },
            "required": ["at", "to", "deep"],
            "additionalProperties": false,
            "$defs": {
                "Place": {
                    "type": "object",
                    "properties": {"next": {"anyOf": [{"$ref": "#/$defs/Place"}, {"type": "null"}]}},
                    "required": ["next"],
                    "additionalProperties": false,
                },
                "Place_2": {"type": "string"},
            },
        })
    );
}

#[derive(JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[expect(dead_code, reason = "only the schema is used")]
enum Step {
    /// Goes on.
    Drive { far: u32 },
    /// Says something.
    Say { words: String },
}

#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "only the schema is used")]
enum Way {
    /// Up.
    North,
    South,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only the schema is used")]
struct Trip {
    way: Way,
    steps: Vec<Step>,
    note: Option<String>,
    place: (f64, f64),
}

#[test]
fn schema_of_a_type_becomes_strict() {
    let sent = strict(of::<Trip>()).unwrap();

    assert_eq!(
        sent["$defs"]["Way"],
        json!({"type": "string", "enum": ["south", "north"], "description": "\"north\": Up."})
    );
    let branches = sent["$defs"]["Step"]["anyOf"].as_array().unwrap();
    assert_eq!(branches[0]["properties"]["kind"], json!({"type": "string", "enum": ["drive"]}));
    assert_eq!(branches[1]["required"], json!(["kind", "words"]));
    assert_eq!(sent["properties"]["note"], json!({"type": ["string", "null"]}));
    assert_eq!(sent["properties"]["place"]["items"]["type"], "number");
}

#[test]
fn schema_that_cannot_be_strict_names_the_reason() {
    let object = |fields: Value| json!({"type": "object", "properties": {"p": fields}});
    let cases = [
        (
            object(json!({"type": "object", "additionalProperties": {"type": "string"}})),
            "properties of arbitrary names",
        ),
        (object(json!({"type": "object"})), "without listed properties"),
        (object(json!(true)), "accepts any value or none"),
        (object(json!({"description": "Anything"})), "accepts any value"),
        (object(json!({"type": "array"})), "without a schema for its elements"),
        (object(json!({"$ref": "#/$defs/Lost"})), "does not exist"),
        (json!({"type": "string"}), "not an object"),
        (json!({"anyOf": [object(json!({"type": "string"})), object(json!({"type": "integer"}))]}), "not an object"),
        (
            object(json!({"anyOf": [object(json!({"type": "string"})), object(json!({"type": "integer"}))]})),
            "begin with the same property, `p`",
        ),
        (object(json!({"enum": (0..1001).collect::<Vec<_>>()})), "1001 values"),
        ((0..11).fold(json!({"type": "string"}), |inner, _| object(inner)), "11 levels"),
        (json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["b"]}), "requires `b`"),
    ];
    for (schema, reason) in cases {
        let error = strict(schema.clone()).unwrap_err();
        assert!(error.contains(reason), "{error}: {schema}");
        let sent = WireSchema::new(&OrderedJson::of_schema(&schema), SchemaRole::Arguments, true);
        assert!(!sent.strict && sent.json.get("properties").is_some(), "{}", sent.json);
    }
}

#[test]
fn schemas_of_one_object_are_merged() {
    let part = |name: &str| json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]});
    let schema = json!({"allOf": [{"$ref": "#/$defs/A"}, part("b")], "$defs": {"A": part("a")}});
    assert_eq!(strict(schema).unwrap()["required"], json!(["a", "b"]));

    let beside = json!({
        "type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"], "oneOf": [part("x"), part("y")],
    });
    let error = property(beside).unwrap_err();
    assert!(error.contains("begin with the same property, `id`"), "{error}");
}

#[test]
fn fields_keep_the_authors_order() {
    let schema = json!({
        "type": "object",
        "properties": {"answer": {"type": "string"}, "reasoning": {"type": "string"}, "also": {"type": "string"}},
        "required": ["reasoning", "answer"],
    });

    for strict in [true, false] {
        let sent = WireSchema::new(&OrderedJson::of_schema(&schema), SchemaRole::Answer, strict);
        let fields: Vec<_> = sent.json.get("properties").unwrap().as_object().unwrap().keys().collect();
        assert_eq!(fields, ["reasoning", "answer", "also"]);
    }
}

#[test]
fn strict_answer_schema_is_marked_for_every_endpoint() {
    let strict = |schema: Value, role| WireSchema::new(&OrderedJson::of_schema(&schema), role, false).strict;
    let closed = json!({
        "type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": false,
    });

    assert!(strict(closed.clone(), SchemaRole::Answer));
    assert!(!strict(closed, SchemaRole::Arguments));
    assert!(!strict(json!({"type": "object", "properties": {"a": {"type": "string"}}}), SchemaRole::Answer));
}

#[test]
fn parts_that_lead_to_themselves_when_they_are_joined_are_refused() {
    let part = |name: &str| json!({"type": "object", "properties": {name: {"allOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}]}}});
    let both = json!({"A": part("a"), "B": part("b")});
    let beside = json!({"N": {"type": "object", "properties": {"n": {
        "properties": {"m": {"type": "string"}}, "oneOf": [{"$ref": "#/$defs/N"}, {"$ref": "#/$defs/N"}],
    }}}});
    for (start, definitions) in [("A", both), ("N", beside)] {
        let schema =
            json!({"type": "object", "properties": {"x": {"$ref": format!("#/$defs/{start}")}}, "$defs": definitions});

        let error = strict(schema).unwrap_err();

        assert!(error.contains("leads through more than") || error.contains("parts are too many"), "{error}");
    }
}

#[test]
fn large_schemas_are_refused_before_all_of_them_is_read() {
    let names: Vec<_> = (0..20_000).map(|n| format!("p{n}")).collect();
    let many = || names.iter().map(|name| (name.clone(), json!({"type": "string"}))).collect::<serde_json::Map<_, _>>();
    // Each definition copies the next one twice.
    let part = |n: usize| {
        let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
        json!({"type": "object", "properties": {"x": {"allOf": [next, {"properties": {"y": {"allOf": [next, {"type": "object"}]}}}]}}})
    };
    let mut copied: serde_json::Map<_, _> = (0..20).map(|n| (format!("d{n}"), part(n))).collect();
    copied.insert("d20".to_owned(), json!({"type": "object", "properties": many()}));
    for (schema, reason) in [
        (
            json!({"type": "object", "properties": {"p": {"enum": names}}}),
            "it lists 20000 values, and 1000 are allowed",
        ),
        (json!({"type": "object", "properties": many(), "required": names}), "it has 20000 properties"),
        (
            json!({"type": "object", "properties": {"p": {"$ref": "#/$defs/d0"}}, "$defs": copied}),
            "its parts are too many",
        ),
    ] {
        let error = strict(schema).unwrap_err();

        assert!(error.contains(reason), "{error}");
    }
}

fn anthropic(schema: &Value) -> Result<Value, String> {
    let schema = OrderedJson::of_schema(schema);
    let sent = strict_schema(&schema, SchemaRole::Arguments, SchemaDialect::Anthropic);
    sent.map(|json| json.to_value()).map_err(|error| error.to_string())
}

#[test]
fn anthropic_gets_bounds_in_words_and_no_recursion() {
    let property = |schema: Value| {
        let whole = json!({"type": "object", "properties": {"p": schema}, "required": ["p"]});
        anthropic(&whole).map(|mut sent| sent["properties"]["p"].take())
    };

    assert_eq!(
        property(json!({"type": "integer", "minimum": 1, "exclusiveMaximum": 9, "multipleOf": 2})).unwrap(),
        json!({"type": "integer", "description": "Less than 9. At least 1. A multiple of 2."})
    );
    let strings = |bounds: Value| {
        let mut schema = json!({"type": "array", "items": {"type": "string", "format": "uri"}});
        schema.as_object_mut().unwrap().extend(bounds.as_object().unwrap().clone());
        property(schema).unwrap()
    };
    let items = json!({"type": "string", "format": "uri"});
    assert_eq!(strings(json!({"minItems": 1})), json!({"type": "array", "items": items, "minItems": 1}));
    assert_eq!(
        strings(json!({"minItems": 2, "maxItems": 3})),
        json!({"type": "array", "items": items, "description": "At most 3 elements. At least 2 elements."})
    );
    let node = json!({"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}, "required": ["next"]});
    let list = json!({"type": "object", "properties": {"first": {"$ref": "#/$defs/Node"}}, "required": ["first"], "$defs": {"Node": node}});
    assert!(anthropic(&list).unwrap_err().contains("recursive"));
    assert!(strict(list).is_ok(), "OpenAI enforces recursion");
}

#[test]
fn anthropic_gets_many_optional_fields_as_optional() {
    let of = |count: usize| {
        let properties: serde_json::Map<_, _> =
            (0..count).map(|at| (format!("f{at}"), json!({"type": "string"}))).collect();
        anthropic(&json!({"type": "object", "properties": properties, "additionalProperties": false}))
    };

    assert_eq!(of(16).unwrap()["required"].as_array().unwrap().len(), 16, "each may be `null`");
    assert_eq!(of(17).unwrap()["required"], json!([]));
    assert!(of(25).is_err());
}

fn gemini(schema: &Value) -> Value {
    gemini_schema(&OrderedJson::of_schema(schema), SchemaRole::Answer).to_value()
}

#[test]
fn gemini_gets_all_definitions_at_the_root_and_nothing_beside_references() {
    let schema = json!({
        "type": "object",
        "properties": {
            "a": {"$ref": "#/definitions/A", "description": "The first"},
            "b": {"type": "object", "properties": {"x": {"$ref": "#/properties/b/$defs/A"}}, "$defs": {"A": {"const": 1}}},
            "c": {"$ref": "https://example.org/schema"},
        },
        "definitions": {"A": {"type": "string", "pattern": "^a"}},
    });

    assert_eq!(
        gemini(&schema),
        json!({
            "type": "object",
            "properties": {
                "a": {"description": "The first", "anyOf": [{"$ref": "#/$defs/A"}]},
                "b": {"type": "object", "properties": {"x": {"$ref": "#/$defs/A_2"}}},
                "c": {"description": "It has to fit this JSON schema, too: {\"$ref\":\"https://example.org/schema\"}."},
            },
            "$defs": {"A": {"type": "string", "description": "Pattern: ^a."}, "A_2": {"enum": [1]}},
        })
    );
}

#[test]
fn gemini_gets_cycles_only_in_optional_properties() {
    let tree = json!({
        "type": "object",
        "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}},
        "required": ["name", "children"],
    });
    let schema = json!({"type": "object", "properties": {"tree": {"$ref": "#/$defs/Tree"}}, "required": ["tree"], "$defs": {"Tree": tree}});
    let sent = gemini(&schema);

    assert_eq!(sent["required"], json!(["tree"]));
    assert_eq!(sent["$defs"]["Tree"]["required"], json!(["name"]));
    assert_eq!(sent["$defs"]["Tree"]["description"], "Required: `children`.");
}

#[test]
fn gemini_gets_values_that_it_lists() {
    let property =
        |schema: Value| gemini(&json!({"type": "object", "properties": {"p": schema}}))["properties"]["p"].take();

    assert_eq!(property(json!({"const": "a"})), json!({"enum": ["a"]}));
    assert_eq!(
        property(json!({"type": "boolean", "const": true})),
        json!({"type": "boolean", "description": "Always true."})
    );
    assert_eq!(
        property(json!({"type": ["string", "null"], "enum": ["a", null]})),
        json!({"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}]})
    );
    assert_eq!(property(json!(true)), json!({}));
}

#[test]
fn parts_that_join_themselves_end() {
    let part = json!({"allOf": [{"$ref": "#/$defs/A"}, {"type": "object", "properties": {"y": {}}}]});
    let schema = json!({
        "type": "object", "properties": {"a": part, "b": part},
        "$defs": {"A": {"type": "object", "properties": {"p": part, "q": part}}},
    });

    assert!(gemini(&schema)["properties"]["a"]["properties"]["p"].is_object());
}
