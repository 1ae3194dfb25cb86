//! The request rules of real endpoints.
//!
//! | rule | endpoint | source |
//! |---|---|---|
//! | the request matches the published schema | OpenAI | `tests/data/openai/requests.schema.json` |
//! | the request decodes as the request type of `async-openai` | Rust clients | the crate `async-openai` |
//! | a tool's schema is an object with `properties`, and no union at the top | OpenAI | 400 "object schema missing
//! properties", "must not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level" | | a strict schema follows the
//! rules of strict mode | OpenAI | the guide "Structured Outputs", "Supported schemas" | | there is a user message |
//! Anthropic, Google | "at least one message is required", "contents is not specified" | | the last message is not an
//! assistant message | Mistral, Anthropic (newer models) | "Expected last role User or Tool" | | no message is empty |
//! Anthropic, Google | "text content blocks must be non-empty" | | a system message comes first | vLLM, templates of
//! Qwen and Llama | "System message must be at the beginning" | | a result follows its call, and each call has one |
//! OpenAI, Anthropic, Mistral | "tool messages must be a response to a preceding message with 'tool_calls'" | | user
//! and assistant messages alternate | templates of Mistral and Gemma | "Conversation roles must alternate" | | no user
//! message follows a result | Mistral's endpoint | "Unexpected role 'user' after role 'tool'" |

use std::sync::LazyLock;

use async_openai::types::chat::CreateChatCompletionRequest;
use async_openai::types::responses::CreateResponse;
use positronic_model_testing::rules::schema::{each_schema, openai_strict};
use positronic_model_testing::rules::{anthropic, gemini};
use serde::Deserialize as _;
use serde_json::{Value, json};

/// The API of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Chat,
    Responses,
    /// Anthropic's.
    Messages,
    /// Google's.
    GenerateContent,
}

/// A message, independent of the dialect.
enum Said<'a> {
    System(&'a Value),
    User(&'a Value),
    Assistant { text: &'a Value, calls: Vec<&'a str> },
    Result { call: &'a str },
}

/// Lists the violated rules. `results_last` enables the rule of Mistral's endpoint.
pub(super) fn broken(dialect: Dialect, request: &Value, results_last: bool) -> Vec<String> {
    match dialect {
        Dialect::Messages => return anthropic::check(request).err().into_iter().collect(),
        Dialect::GenerateContent => return gemini::check(request).err().into_iter().collect(),
        Dialect::Chat | Dialect::Responses => {}
    }
    let mut wrong = of_the_document(dialect, request);
    wrong.extend(of_the_types(dialect, request));
    for (name, schema, strict) in schemas(dialect, request) {
        if strict {
            wrong.extend(openai_strict(schema).into_iter().map(|what| format!("the strict schema of {name}: {what}")));
        }
        wrong.extend(of_schema(schema).into_iter().map(|what| format!("the schema of {name}: {what}")));
    }
    wrong.extend(of_messages(&messages(dialect, request), results_last));
    wrong
}

/// OpenAPI distinguishes the members of `oneOf` by a discriminator, which schema validators do not know.
static DOCUMENTS: LazyLock<[jsonschema::Validator; 2]> = LazyLock::new(|| {
    fn open(document: &mut Value) {
        match document {
            Value::Object(fields) => {
                if let Some(one) = fields.remove("oneOf") {
                    fields.insert("anyOf".to_owned(), one);
                }
                fields.values_mut().for_each(open);
            }
            Value::Array(items) => items.iter_mut().for_each(open),
            _ => {}
        }
    }
    let mut document: Value = serde_json::from_str(include_str!("../../data/openai/requests.schema.json")).unwrap();
    open(&mut document);
    ["CreateChatCompletionRequest", "CreateResponse"].map(|name| {
        let mut root = document.clone();
        root["$ref"] = json!(format!("#/components/schemas/{name}"));
        jsonschema::validator_for(&root).unwrap()
    })
});

fn of_the_document(dialect: Dialect, request: &Value) -> Vec<String> {
    let [chat, responses] = &*DOCUMENTS;
    let document = if dialect == Dialect::Chat { chat } else { responses };
    let short = |text: String| text.chars().take(300).collect::<String>();
    document
        .iter_errors(request)
        .map(|error| format!("at `{}`: {}", error.instance_path(), short(error.to_string())))
        .collect()
}

/// Decodes the request as another client's type, which also refuses parts that the schema leaves open.
fn of_the_types(dialect: Dialect, request: &Value) -> Option<String> {
    let decoded = match dialect {
        Dialect::Chat => CreateChatCompletionRequest::deserialize(request).map(drop),
        _ => CreateResponse::deserialize(request).map(drop),
    };
    decoded.err().map(|error| format!("as the type of `async-openai`: {error}"))
}

/// Finds the schemas of a request, and whether the endpoint must enforce them.
fn schemas(dialect: Dialect, request: &Value) -> Vec<(String, &Value, bool)> {
    let mut schemas = Vec::new();
    // Tools of the provider have no schema.
    let functions = request["tools"].as_array().into_iter().flatten().filter(|tool| tool["type"] == "function");
    for tool in functions {
        let tool = if dialect == Dialect::Chat { &tool["function"] } else { tool };
        // The Responses API enforces a schema by default.
        let strict = tool["strict"].as_bool().unwrap_or(dialect == Dialect::Responses);
        schemas.push((format!("`{}`", tool["name"].as_str().unwrap_or_default()), &tool["parameters"], strict));
    }
    let format = match dialect {
        Dialect::Chat => &request["response_format"]["json_schema"],
        _ => &request["text"]["format"],
    };
    if format.is_object() {
        schemas.push(("the answer".to_owned(), &format["schema"], format["strict"] == true));
    }
    schemas
}

fn of_schema(schema: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    if schema["type"] != "object" {
        wrong.push(format!("its type is {}", schema["type"]));
    }
    for keyword in ["oneOf", "anyOf", "allOf", "enum", "not"] {
        if schema.get(keyword).is_some() {
            wrong.push(format!("`{keyword}` at the top"));
        }
    }
    each_schema(schema, &mut |schema| {
        let kinds = schema.get("type");
        let object = kinds.is_some_and(|kind| {
            kind == "object" || kind.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "object"))
        });
        if object && !schema.get("properties").is_some_and(Value::is_object) {
            wrong.push(format!("an object without `properties`: {schema:?}"));
        }
    });
    wrong
}

