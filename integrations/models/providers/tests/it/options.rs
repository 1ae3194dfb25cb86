//! Options of models, as each provider gets them.

use std::sync::Arc;

use positronic_core::record::{ActionFormat, ModelRequest, Path, Transcript};
use positronic_providers::ModelOptions;
use serde_json::Value;

use crate::strings::providers;

fn wire(model: &str, options: &ModelOptions) -> Value {
    let request = ModelRequest {
        path: Path::parse("Chat/0").unwrap(),
        attempt: 0,
        system: "You help.".into(),
        context: [].into(),
        tools: Arc::default(),
        messages: Transcript::default(),
        settings: Arc::default(),
    };
    let variables = ["OPENAI", "ANTHROPIC", "GEMINI", "OPENROUTER"].map(|name| (format!("{name}_API_KEY"), "k"));
    let variables: Vec<_> = variables.iter().map(|(name, key)| (name.as_str(), *key)).collect();
    let model = providers(&variables).model_with(model, options).unwrap();
    assert_eq!(model.action_format(), ActionFormat::Plain);
    let mut body: Value = serde_json::from_str(&model.wire(&request)).unwrap();
    for known in [
        "model",
        "messages",
        "contents",
        "input",
        "stream",
        "stream_options",
        "system",
        "systemInstruction",
        "instructions",
    ] {
        body.as_object_mut().unwrap().remove(known);
    }
    body
}

#[test]
fn limit_and_effort_are_written_in_the_terms_of_each_provider() {
    let options =
        ModelOptions::builder().max_output_tokens(4000_u32).reasoning("low").action_format(ActionFormat::Plain);
    let options = options.build();
    let bodies: String = [
        "openai/gpt-5",
        "openai-responses/gpt-5",
        "ollama/qwen3:8b",
        "openrouter/openai/gpt-5",
        "anthropic/claude-haiku-5-5",
        "anthropic/claude-haiku-4-5",
        "gemini/gemini-3.8-flash",
        "gemini/gemini-2.5-flash",
    ]
    .map(|model| format!("{model} {}\n", wire(model, &options)))
    .concat();

    insta::assert_snapshot!(bodies, @r#"
    openai/gpt-5 {"max_completion_tokens":4000,"reasoning_effort":"low"}
    openai-responses/gpt-5 {"include":["reasoning.encrypted_content"],"max_output_tokens":4000,"reasoning":{"effort":"low"},"store":false}
    ollama/qwen3:8b {"max_tokens":4000,"reasoning_effort":"low"}
    openrouter/openai/gpt-5 {"max_completion_tokens":4000,"reasoning_effort":"low"}
    anthropic/claude-haiku-5-5 {"max_tokens":4000,"output_config":{"effort":"low"},"thinking":{"type":"adaptive"}}
    anthropic/claude-haiku-4-5 {"max_tokens":4000,"thinking":{"budget_tokens":2048,"type":"enabled"}}
    gemini/gemini-3.8-flash {"generationConfig":{"maxOutputTokens":4000,"thinkingConfig":{"thinkingLevel":"low"}}}
    gemini/gemini-2.5-flash {"generationConfig":{"maxOutputTokens":4000,"thinkingConfig":{"thinkingBudget":1024}}}
    "#);
}

#[test]
fn effort_that_a_model_does_not_have_is_refused() {
    let refused = |model: &str, options: &ModelOptions| {
        let variables = [("ANTHROPIC_API_KEY", "k"), ("GEMINI_API_KEY", "k")];
        providers(&variables).model_with(model, options).unwrap_err().to_string()
    };
    let much = ModelOptions::builder().reasoning("much").build();
    for model in ["anthropic/claude-haiku-4-5", "gemini/gemini-2.5-pro"] {
        assert_eq!(
            refused(model, &much),
            format!(
                "cannot use the model `{model}`: unknown reasoning effort `much`; use one of none, minimal, low, medium, high, \
                 xhigh, max"
            )
        );
    }
    let tight = ModelOptions::builder().reasoning("low").max_output_tokens(1000_u32).build();
    assert_eq!(
        refused("anthropic/claude-haiku-4-5", &tight),
        "cannot use the model `anthropic/claude-haiku-4-5`: its thinking needs at least 1368 output tokens; raise the maximum, \
         or use the reasoning effort none"
    );
}

#[test]
fn secrets_are_values_of_secret_headers_and_the_password_of_the_proxy() {
    let headers = [("X-Title", "Help Desk"), ("Authorization", "Bearer tok2"), ("x-api-key", "key3")];
    let headers: Vec<_> = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let options = ModelOptions::builder().headers(headers).proxy("http://bob:pass4@proxy:8080").build();

    assert_eq!(options.secrets(), ["tok2", "key3", "pass4"]);
    assert!(!format!("{options:?}").contains("tok2"));
}
