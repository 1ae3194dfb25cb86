//! The kind of a failure that a server reports, from its code, its message and its status.
//!
//! A known code decides first, then a known message, then the status. A status of the 4xx class overrules a code that means a
//! failure of the server: a wrong key does not become right when the request is sent again.

use positronic_core::record::ModelErrorKind;

use super::fault::ServerFault;

/// Classifies a failure; `status` is absent for a failure during an answer.
pub(super) fn kind(status: Option<u16>, fault: &ServerFault) -> ModelErrorKind {
    let codes = [fault.code.as_deref(), fault.kind.as_deref()];
    let named = codes.into_iter().flatten().find_map(kind_of_code).filter(|kind| fits(status, *kind));
    match (named, kind_of_message(status, &fault.message)) {
        // Groq and GitHub report a request that is larger than its limit per minute as one of too many requests, for which a
        // pause does not help.
        (Some(ModelErrorKind::RateLimited) | None, Some(by_message)) => by_message,
        (Some(named), _) => named,
        (None, None) => kind_of_status(status),
    }
}

/// Returns whether a code can be right for a status: some servers send `server_error` with every status.
fn fits(status: Option<u16>, named: ModelErrorKind) -> bool {
    let of_the_caller = matches!(status, Some(400..=407 | 409..=424 | 426..=428 | 430..=499));
    named != ModelErrorKind::Server || !of_the_caller
}

fn kind_of_code(code: &str) -> Option<ModelErrorKind> {
    Some(match code {
        "insufficient_quota" | "billing_hard_limit_reached" | "billing_not_active" | "insufficient_balance" => {
            ModelErrorKind::QuotaExhausted
        }
        "rate_limit_exceeded" | "rate_limit_error" | "rate_limit_reached_error" | "rate_limited" => {
            ModelErrorKind::RateLimited
        }
        "context_length_exceeded"
        | "exceed_context_size_error"
        | "context_window_exceeded"
        | "prompt_too_long"
        | "request_too_large"
        | "tokens_limit_reached"
        | "model_max_prompt_tokens_exceeded" => ModelErrorKind::ContextTooLong,
        "content_filter" | "content_policy_violation" | "moderation_blocked" => ModelErrorKind::Filtered,
        "invalid_api_key" | "authentication_error" | "permission_error" | "permission_denied" => ModelErrorKind::Auth,
        "model_not_found" | "not_found_error" => ModelErrorKind::NotFound,
        "server_error"
        | "internal_error"
        | "internal_server_error"
        | "overloaded_error"
        | "server_is_overloaded"
        | "engine_overloaded"
        | "service_unavailable"
        | "unavailable_error"
        | "slow_down" => ModelErrorKind::Server,
        "invalid_prompt" => ModelErrorKind::BadRequest,
        // Groq reports these with status 400 when its own model wrote an invalid call or invalid JSON.
        "tool_use_failed" | "json_validate_failed" => ModelErrorKind::Malformed,
        _ => return None,
    })
}

/// Recognises failures for which servers have a message but no code: a used-up account, refused content, or a prompt that is
/// too long.
fn kind_of_message(status: Option<u16>, message: &str) -> Option<ModelErrorKind> {
    let lower = message.to_lowercase();
    // Anthropic reports it with the code of a bad request.
    if contains_any(&lower, &["usage limits", "credit balance is too low"]) {
        return Some(ModelErrorKind::QuotaExhausted);
    }
    // Gemini reports a wrong key as a bad request.
    if status == Some(400) && message.contains("API key not valid") {
        return Some(ModelErrorKind::Auth);
    }
    // OpenRouter reports it with the status of a wrong key.
    if status == Some(403) && contains_any(&lower, &["flagged", "moderation"]) {
        return Some(ModelErrorKind::Filtered);
    }
    // llama.cpp has used the status of a server's failure.
    let possible = matches!(status, Some(400 | 413 | 422 | 429 | 500) | None);
    (possible && is_too_long(&lower)).then_some(ModelErrorKind::ContextTooLong)
}

/// Sentences that only a prompt that is too long leads to.
const TOO_LONG: [&str; 24] = [
    "prompt is too long",
    "prompt too long",
    "input is too long",
    "input too long",
    "prompt (total length",
    "request too large for",
    "request body too large for",
    "reduce the length of the messages",
    "reduce the length of the input",
    "reduce your prompt",
    "too many tokens: ",
    "too many input tokens",
    "maximum prompt length is",
    "maximum context length is",
    "model's maximum context l",
    "context length exceeded",
    "context window exceeded",
    "context overflow",
    "token limit exceeded",
    "exceeded model token limit",
    "exceeds token limit",
    "input tokens exceeded",
    "range of input length should be",
    "input is too large to process",
];

/// What a message can be about, and how it says that there is too much of it. Both together mean a prompt that is too long.
const MEASURED: [&str; 20] = [
    "context length",
    "context limit",
    "context size",
    "context window",
    "max_model_len",
    "model length",
    "n_ctx",
    "input length",
    "prompt length",
    "input token",
    "prompt token",
    "tokens in the prompt",
    "`inputs`",
    "the input (",
    "prompt exceeds",
    "prompt contains",
    "prompt has",
    "maximum number of tokens allowed",
    "total tokens limit",
    "request payload size",
];
const TOO_MUCH: [&str; 13] = [
    "exceed",
    "too long",
    "too large",
    "too big",
    "longer than",
    "larger than",
    "greater than",
    "more than",
    "overflow",
    ">= n_ctx",
    "must be <=",
    "must have less than",
    "only supports up to",
];

/// Words of a limit over time, which a pause lifts, and of the limit of an answer, which is the request's mistake.
const OTHER_LIMITS: [&str; 5] = ["please wait", "rate limit", "quota", "per day", "output token limit"];

/// Recognises a prompt that is too long by the sentences of real servers, in lower case.
fn is_too_long(message: &str) -> bool {
    if is_text_of_input_too_long(message) {
        return true;
    }
    let is_stated = contains_any(message, &TOO_LONG);
    let measured = contains_any(message, &MEASURED) && contains_any(message, &TOO_MUCH);
    let is_other = contains_any(message, &OTHER_LIMITS) && !contains_any(message, &["request too large for"]);
    (is_stated || measured) && !is_other
}

/// Recognises OpenAI's limit of a single text. The same sentence about a name or a tool is a bad request.
fn is_text_of_input_too_long(message: &str) -> bool {
    let (field, rest) = message.strip_prefix("invalid '").and_then(|rest| rest.split_once('\'')).unwrap_or_default();
    let is_input =
        field == "input" || field.ends_with("content") || field.ends_with("text") || field.ends_with("output");
    is_input && rest.contains("string too long")
}

fn contains_any(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| text.contains(word))
}

const fn kind_of_status(status: Option<u16>) -> ModelErrorKind {
    match status {
        Some(429) => ModelErrorKind::RateLimited,
        Some(402) => ModelErrorKind::QuotaExhausted,
        Some(401 | 403) => ModelErrorKind::Auth,
        Some(404) => ModelErrorKind::NotFound,
        Some(408) => ModelErrorKind::Timeout,
        Some(413) => ModelErrorKind::ContextTooLong,
        Some(400..500) => ModelErrorKind::BadRequest,
        _ => ModelErrorKind::Server,
    }
}

#[cfg(test)]
mod tests;