fn messages(dialect: Dialect, request: &Value) -> Vec<Said<'_>> {
    let text = |value: &'_ Value| value.as_str().map(str::to_owned).unwrap_or_default();
    let list = |name: &str| request[name].as_array().map(Vec::as_slice).unwrap_or_default();
    match dialect {
        Dialect::Chat => list("messages")
            .iter()
            .filter_map(|message| match text(&message["role"]).as_str() {
                "system" | "developer" => Some(Said::System(&message["content"])),
                "user" => Some(Said::User(&message["content"])),
                "assistant" => {
                    let calls = message["tool_calls"].as_array().into_iter().flatten();
                    let calls = calls.filter_map(|call| call["id"].as_str()).collect();
                    Some(Said::Assistant { text: &message["content"], calls })
                }
                "tool" => Some(Said::Result { call: message["tool_call_id"].as_str().unwrap_or_default() }),
                _ => None,
            })
            .collect(),
        _ => {
            let mut said: Vec<Said<'_>> = Vec::new();
            for item in list("input") {
                let kind = item["type"].as_str().unwrap_or("message");
                match (kind, text(&item["role"]).as_str()) {
                    ("message", "user") => said.push(Said::User(&item["content"])),
                    ("message", "system" | "developer") => said.push(Said::System(&item["content"])),
                    ("message", "assistant") => {
                        said.push(Said::Assistant { text: &item["content"], calls: Vec::new() });
                    }
                    ("function_call", _) => {
                        let call = item["call_id"].as_str().unwrap_or_default();
                        match said.last_mut() {
                            Some(Said::Assistant { calls, .. }) => calls.push(call),
                            _ => said.push(Said::Assistant { text: &Value::Null, calls: vec![call] }),
                        }
                    }
                    ("function_call_output", _) => {
                        said.push(Said::Result { call: item["call_id"].as_str().unwrap_or_default() });
                    }
                    _ => {}
                }
            }
            said
        }
    }
}

fn is_empty(content: &Value) -> bool {
    match content {
        Value::String(text) => text.trim().is_empty(),
        Value::Array(parts) => {
            parts.iter().all(|part| part["text"].as_str().is_some_and(|text| text.trim().is_empty()))
        }
        _ => true,
    }
}

