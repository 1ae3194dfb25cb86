//! The published rules of `generateContent`, as far as a body shows them.
//!
//! Sources: Google's reference of the Gemini API and its pages on function calling, combined tools, thought signatures, files and
//! caching, as of 2026-11.

use serde_json::Value;

use super::require;

/// Checks a request to a model that needs signatures.
///
/// # Errors
///
/// The rule that it breaks.
pub fn check(body: &Value) -> Result<(), String> {
    let cached = body["cachedContent"].is_string();
    for field in ["systemInstruction", "tools", "toolConfig"] {
        let rule = "CachedContent can not be used with system_instruction, tools or tool_config";
        require(!cached || body[field].is_null(), rule)?;
    }
    let tools = body["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    let declares = |tool: &&Value| tool["functionDeclarations"].is_array();
    let (own, all) = (tools.iter().filter(declares).count(), tools.len());
    let rule =
        "Please enable tool_config.include_server_side_tool_invocations to use built-in tools with function calling";
    require(own == 0 || own == all || body["toolConfig"]["includeServerSideToolInvocations"] == true, rule)?;
    let rule = "Function calling config is set without function_declarations";
    require(own > 0 || cached || body["toolConfig"]["functionCallingConfig"].is_null(), rule)?;
    for tool in tools {
        require(tool.as_object().is_some_and(|tool| tool.len() == 1), "tools: one kind in each")?;
        for function in tool["functionDeclarations"].as_array().into_iter().flatten() {
            let name = function["name"].as_str().unwrap_or_default();
            let valid = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-' | '.' | ':');
            require(!name.is_empty() && name.len() <= 64 && name.chars().all(valid), "Invalid function name")?;
            let schema = &function["parametersJsonSchema"];
            let properties = schema["properties"].as_object();
            let open = schema["additionalProperties"].is_object() || schema["additionalProperties"] == true;
            let rule = "parameters.properties: should be non-empty for OBJECT type";
            require(schema.is_null() || open || properties.is_some_and(|fields| !fields.is_empty()), rule)?;
            super::schema::gemini(schema)?;
        }
    }
    super::schema::gemini(&body["generationConfig"]["responseJsonSchema"])?;
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
        parts.iter().try_for_each(|part| file(part, role))?;
        let is_response = |part: &Value| part["functionResponse"].is_object();
        let rule = "the function response parts must come first";
        require(parts.iter().skip_while(|part| is_response(part)).all(|part| !is_response(part)), rule)?;
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
            let signature = first["thoughtSignature"].as_str().unwrap_or_default();
            require(!signature.is_empty(), "Function call is missing a thought_signature")?;
        }
        open = calls.into_iter().map(|part| &part["functionCall"]).collect();
    }
    require(open.is_empty(), "a function call has no function response")
}

/// Checks a file of the user or a picture of the model.
fn file(part: &Value, role: &str) -> Result<(), String> {
    const TYPES: [&str; 7] =
        ["image/", "application/pdf", "audio/", "video/", "text/", "application/json", "application/xml"];
    let (inline, by_uri) = (&part["inlineData"], &part["fileData"]);
    if !inline.is_object() && !by_uri.is_object() {
        return Ok(());
    }
    let media_type = inline["mimeType"].as_str().or(by_uri["mimeType"].as_str()).unwrap_or_default();
    require(TYPES.iter().any(|known| media_type.starts_with(known)), "Unsupported MIME type")?;
    let data = inline["data"].as_str().unwrap_or_default();
    require(
        inline.is_null() || (!data.is_empty() && data.len().is_multiple_of(4)),
        "inline_data.data: Base64 decoding failed",
    )?;
    require(by_uri.is_null() || by_uri["fileUri"].is_string(), "file_data.file_uri: required")?;
    let rule = "Image part is missing a thought_signature in a model's turn";
    require(role == "user" || part["thoughtSignature"].is_string(), rule)
}
