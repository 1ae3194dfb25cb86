//! The chunks of a chat answer, with every field optional. A whole answer has the same form, with a `message` in the
//! place of the `delta`.

use serde::Deserialize;
use serde_json::Value;

use super::lenient::{count, lenient};
use crate::record::Usage;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Chunk {
    #[serde(deserialize_with = "lenient")]
    pub(super) id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) model: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) choices: Option<Vec<Choice>>,
    #[serde(deserialize_with = "lenient")]
    pub(super) usage: Option<ChatUsage>,
    #[serde(deserialize_with = "lenient")]
    pub(super) x_groq: Option<Groq>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Groq {
    #[serde(deserialize_with = "lenient")]
    pub(super) usage: Option<ChatUsage>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Choice {
    #[serde(deserialize_with = "lenient")]
    pub(super) index: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    pub(super) delta: Option<Delta>,
    #[serde(deserialize_with = "lenient")]
    pub(super) message: Option<Delta>,
    #[serde(deserialize_with = "lenient")]
    pub(super) finish_reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Delta {
    pub(super) content: Value,
    #[serde(deserialize_with = "lenient")]
    pub(super) refusal: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) reasoning_content: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) reasoning: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) reasoning_details: Option<Vec<Value>>,
    #[serde(deserialize_with = "lenient")]
    pub(super) tool_calls: Option<Vec<CallDelta>>,
    #[serde(deserialize_with = "lenient")]
    pub(super) extra_content: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CallDelta {
    #[serde(deserialize_with = "lenient")]
    pub(super) index: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    pub(super) id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) function: Option<FunctionDelta>,
    #[serde(deserialize_with = "lenient")]
    pub(super) extra_content: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct FunctionDelta {
    #[serde(deserialize_with = "lenient")]
    pub(super) name: Option<String>,
    pub(super) arguments: Value,
}

impl FunctionDelta {
    /// Returns the piece of the arguments; some servers send them as an object, all at once.
    pub(super) fn text(&self) -> String {
        match &self.arguments {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            document => document.to_string(),
        }
    }
}

impl Delta {
    /// Returns the pieces of text in `content`, each with whether it is a thought: a text, or a list of typed parts.
    pub(super) fn content(&self) -> Vec<(bool, String)> {
        match &self.content {
            Value::String(text) => vec![(false, text.clone())],
            Value::Array(parts) => parts.iter().map(content_part).collect(),
            _ => Vec::new(),
        }
    }
}

fn content_part(part: &Value) -> (bool, String) {
    let thinking = part.get("thinking");
    let text = match thinking.or_else(|| part.get("text")) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts.iter().filter_map(|part| part.get("text")?.as_str()).collect(),
        _ => String::new(),
    };
    (thinking.is_some(), text)
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ChatUsage {
    #[serde(deserialize_with = "count")]
    prompt_tokens: Option<u64>,
    #[serde(deserialize_with = "count")]
    completion_tokens: Option<u64>,
    #[serde(deserialize_with = "count")]
    total_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    prompt_tokens_details: Option<Details>,
    #[serde(deserialize_with = "lenient")]
    completion_tokens_details: Option<Details>,
    #[serde(deserialize_with = "count")]
    prompt_cache_hit_tokens: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Details {
    #[serde(deserialize_with = "count")]
    pub(super) cached_tokens: Option<u64>,
    #[serde(deserialize_with = "count")]
    pub(super) reasoning_tokens: Option<u64>,
}

impl From<ChatUsage> for Usage {
    fn from(usage: ChatUsage) -> Self {
        let input = usage.prompt_tokens.unwrap_or(0);
        let output = usage.completion_tokens.unwrap_or(0);
        let reasoning = usage.completion_tokens_details.and_then(|details| details.reasoning_tokens).unwrap_or(0);
        let cached = usage.prompt_tokens_details.and_then(|details| details.cached_tokens);
        // xAI does not count thoughts as part of the answer; the total tells.
        let apart = usage.total_tokens == Some(input + output + reasoning);
        Self {
            input,
            output: if apart { output + reasoning } else { output },
            cached: cached.or(usage.prompt_cache_hit_tokens).unwrap_or(0),
            reasoning,
        }
    }
}
