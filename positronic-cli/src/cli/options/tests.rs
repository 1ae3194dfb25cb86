use serde_json::json;

use super::*;

/// The schema of schemars for a struct with a field of every kind.
fn schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Options",
        "type": "object",
        "properties": {
            "customer_id": {"type": "string", "description": "Who asks", "examples": ["C-17"]},
            "amount": {"type": "integer", "format": "uint32", "minimum": 0},
            "rate": {"type": ["number", "null"], "format": "double"},
            "urgent": {"type": "boolean", "default": false},
            "channel": {"$ref": "#/$defs/Channel"},
            "tone": {"anyOf": [{"$ref": "#/$defs/Tone"}, {"type": "null"}]},
            "tags": {"type": "array", "items": {"type": "string"}, "default": []},
            "sizes": {"type": "array", "items": {"type": "integer"}, "default": []},
            "address": {"$ref": "#/$defs/Address"},
            "headers": {"type": "object", "additionalProperties": {"type": "integer"}},
            "extra": true
        },
        "required": ["customer_id", "amount"],
        "$defs": {
            "Channel": {"type": "string", "enum": ["mail", "chat"]},
            "Tone": {"oneOf": [
                {"description": "Short.", "type": "string", "const": "brief"},
                {"description": "Long.", "type": "string", "const": "chatty"}
            ]},
            "Address": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "zip": {"type": "string", "pattern": "^[0-9]{5}$"}},
                "required": ["city"],
                "additionalProperties": false
            }
        }
    })
}

fn read(pairs: &[&str], document: Option<&str>) -> Result<Value, String> {
    let pairs: Vec<String> = pairs.iter().map(|pair| (*pair).to_owned()).collect();
    parse(&schema(), &pairs, document).map_err(|error| error.problems.join("\n"))
}

#[test]
fn schema_decides_how_each_value_is_parsed() {
    let options = read(
        &[
            "customer_id=42",
            "amount=7",
            "rate=null",
            "urgent=true",
            "channel=chat",
            "tone=brief",
            "tags=a",
            "tags=b=c",
            "sizes=[1, 2]",
            "sizes=3",
            "address.city=Berlin",
            "address.zip=10115",
            "headers.x=1",
            "extra={\"a\": 1}",
        ],
        None,
    );

    assert_eq!(
        options.unwrap(),
        json!({
            "customer_id": "42", "amount": 7, "rate": null, "urgent": true, "channel": "chat", "tone": "brief",
            "tags": ["a", "b=c"], "sizes": [1, 2, 3], "address": {"city": "Berlin", "zip": "10115"},
            "headers": {"x": 1}, "extra": {"a": 1},
        })
    );
}

#[test]
fn pairs_override_the_document() {
    let document = r#"{"customer_id": "C-1", "amount": 1, "tags": ["old"], "address": {"city": "Bonn"}}"#;

    let options = read(&["amount=2", "tags=new", "address.zip=53111"], Some(document)).unwrap();

    assert_eq!(
        options,
        json!({"customer_id": "C-1", "amount": 2, "tags": ["new"], "address": {"city": "Bonn", "zip": "53111"}})
    );
}

#[test]
fn all_problems_are_reported_at_once() {
    let pairs = [
        "amuont=3",
        "rate=fast",
        "urgent=yes",
        "channel=fax",
        "tone=loud",
        "sizes=big",
        "address.zip=1",
        "adress.city=Bonn",
        "zzz=1",
        "nonsense",
        "channel=mail",
        "extra=1",
        "extra=2",
    ];

    insta::assert_snapshot!(read(&pairs, None).unwrap_err(), @r#"
    amuont: unknown option; did you mean `amount`?
    rate: got `fast`, expected a number
    urgent: got `yes`, expected true or false
    channel: got `fax`, expected one of mail, chat
    tone: got `loud`, expected one of brief, chatty
    sizes: got `big`, expected a list, each item a whole number
    adress.city: unknown option; did you mean `address`?
    zzz: unknown option; the options are amount, customer_id, address, channel, extra, headers, rate, sizes, tags, tone, urgent
    `nonsense` is not of the form key=value
    channel: given twice, but it is not a list
    extra: given twice, but it is not a list
    customer_id: missing, expected text
    amount: missing, expected a whole number, at least 0 and at most 4294967295
    address.zip: got `"1"`, expected text, matching ^[0-9]{5}$
    address.city: missing, expected text
    "#);
}

#[test]
fn schema_validates_the_document() {
    let document = r#"{"customer_id": 1, "amount": -1, "address": {"zip": "x", "cty": "Bonn"}, "sizes": [1, "2"]}"#;

    insta::assert_snapshot!(read(&[], Some(document)).unwrap_err(), @r#"
    address.zip: got `"x"`, expected text, matching ^[0-9]{5}$
    address.cty: unknown option; did you mean `address.city`?
    address.city: missing, expected text
    amount: got `-1`, expected a whole number, at least 0 and at most 4294967295
    customer_id: got `1`, expected text
    sizes.1: got `"2"`, expected a whole number
    "#);
    insta::assert_snapshot!(read(&[], Some("{")).unwrap_err(), @"--options: invalid JSON: it ends too early");
    insta::assert_snapshot!(read(&[], Some(r#"{"amount": 18446744073709551617}"#)).unwrap_err(), @"--options: the JSON has a number with too many digits at `/amount`: 18446744073709551617; write one that fits into 64 bits, or a string");
    insta::assert_snapshot!(read(&[], Some("[]")).unwrap_err(), @"the options are `[]`, expected a JSON object");
}

#[test]
fn brain_without_options_accepts_none() {
    let none = json!({"type": "null"});

    assert_eq!(parse(&none, &[], None).unwrap(), Value::Null);
    insta::assert_snapshot!(parse(&none, &["a=1".to_owned()], None).unwrap_err().problems.join("\n"), @"a: unknown option; the brain has no options");
}

#[test]
fn example_contains_the_required_options() {
    assert_eq!(example(&schema()), "-o amount=1 -o customer_id=C-17");
    let flags: Vec<String> = fields(&schema())
        .iter()
        .map(|field| format!("{}{}: {}", field.key, if field.required { "" } else { "?" }, field.expected))
        .collect();
    insta::assert_snapshot!(flags.join("\n"), @r"
    amount: a whole number, at least 0
    customer_id: text
    address.city?: text
    address.zip?: text, matching ^[0-9]{5}$
    channel?: one of mail, chat
    extra?: any JSON
    headers?: a JSON object
    rate?: a number
    sizes?: a list, each item a whole number
    tags?: a list, each item text
    tone?: one of brief, chatty
    urgent?: true or false
    ");
}
