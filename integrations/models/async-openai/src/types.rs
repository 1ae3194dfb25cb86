//! Typed tools and options of async-openai, as settings of a request.

use async_openai::types::chat::CreateChatCompletionRequest;
use async_openai::types::responses::{CreateResponse, Tool};
use positronic_core::record::{ProviderTool, Settings};
use serde::Serialize;
use serde_json::{Map, Value};

/// Fields that the engine writes into each request.
const OF_THE_ENGINE: [&str; 6] = ["input", "instructions", "messages", "model", "stream", "stream_options"];

/// Returns a tool of the Responses API as a tool of the provider.
#[must_use]
pub fn response_tool(tool: &Tool) -> ProviderTool {
    ProviderTool::raw(value(tool))
}

/// Returns the options of a request of the Responses API that are set. Its tools become tools of the provider. The conversation and
/// whether the answer is streamed are the engine's, so `input`, `instructions`, `model` and `stream` are left out.
#[must_use]
pub fn response_settings(options: &CreateResponse) -> Settings {
    settings(value(options))
}

/// Returns the options of a request of the chat completions API that are set. Its tools become tools of the provider. The
/// conversation and whether the answer is streamed are the engine's, so `messages`, `model`, `stream` and `stream_options` are left out.
#[must_use]
pub fn chat_settings(options: &CreateChatCompletionRequest) -> Settings {
    settings(value(options))
}

fn settings(options: Value) -> Settings {
    let Value::Object(mut fields) = options else { return Settings::default() };
    fields.retain(|name, value| !value.is_null() && !OF_THE_ENGINE.contains(&name.as_str()));
    let mut settings = Settings::default();
    if let Some(Value::Array(tools)) = fields.remove("tools") {
        settings.provider_tools = tools.into_iter().map(ProviderTool::raw).collect();
    }
    settings.max_output_tokens = limit(&mut fields);
    settings.extra = fields.into_iter().collect();
    settings
}

/// Takes the limit of an answer, of which the lower one of the request and the adapter counts.
fn limit(fields: &mut Map<String, Value>) -> Option<u32> {
    let limits = ["max_completion_tokens", "max_output_tokens"].map(|name| fields.remove(name));
    limits.into_iter().flatten().find_map(|limit| u32::try_from(limit.as_u64()?).ok())
}

/// Encodes a value as text and reads it back, so that a number of 32 bits keeps its digits.
fn value(typed: &impl Serialize) -> Value {
    serde_json::to_string(typed).ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}
