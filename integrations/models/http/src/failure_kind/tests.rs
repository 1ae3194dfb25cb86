//! What servers say, word for word, and the kind that it is.

use serde_json::json;

use super::super::fault::http_error;
use super::*;

fn kind_of(status: u16, body: &str) -> ModelErrorKind {
    http_error(status, body, None, None).kind
}

fn said(status: u16, message: &str) -> ModelErrorKind {
    kind_of(status, &json!({"error": {"message": message, "type": "invalid_request_error", "code": null}}).to_string())
}

/// Messages about a prompt that is too long, with their statuses.
const TOO_LONG_OF_SERVERS: [(&str, u16, &str); 51] = [
    (
        "OpenAI, chat",
        400,
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 130012 tokens. Please reduce the length of the messages.",
    ),
    (
        "OpenAI, completions",
        400,
        "This model's maximum context length is 8191 tokens, however you requested 10346 tokens (10346 in your prompt; 5 for the completion). Please reduce your prompt; or completion length.",
    ),
    (
        "OpenAI, Responses",
        400,
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
    ),
    (
        "OpenAI, one text",
        400,
        "Invalid 'messages[1].content': string too long. Expected a string with maximum length 1048576, but got a string with length 2540002 instead.",
    ),
    (
        "OpenAI, one input",
        400,
        "Invalid 'input[2].content[0].text': string too long. Expected a string with maximum length 10485760, but got a string with length 12540002 instead.",
    ),
    (
        "OpenAI, more than a minute's tokens",
        429,
        "Request too large for gpt-4o in organization org-1 on tokens per min (TPM): Limit 30000, Requested 45210. The input or output tokens must be reduced in order to run successfully.",
    ),
    (
        "Azure",
        400,
        "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 509178 tokens. Please reduce the length of the messages.",
    ),
    ("GitHub Models", 413, "Request body too large for gpt-4o model. Max size: 8000 tokens."),
    ("GitHub Copilot", 400, "prompt token count of 131099 exceeds the limit of 128000"),
    ("Anthropic", 400, "prompt is too long: 213462 tokens > 200000 maximum"),
    (
        "Anthropic, with its answer",
        400,
        "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length or `max_tokens` and try again",
    ),
    ("Anthropic, bytes", 413, "Request exceeds the maximum size"),
    ("Gemini", 400, "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575)."),
    ("Gemini, before", 400, "The input token count exceeds the maximum number of tokens allowed 1048576."),
    ("Gemini, bytes", 400, "Request payload size exceeds the limit: 20971520 bytes."),
    (
        "Vertex",
        400,
        "Unable to submit request because the input token count is 40000 but model only supports up to 32768. Reduce the input token count and try again.",
    ),
    (
        "Mistral",
        400,
        "Prompt contains 40120 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
    ),
    ("Groq", 400, "Please reduce the length of the messages or completion."),
    (
        "Groq, more than a minute's tokens",
        413,
        "Request too large for model `llama-3.1-8b-instant` in organization `org_1` service tier `on_demand` on tokens per minute (TPM): Limit 6000, Requested 7211, please reduce your message size and try again.",
    ),
    (
        "Together",
        422,
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000 `inputs` tokens and 512 `max_new_tokens`",
    ),
    ("Text Generation Inference", 422, "Input validation error: `inputs` must have less than 4096 tokens. Given: 5012"),
    (
        "DeepSeek",
        400,
        "This model's maximum context length is 65536 tokens. However, you requested 70120 tokens (66024 in the messages, 4096 in the completion). Please reduce the length of the messages or completion.",
    ),
    ("Fireworks", 400, "The prompt is too long: 140012, model maximum context length: 131071"),
    (
        "Cerebras",
        400,
        "Please reduce the length of the messages or completion. Current length is 8601 while limit is 8192",
    ),
    (
        "vLLM",
        400,
        "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens in the messages, Please reduce the length of the messages.",
    ),
    (
        "vLLM, answer",
        400,
        "'max_tokens' or 'max_completion_tokens' is too large: 5000. This model's maximum context length is 4096 tokens and your request has 100 input tokens (5000 > 4096 - 100).",
    ),
    (
        "vLLM, both",
        400,
        "This model's maximum context length is 40960 tokens. However, you requested 8192 output tokens and your prompt contains at least 32769 input tokens, for a total of at least 40961 tokens. Please reduce the length of the input prompt or the number of requested output tokens.",
    ),
    (
        "vLLM, decoder",
        400,
        "The decoder prompt (length 5012) is longer than the maximum model length of 4096. Make sure that `max_model_len` is no smaller than the number of text tokens.",
    ),
    (
        "vLLM, pictures",
        400,
        "The prompt (total length 5012) is too long to fit into the model (context length 4096). Make sure that `max_model_len` is no smaller than the number of text tokens plus multimodal tokens.",
    ),
    ("SGLang", 400, "The input (5012 tokens) is longer than the model's context length (4096 tokens)."),
    (
        "SGLang, with its answer",
        400,
        "Requested token count exceeds the model's maximum context length of 4096 tokens. You requested a total of 5000 tokens: 4000 tokens from the input messages and 1000 tokens for the completion.",
    ),
    (
        "TensorRT-LLM",
        400,
        "Prompt length (5012) exceeds maximum input length (4096). Set log level to info and check TRTGptModel logs for how maximum input length is set",
    ),
    ("llama.cpp", 400, "the request exceeds the available context size, try increasing it"),
    (
        "llama.cpp, with numbers",
        400,
        "request (8213 tokens) exceeds the available context size (8192 tokens), try increasing it",
    ),
    ("llama.cpp, batch", 500, "input is too large to process. increase the physical batch size"),
    ("Ollama", 400, "the input length exceeds the context length"),
    ("Ollama, cloud", 400, "prompt too long; exceeded max context length by 4921 tokens"),
    (
        "LM Studio",
        400,
        "Trying to keep the first 15857 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough. Try to load the model with a larger context length, or provide a shorter input",
    ),
    (
        "LM Studio, tokens to keep",
        400,
        "The number of tokens to keep from the initial prompt is greater than the context length. Try to load the model with a larger context length, or provide a shorter input",
    ),
    ("LM Studio, MLX", 400, "Cannot truncate prompt with n_keep (15028) >= n_ctx (7424)"),
    (
        "OpenRouter",
        400,
        "This endpoint's maximum context length is 32768 tokens. However, you requested about 40112 tokens (38112 of text input, 2000 in the output). Please reduce the length of either one, or use the \"middle-out\" transform to compress your prompt automatically.",
    ),
    (
        "Cohere",
        400,
        "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 4292. Try using a shorter prompt, or enabling prompt truncating.",
    ),
    (
        "Cohere, size",
        400,
        "too many tokens: size limit exceeded by 11326 tokens. Try using shorter or fewer inputs, or setting prompt_truncation='AUTO'.",
    ),
    ("xAI", 400, "This model's maximum prompt length is 131072 but the request contains 537812 tokens."),
    ("Bedrock", 400, "Input is too long for requested model."),
    (
        "Bedrock, Titan",
        400,
        "400 Bad Request: Too many input tokens. Max input tokens: 8192, request input token count: 9012",
    ),
    (
        "Bedrock, Nova",
        400,
        "Input Tokens Exceeded: Number of input tokens exceeds maximum length. Please update the input to try again.",
    ),
    ("MiniMax", 400, "invalid params, context window exceeds limit (2013)"),
    ("Moonshot", 400, "Invalid request: Your request exceeded model token limit: 262144 (requested: 291351)"),
    ("DashScope", 400, "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 98304]"),
    ("watsonx", 400, "the number of input tokens 9012 cannot exceed the total tokens limit 8192 for this model"),
];