fn of_messages(said: &[Said<'_>], results_last: bool) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut open: Vec<&str> = Vec::new();
    for (index, message) in said.iter().enumerate() {
        let before = index.checked_sub(1).and_then(|before| said.get(before));
        if !open.is_empty() && !matches!(message, Said::Result { .. }) {
            wrong.push(format!("the calls {open:?} have no result"));
            open.clear();
        }
        match message {
            Said::System(content) => {
                if index > 0 {
                    wrong.push("a system message that is not first".to_owned());
                }
                if is_empty(content) {
                    wrong.push("an empty system message".to_owned());
                }
            }
            Said::User(content) => {
                if is_empty(content) {
                    wrong.push("an empty user message".to_owned());
                }
                if matches!(before, Some(Said::User(_))) {
                    wrong.push(format!("the user speaks twice: {content}"));
                }
                if results_last && matches!(before, Some(Said::Result { .. })) {
                    wrong.push(format!("the user speaks behind a result: {content}"));
                }
            }
            Said::Assistant { text, calls } => {
                if is_empty(text) && calls.is_empty() {
                    wrong.push("an empty assistant message".to_owned());
                }
                if matches!(before, Some(Said::Assistant { .. })) {
                    wrong.push("the assistant speaks twice".to_owned());
                }
                open.clone_from(calls);
            }
            Said::Result { call } => match open.iter().position(|known| known == call) {
                Some(place) => {
                    open.remove(place);
                }
                None => wrong.push(format!("a result of `{call}`, which was not called")),
            },
        }
    }
    if !open.is_empty() {
        wrong.push(format!("the calls {open:?} have no result"));
    }
    if !said.iter().any(|message| matches!(message, Said::User(_))) {
        wrong.push("no user message".to_owned());
    }
    if matches!(said.last(), Some(Said::Assistant { .. })) {
        wrong.push("it ends with an assistant message".to_owned());
    }
    wrong
}

#[test]
fn each_rule_accepts_one_request_and_refuses_another() {
    let call = json!({"id": "c", "type": "function", "function": {"name": "t", "arguments": "{}"}});
    let (system, user) = (json!({"role": "system", "content": "Help."}), json!({"role": "user", "content": "Hi"}));
    let calls = json!({"role": "assistant", "content": null, "tool_calls": [call]});
    let result = json!({"role": "tool", "tool_call_id": "c", "content": "x"});
    let says = |content: &str| json!({"role": "assistant", "content": content});
    let wrong =
        |messages: &[&Value]| broken(Dialect::Chat, &json!({"model": "m", "messages": messages}), true).join("; ");

    assert_eq!(wrong(&[&system, &user, &calls, &result]), "");
    for (messages, what) in [
        (vec![&system], "no user message"),
        (vec![&user, &says("Hello")], "ends with an assistant message"),
        (vec![&user, &says(""), &user], "an empty assistant message"),
        (vec![&user, &system], "a system message that is not first"),
        (vec![&user, &result], "which was not called"),
        (vec![&user, &calls, &user], "have no result"),
        (vec![&user, &user], "the user speaks twice"),
        (vec![&user, &calls, &result, &user], "behind a result"),
        (vec![&user, &json!({"role": "nobody"})], "at `/messages/1`"),
    ] {
        assert!(wrong(&messages).contains(what), "{what}: {}", wrong(&messages));
    }
    let tool = |parameters: Value, strict: bool| {
        let tool = json!({"type": "function", "name": "t", "parameters": parameters, "strict": strict});
        let input = json!([{"role": "user", "content": "Hi"}]);
        broken(Dialect::Responses, &json!({"model": "m", "input": input, "tools": [tool]}), false).join("; ")
    };
    let closed = json!({"type": "object", "properties": {}, "required": [], "additionalProperties": false});
    assert_eq!(tool(closed, true), "");
    assert!(tool(json!({"type": "object"}), false).contains("without `properties`"));
    let optional = json!({"type": "object", "properties": {"a": {"type": "string", "minLength": 2}}, "additionalProperties": false});
    assert!(tool(optional.clone(), true).contains("it requires {}") && tool(optional, false).is_empty());
}
