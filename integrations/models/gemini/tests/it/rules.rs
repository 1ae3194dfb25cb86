//! The published rules of `generateContent`, as far as a body shows them.
//!
//! Sources: Google's reference of the Gemini API and its pages on function calling, thought signatures and caching, as of
//! 2026-11.

use serde_json::Value;

/// Checks a request to a model that needs signatures.
pub(crate) fn check(body: &Value) -> Result<(), String> {
    let cached = body["cachedContent"].is_string();
    for field in ["systemInstruction", "tools", "toolConfig"] {
        let rule = "CachedContent can not be used with system_instruction, tools or tool_config";
        require(!cached || body[field].is_null(), rule)?;
    }
    for tool in body["tools"].as_array().into_iter().flatten() {
        for function in tool["functionDeclarations"].as_array().into_iter().flatten() {
            let name = function["name"].as_str().unwrap_or_default();
            let valid = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-' | '.' | ':');
            require(!name.is_empty() && name.len() <= 64 && name.chars().all(valid), "Invalid function name")?;
            let schema = &function["parametersJsonSchema"];
            let properties = schema["properties"].as_object();
            let open = schema["additionalProperties"].is_object() || schema["additionalProperties"] == true;
            let rule = "parameters.properties: should be non-empty for OBJECT type";
            require(schema.is_null() || open || properties.is_some_and(|fields| !fields.is_empty()), rule)?;
        }
    }
    contents(body["contents"].as_array().ok_or("contents is not specified")?)
}

fn contents(contents: &[Value]) -> Result<(), String> {
    require(contents.first().is_some_and(|first| first["role"] == "user"), "the first content must be the user's")?;
    let mut open: Vec<&Value> = Vec::new();
    for content in contents {
        let parts = content["parts"].as_array().ok_or("contents.parts must not be empty")?;
        require(!parts.is_empty(), "contents.parts must not be empty")?;
        let role = content["role"].as_str().unwrap_or_default();
        require(matches!(role, "user" | "model"), "Please use a valid role: user, model")?;
        let responses: Vec<_> =
            parts.iter().map(|part| &part["functionResponse"]).filter(|part| part.is_object()).collect();
        let rule = "the number of function response parts must equal the number of function call parts";
        require(responses.len() == open.len(), rule)?;
        for (response, call) in responses.iter().zip(&open) {
            require(
                response["name"] == call["name"] && response["id"] == call["id"],
                "the response is not of its call",
            )?;
            require(response["response"].is_object(), "function_response.response must be a Struct")?;
        }
        let calls: Vec<_> = parts.iter().filter(|part| part["functionCall"].is_object()).collect();
        if let Some(first) = calls.first() {
            require(role == "model", "only the model calls functions")?;
            require(first["thoughtSignature"].is_string(), "Function call is missing a thought_signature")?;
        }
        open = calls.into_iter().map(|part| &part["functionCall"]).collect();
    }
    require(open.is_empty(), "a function call has no function response")
}

fn require(holds: bool, rule: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(rule.to_owned()) }
}