#[test]
fn prompt_that_is_too_long_is_recognised_in_the_words_of_every_server() {
    let missed: Vec<_> = TOO_LONG_OF_SERVERS
        .iter()
        .filter(|(_, status, message)| said(*status, message) != ModelErrorKind::ContextTooLong)
        .collect();

    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn prompt_that_is_too_long_is_recognised_in_every_shape_of_a_body() {
    for (status, body) in [
        (400, r#"{"error":{"message":"too long","type":"invalid_request_error","code":"context_length_exceeded"}}"#),
        (400, r#"{"error":{"code":400,"message":"too much","type":"exceed_context_size_error","n_ctx":8192}}"#),
        (
            400,
            r#"{"object":"error","message":"This model's maximum context length is 4096 tokens.","type":"BadRequestError","code":400}"#,
        ),
        (
            400,
            r#"[{"error":{"code":400,"message":"The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).","status":"INVALID_ARGUMENT"}}]"#,
        ),
        (
            400,
            r#"{"object":"error","message":"Prompt contains 40120 tokens, too large for model with 32768 maximum context length","type":"invalid_request_error","code":"3051"}"#,
        ),
        (
            400,
            r#"{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is 131072 but the request contains 537812 tokens."}"#,
        ),
        (400, r#"{"error":{"code":"1261","message":"Prompt exceeds max length"}}"#),
        (400, r#"{"message":"Input is too long for requested model."}"#),
        (
            413,
            r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum allowed number of bytes."}}"#,
        ),
        (
            413,
            r#"{"error":{"message":"Request too large for model `a` on tokens per minute (TPM): Limit 6000, Requested 7211","type":"tokens","code":"rate_limit_exceeded"}}"#,
        ),
        (
            429,
            r#"{"error":{"message":"Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 45210.","type":"tokens","code":"rate_limit_exceeded"}}"#,
        ),
        (413, ""),
        (413, "<html><title>413 Request Entity Too Large</title></html>"),
    ] {
        assert_eq!(kind_of(status, body), ModelErrorKind::ContextTooLong, "{status} {body}");
    }
}

#[test]
fn other_limits_and_mistakes_are_not_a_prompt_that_is_too_long() {
    for (status, message, kind) in [
        (
            400,
            "max_tokens: 100000 > 8192, which is the maximum allowed number of output tokens for claude-3-5-sonnet",
            ModelErrorKind::BadRequest,
        ),
        (
            400,
            "max_tokens is too large: 100000. This model supports at most 16384 completion tokens, whereas you provided 100000.",
            ModelErrorKind::BadRequest,
        ),
        (
            400,
            "The maximum tokens you requested exceeds the model limit of 2048. Try again with a maximum tokens value that is lower than 2048.",
            ModelErrorKind::BadRequest,
        ),
        (
            400,
            "Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 64, but got a string with length 70 instead.",
            ModelErrorKind::BadRequest,
        ),
        (
            400,
            "Invalid 'user': string too long. Expected a string with maximum length 64, but got a string with length 70 instead.",
            ModelErrorKind::BadRequest,
        ),
        (
            400,
            "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 200 instead.",
            ModelErrorKind::BadRequest,
        ),
        (400, "messages.1.content.0.tool_use.id: String should have at most 40 characters", ModelErrorKind::BadRequest),
        (
            400,
            "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6039728 bytes > 5242880 bytes",
            ModelErrorKind::BadRequest,
        ),
        (400, "Unsupported parameter: 'context_window' is not supported with this model.", ModelErrorKind::BadRequest),
        (400, "Invalid value for 'num_ctx': the context size must be positive", ModelErrorKind::BadRequest),
        (400, "The schema exceeds the maximum nesting depth of 5", ModelErrorKind::BadRequest),
        (
            429,
            "This request would exceed your organization's rate limit of 40,000 input tokens per minute.",
            ModelErrorKind::RateLimited,
        ),
        (429, "Too many tokens, please wait before trying again.", ModelErrorKind::RateLimited),
        (429, "Too many tokens per day, please wait before trying again.", ModelErrorKind::RateLimited),
        (
            429,
            "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000. Please try again in 2s.",
            ModelErrorKind::RateLimited,
        ),
        (
            429,
            "You exceeded your current quota. * Quota exceeded for metric: generate_content_free_tier_input_token_count, limit: 250000",
            ModelErrorKind::RateLimited,
        ),
        (429, "Rate limit of input tokens exceeded", ModelErrorKind::RateLimited),
        (401, "Incorrect API key provided: the prompt is too long", ModelErrorKind::Auth),
        (404, "The model `prompt-too-long` does not exist", ModelErrorKind::NotFound),
        (503, "the context window service is overloaded", ModelErrorKind::Server),
    ] {
        assert_eq!(said(status, message), kind, "{status} {message}");
    }
}

#[test]
fn status_of_a_callers_mistake_overrules_a_code_that_means_a_failure_of_the_server() {
    for code in ["server_error", "internal_error", "internal_server_error", "service_unavailable"] {
        for (status, kind) in [
            (400, ModelErrorKind::BadRequest),
            (401, ModelErrorKind::Auth),
            (402, ModelErrorKind::QuotaExhausted),
            (403, ModelErrorKind::Auth),
            (404, ModelErrorKind::NotFound),
            (413, ModelErrorKind::ContextTooLong),
            (422, ModelErrorKind::BadRequest),
            (429, ModelErrorKind::Server),
            (500, ModelErrorKind::Server),
            (503, ModelErrorKind::Server),
        ] {
            for field in ["type", "code"] {
                let body = json!({"error": {"message": "no", field: code}}).to_string();
                let error = http_error(status, &body, None, None);

                assert_eq!(error.kind, kind, "{status} {field} {code}");
                assert_eq!(error.is_retryable(), status == 429 || status >= 500, "{status} {code}");
            }
        }
    }
}

#[test]
fn used_up_quota_differs_from_rate_limit() {
    let quota = r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}"#;
    let rate = r#"{"error":{"message":"Rate limit reached","type":"requests","code":"rate_limit_exceeded"}}"#;

    assert_eq!(kind_of(429, quota), ModelErrorKind::QuotaExhausted);
    assert_eq!(kind_of(429, rate), ModelErrorKind::RateLimited);
    assert_eq!(kind_of(429, ""), ModelErrorKind::RateLimited);
    assert_eq!(kind_of(402, r#"{"error":{"message":"Insufficient Balance"}}"#), ModelErrorKind::QuotaExhausted);
    for sentence in
        ["You have reached your specified API usage limits.", "Your credit balance is too low to access the API."]
    {
        assert_eq!(said(400, sentence), ModelErrorKind::QuotaExhausted, "{sentence}");
    }
}

#[test]
fn answer_that_the_server_cannot_parse_is_malformed() {
    let failed = r#"{"error":{"message":"Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.","type":"invalid_request_error","code":"tool_use_failed","failed_generation":"<function=look>"}}"#;

    assert_eq!(kind_of(400, failed), ModelErrorKind::Malformed);
    assert_eq!(said(400, "no"), ModelErrorKind::BadRequest);
}

#[test]
fn refused_content_differs_from_forbidden_key() {
    let flagged = r#"{"error":{"code":403,"message":"The model requires moderation and your input was flagged","metadata":{"reasons":["violence"]}}}"#;

    assert_eq!(kind_of(403, flagged), ModelErrorKind::Filtered);
    assert_eq!(kind_of(403, r#"{"error":{"message":"no access to this model"}}"#), ModelErrorKind::Auth);
}

#[test]
fn status_decides_without_a_known_code() {
    for (status, kind) in [
        (400, ModelErrorKind::BadRequest),
        (401, ModelErrorKind::Auth),
        (403, ModelErrorKind::Auth),
        (404, ModelErrorKind::NotFound),
        (422, ModelErrorKind::BadRequest),
        (500, ModelErrorKind::Server),
        (529, ModelErrorKind::Server),
    ] {
        assert_eq!(kind_of(status, r#"{"error":{"message":"no"}}"#), kind, "{status}");
    }
}
