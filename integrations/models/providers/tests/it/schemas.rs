//! Schemas of answers and tools that no provider takes as they are, in the dialect of each.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use positronic_anthropic::{Anthropic, AnthropicConfig};
use positronic_core::model::Model;
use positronic_core::record::{
    CallFlags, Message, ModelRequest, OutputFormat, Path, Settings, ToolDecl, ToolId, ToolSet, Transcript,
};
use positronic_core::tools::Schema;
use positronic_gemini::{Gemini, GeminiConfig};
use positronic_model_testing::Rules;
use positronic_model_testing::rules::schema::openai_strict;
use positronic_model_testing::rules::{anthropic, chat, gemini, responses};
use positronic_openai::{OpenAiChat, OpenAiConfig, OpenAiResponses};
use schemars::JsonSchema;
use serde_json::{Value, json};

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only the schema is used")]
struct Tree {
    name: String,
    children: Vec<Self>,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only the schema is used")]
struct Chain {
    /// The next link
    next: Option<Box<Self>>,
    kind: Option<Kind>,
}

#[derive(JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[expect(dead_code, reason = "only the schema is used")]
enum Shape {
    /// A circle
    Circle {
        radius: f32,
    },
    Square {
        side: u8,
        colour: Option<Kind>,
    },
}

#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "only the schema is used")]
enum Move {
    Forward(u16),
    Turn { degrees: i16 },
    Stop,
}

#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "only the schema is used")]
enum Kind {
    /// Not yet sent
    Open,
    /// Sent
    Done,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only the schema is used")]
struct Order {
    /// The lines
    #[schemars(length(min = 2, max = 5))]
    lines: Vec<Line>,
    by_day: BTreeMap<String, u32>,
    corner: (i8, i8),
    rgb: [u8; 3],
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only the schema is used")]
struct Line {
    #[schemars(range(min = 1, max = 99))]
    count: u32,
    #[schemars(regex(pattern = "^[A-Z]{2}$"))]
    code: String,
    kind: Kind,
    shape: Shape,
}

fn of<T: JsonSchema + 'static>() -> Value {
    Value::clone(Schema::object_of::<T>().json())
}

fn object(properties: &Value) -> Value {
    let required: Vec<_> = properties.as_object().unwrap().keys().cloned().collect();
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

fn optional(count: usize) -> Value {
    let properties: HashMap<_, _> = (0..count).map(|at| (format!("f{at}"), json!({"type": "string"}))).collect();
    json!({"type": "object", "properties": properties, "additionalProperties": false})
}

fn one(schema: &Value) -> Value {
    object(&json!({"a": schema}))
}

/// The schemas, by what is special about them.
fn schemas() -> Vec<(&'static str, Value)> {
    let nested = json!({
        "type": "object", "properties": {"a": {"$ref": "#/properties/a/$defs/In"}}, "required": ["a"],
    });
    let mut inner = nested.clone();
    inner["properties"]["a"] = json!({"$ref": "#/properties/b/$defs/In", "description": "The first"});
    inner["properties"]["b"] = json!({
        "type": "object", "properties": {"x": {"$ref": "#/properties/b/$defs/In"}},
        "$defs": {"In": {"type": "string", "minLength": 2}},
    });
    vec![
        ("numbers", one(&json!({"type": "integer", "minimum": 1, "maximum": 5}))),
        (
            "open numbers",
            one(&json!({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1, "multipleOf": 0.1})),
        ),
        ("small numbers", of::<u8>()),
        ("arrays of two", one(&json!({"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 3}))),
        (
            "arrays of one",
            one(&json!({"type": "array", "items": {"type": "string"}, "minItems": 1, "uniqueItems": true})),
        ),
        ("patterns", one(&json!({"type": "string", "pattern": "^[a-z]+$"}))),
        ("lookahead", one(&json!({"type": "string", "pattern": "^(?=a).*$"}))),
        ("lengths", one(&json!({"type": "string", "minLength": 2, "maxLength": 4}))),
        (
            "formats",
            object(&json!({
                "at": {"type": "string", "format": "date-time"}, "to": {"type": "string", "format": "uri"},
                "by": {"type": "string", "format": "iri"},
            })),
        ),
        ("recursion", of::<Tree>()),
        ("optional recursion", of::<Chain>()),
        (
            "recursion of the root",
            json!({
                "type": "object", "properties": {"child": {"$ref": "#"}, "name": {"type": "string"}}, "required": ["name"],
                "additionalProperties": false,
            }),
        ),
        ("maps", of::<HashMap<String, Line>>()),
        ("anything", one(&json!({}))),
        ("enumerations", of::<Kind>()),
        ("enumerations with data", of::<Move>()),
        ("tagged enumerations", of::<Shape>()),
        ("optional enumerations", one(&json!({"type": ["string", "null"], "enum": ["a", "b", null]}))),
        (
            "constants",
            object(&json!({"yes": {"const": true}, "one": {"const": 1}, "a": {"const": "a"}, "no": {"const": null}})),
        ),
        ("objects as values", one(&json!({"enum": [{"a": 1}, {"a": 2}]}))),
        ("nested definitions", inner),
        (
            "joined parts",
            one(&json!({"allOf": [
                {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]},
                {"type": "object", "properties": {"y": {"type": "integer", "minimum": 2}}},
            ]})),
        ),
        (
            "conditions",
            one(&json!({"type": "object", "properties": {"x": {"type": "string"}}, "additionalProperties": false,
            "if": {"required": ["x"]}, "then": {"minProperties": 1}})),
        ),
        ("tuples", of::<(String, u32)>()),
        ("all together", of::<Order>()),
        ("20 optional fields", optional(20)),
        ("30 optional fields", optional(30)),
        (
            "odd names",
            object(&json!({
                "$filter": {"type": "string"}, "filter[id]": {"type": "array", "items": {"$ref": "#/properties/$filter"}},
                "größe": one(&json!({"type": "integer"})), " ": {"type": "string"},
                "settings__approved__or__denied__countries__or__regions__approved__list": {"type": "string"},
            })),
        ),
    ]
}

fn request(tools: Vec<(String, Value)>, output: OutputFormat) -> ModelRequest {
    let tool = |(id, parameters): (String, Value)| ToolDecl {
        id: ToolId::new(&id).unwrap(),
        title: None,
        description: "A tool".to_owned(),
        parameters: Arc::new(parameters),
        flags: CallFlags::default(),
    };
    ModelRequest {
        path: Path::root().stage("Look").iteration(1),
        attempt: 0,
        system: "Help.".into(),
        context: [].into(),
        tools: Arc::new(ToolSet::new(tools.into_iter().map(tool).collect())),
        messages: Transcript::new([Message::user("Hi.")]),
        settings: Arc::new(Settings::builder().output(output).build()),
    }
}

/// The adapters with the rules of their providers.
fn adapters() -> Vec<(&'static str, Box<dyn Model>, Rules)> {
    let openai = || OpenAiConfig::builder().model("gpt-5").build();
    let claude = |strict: bool| AnthropicConfig::builder().model("claude").strict_tools(strict).build();
    let google = GeminiConfig::builder().model("gemini-3-pro").build();
    vec![
        ("anthropic", Box::new(Anthropic::new(claude(false)).unwrap()), anthropic::check),
        ("anthropic strict", Box::new(Anthropic::new(claude(true)).unwrap()), anthropic::check),
        ("gemini", Box::new(Gemini::new(google).unwrap()), gemini::check),
        ("chat", Box::new(OpenAiChat::new(openai()).unwrap()), chat_rules),
        ("responses", Box::new(OpenAiResponses::new(openai()).unwrap()), responses_rules),
    ]
}

fn enforced(schema: &Value, strict: &Value) -> Result<(), String> {
    let wrong = if *strict == true { openai_strict(schema) } else { Vec::new() };
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
}

fn chat_rules(body: &Value) -> Result<(), String> {
    chat::check(body)?;
    let format = &body["response_format"]["json_schema"];
    enforced(&format["schema"], &format["strict"])?;
    let tools = body["tools"].as_array().into_iter().flatten().map(|tool| &tool["function"]);
    tools.into_iter().try_for_each(|tool| enforced(&tool["parameters"], &tool["strict"]))
}

fn responses_rules(body: &Value) -> Result<(), String> {
    responses::check(body)?;
    let format = &body["text"]["format"];
    enforced(&format["schema"], &format["strict"])?;
    body["tools"].as_array().into_iter().flatten().try_for_each(|tool| enforced(&tool["parameters"], &tool["strict"]))
}

fn body(adapter: &dyn Model, request: &ModelRequest) -> Value {
    serde_json::from_str(&adapter.wire(request)).unwrap()
}

#[test]
fn each_provider_accepts_every_schema_of_an_answer() {
    let mut wrong = Vec::new();
    let mut described = Vec::new();
    for (adapter, model, rules) in adapters() {
        for (name, schema) in schemas() {
            let output = OutputFormat::JsonSchema { name: "answer".to_owned(), schema: Arc::new(schema) };
            let body = body(&*model, &request(Vec::new(), output));
            wrong.extend(rules(&body).err().map(|rule| format!("{adapter}, {name}: {rule}")));
            if adapter == "anthropic" && body["output_config"].is_null() {
                assert!(body["messages"].to_string().contains("Answer only with JSON that matches this schema"));
                described.push(name);
            }
        }
    }

    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    insta::assert_snapshot!(described.join(", "), @"recursion, optional recursion, recursion of the root, maps, anything, objects as values, all together, 30 optional fields, odd names");
}

#[test]
fn each_provider_accepts_every_tool() {
    let mut wrong = Vec::new();
    for (adapter, model, rules) in adapters() {
        let tools: Vec<_> = schemas().into_iter().map(|(name, schema)| (name.replace(' ', "_"), schema)).collect();
        let mut sets: Vec<_> = tools.iter().map(|tool| vec![tool.clone()]).collect();
        sets.push(tools);
        for tools in sets {
            let names: Vec<_> = tools.iter().map(|(name, _)| name.clone()).collect();
            let body = body(&*model, &request(tools, OutputFormat::Text));
            wrong.extend(rules(&body).err().map(|rule| format!("{adapter}, {}: {rule}", names.join(" "))));
        }
    }

    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn constraint_that_a_provider_does_not_enforce_is_described_and_checked() {
    let schema = object(&json!({
        "count": {"type": "integer", "minimum": 1, "maximum": 5, "description": "How many"},
        "code": {"type": "string", "pattern": "^[A-Z]{2}$"},
        "lines": {"type": "array", "items": {"type": "string"}, "minItems": 2},
    }));
    let sent = |adapter: usize| {
        let output = OutputFormat::JsonSchema { name: "answer".to_owned(), schema: Arc::new(schema.clone()) };
        body(&*adapters()[adapter].1, &request(Vec::new(), output))
    };

    let claude = &sent(0)["output_config"]["format"]["schema"]["properties"];
    assert_eq!(claude["count"], json!({"type": "integer", "description": "How many. At most 5. At least 1."}));
    assert_eq!(claude["code"], json!({"type": "string", "description": "Pattern: ^[A-Z]{2}$."}));
    assert_eq!(claude["lines"]["description"], "At least 2 elements.");
    let google = &sent(2)["generationConfig"]["responseJsonSchema"]["properties"];
    assert_eq!(google["count"]["minimum"], 1);
    assert_eq!(google["code"]["description"], "Pattern: ^[A-Z]{2}$.");
    let own = Schema::new(schema.clone());
    own.check(&json!({"count": 5, "code": "AB", "lines": ["a", "b"]})).unwrap();
    for wrong in [
        json!({"count": 6, "code": "AB", "lines": ["a", "b"]}),
        json!({"count": 5, "code": "ab", "lines": ["a", "b"]}),
        json!({"count": 5, "code": "AB", "lines": ["a"]}),
    ] {
        assert!(own.check(&wrong).is_err(), "{wrong}");
    }
}
