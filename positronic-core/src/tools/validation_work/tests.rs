//! Schemas and values at the bounds.

use serde_json::json;

use super::*;

/// Creates references that double at every step.
fn doubling(steps: usize) -> Value {
    let mut definitions = Map::new();
    for step in 0..steps {
        let next = json!({"$ref": format!("#/$defs/d{}", step + 1)});
        definitions.insert(format!("d{step}"), json!({"allOf": [next, next]}));
    }
    definitions.insert(format!("d{steps}"), json!({"type": "object"}));
    json!({"$ref": "#/$defs/d0", "$defs": definitions})
}

#[test]
fn exponential_references_are_rejected() {
    assert!(Outline::of(&doubling(10)).is_ok());
    let error = Outline::of(&doubling(30)).unwrap_err();
    assert!(error.starts_with("its references and combinators apply 4294967294 schemas"), "{error}");
}

#[test]
fn small_check_whose_subschemas_apply_once_is_not_counted() {
    let schema = json!({"type": "object", "properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}}});
    let outline = Outline::of(&schema).unwrap();
    let bound = |value: &Value| outline.bound(&schema, value).unwrap();
    let counted = |value: &Value| {
        let mut counter = Counter { root: &schema, steps: 0, most: u64::MAX, depth: 0 };
        counter.visit(&schema, value).map(|()| counter.steps).unwrap()
    };

    let small = json!({"a": "b"});
    assert_eq!(bound(&small), 2 * 9, "values of the value, times those of the schema");
    assert!(counted(&small) <= bound(&small));
    let large = json!({"a": vec![0; 20_000]});
    assert_eq!(bound(&large), counted(&large));
    let patterned = json!({"type": "string", "pattern": "(?=a)"});
    assert_eq!(Outline::of(&patterned).unwrap().bound(&patterned, &json!("a".repeat(256))), Ok(2 + 256));
}

#[test]
fn self_reference_for_the_same_value_is_rejected() {
    for schema in [json!({"$ref": "#"}), json!({"anyOf": [{"$ref": "#/anyOf/0"}]})] {
        let error = Outline::of(&schema).unwrap_err();
        assert_eq!(error, "a schema in it refers to itself for the same value");
    }
    assert!(Outline::of(&json!({"properties": {"next": {"$ref": "#"}}})).is_ok(), "a list");
}

#[test]
fn references_other_than_pointers_within_the_schema_are_rejected() {
    let anchors = json!([{"$anchor": "one"}, {"$dynamicAnchor": "two"}]);
    for reference in ["https://example.org/schema", "other.json", "#/nowhere", "#missing", "#one"] {
        let error = Outline::of(&json!({"properties": {"a": {"$ref": reference}}, "$defs": anchors})).unwrap_err();
        assert!(error.contains("is not the JSON pointer of a schema in it"), "{error}");
    }
    let dynamic = json!({"items": {"$dynamicRef": "#two"}, "$defs": anchors});
    assert!(Outline::of(&dynamic).unwrap_err().contains("`#two` is not the JSON pointer"));
    let hidden = json!({"$ref": "#/x", "x": {"$anchor": "one", "properties": {"a": {"$ref": "#one"}}}});
    assert!(Outline::of(&hidden).unwrap().bound(&hidden, &json!({"a": 1})).is_err(), "no step remains uncounted");
    assert!(Outline::of(&json!({"$defs": {"a b": {}}, "items": {"$ref": "#/$defs/a%20b"}})).is_ok());
}

#[test]
fn subschema_with_an_id_and_a_reference_is_rejected() {
    let within = |inner: Value| Outline::of(&json!({"$id": "a.json", "$defs": {"b": {}}, "items": inner})).map(drop);

    assert_eq!(within(json!({"$id": "b.json", "properties": {"$id": {"type": "string"}}})), Ok(()));
    assert_eq!(within(json!({"$ref": "#/$defs/b"})), Ok(()));
    assert!(within(json!({"$id": "b.json", "not": {"$ref": "#/$defs/b"}})).unwrap_err().contains("has an `$id`"));
}

#[test]
fn exponential_recursion_along_a_value_is_rejected_in_advance() {
    let schema = json!({"anyOf": [{"properties": {"a": {"$ref": "#"}}}, {"properties": {"a": {"$ref": "#"}}}]});
    let outline = Outline::of(&schema).unwrap();
    let nested = |depth: usize| (0..depth).fold(json!({}), |inner, _| json!({"a": inner}));

    assert!(outline.bound(&schema, &nested(5)).unwrap() < 1_000);
    assert!(outline.bound(&schema, &nested(60)).unwrap_err().contains("more than 1000000 steps"));
}

#[test]
fn check_is_rejected_before_the_stack_overflows() {
    let schema = json!({"properties": {"a": {"anyOf": [{"allOf": [{"oneOf": [{"$ref": "#"}]}]}]}}});
    let outline = Outline::of(&schema).unwrap();
    let nested = |depth: usize| (0..depth).fold(json!({}), |inner, _| json!({"a": inner}));

    assert!(outline.bound(&schema, &nested(80)).is_ok());
    assert!(outline.bound(&schema, &nested(120)).unwrap_err().contains("exceed 512 levels"));
    let chain: Map<String, Value> =
        (0..100).map(|step| (format!("d{step}"), json!({"$ref": format!("#/$defs/d{}", (step + 1) % 100)}))).collect();
    let error = Outline::of(&json!({"$defs": chain})).unwrap_err();
    assert!(error.contains("through more than 64 schemas"), "{error}");
}

#[test]
fn look_around_pattern_is_limited_to_short_texts() {
    let schema = json!({"pattern": "^(?!a).*(x+x+)+y$"});
    let outline = Outline::of(&schema).unwrap();

    assert!(outline.bound(&schema, &json!("x".repeat(4_000))).is_ok());
    assert!(outline.bound(&schema, &json!("x".repeat(100_000))).is_err());
    let plain = json!({"pattern": "^\\d+(?:x|y)$"});
    assert!(Outline::of(&plain).unwrap().bound(&plain, &json!("1".repeat(1_000_000))).is_ok());
}

#[test]
fn large_schemas_are_rejected() {
    assert!(Outline::of(&json!({"enum": vec![0; MAX_NODES]})).unwrap_err().contains("values"));
    assert!(Outline::of(&json!({"description": "x".repeat(MAX_TEXT + 1)})).unwrap_err().contains("bytes of text"));
}
