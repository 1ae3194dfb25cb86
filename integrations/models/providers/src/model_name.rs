//! Parsing of a model's string.

use crate::error::ProviderError;
use crate::provider::Provider;

/// The API through which a model is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    ChatCompletions,
    Responses,
    Messages,
    GenerateContent,
}

/// The prefixes of strings.
pub(crate) const PREFIXES: [(&str, Provider, Api); 8] = [
    ("anthropic", Provider::Anthropic, Api::Messages),
    ("azure", Provider::Azure, Api::ChatCompletions),
    ("azure-responses", Provider::Azure, Api::Responses),
    ("gemini", Provider::Gemini, Api::GenerateContent),
    ("openai", Provider::OpenAi, Api::ChatCompletions),
    ("openai-responses", Provider::OpenAi, Api::Responses),
    ("ollama", Provider::Ollama, Api::ChatCompletions),
    ("openrouter", Provider::OpenRouter, Api::ChatCompletions),
];

/// A model's string in its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ModelName<'a> {
    /// The whole string.
    pub(crate) written: &'a str,
    pub(crate) provider: Provider,
    pub(crate) api: Api,
    /// The name that the provider gets.
    pub(crate) name: &'a str,
    pub(crate) has_prefix: bool,
}

impl<'a> ModelName<'a> {
    /// Parses a string. `has_endpoint` says whether `OPENAI_BASE_URL` names an endpoint, whose models may have any name.
    pub(crate) fn parse(written: &'a str, has_endpoint: bool) -> Result<Self, ProviderError> {
        let written = written.trim();
        let (prefix, rest) = written.split_once('/').unwrap_or(("", written));
        let known = PREFIXES.into_iter().find(|(known, ..)| *known == prefix);
        let parsed = match known {
            Some((_, provider, api)) => Self { written, provider, api, name: rest.trim(), has_prefix: true },
            None if !prefix.is_empty() && !has_endpoint => {
                return Err(ProviderError::UnknownProvider { provider: prefix.to_owned(), model: written.to_owned() });
            }
            None => {
                let (provider, api) = (Provider::OpenAi, Api::ChatCompletions);
                Self { written, provider, api, name: written, has_prefix: false }
            }
        };
        if parsed.name.is_empty() {
            return Err(ProviderError::NoName { model: written.to_owned(), provider: parsed.provider });
        }
        Ok(parsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_selects_the_provider_and_the_rest_is_the_name() {
        for (written, provider, api, name) in [
            ("anthropic/claude-haiku-5-5", Provider::Anthropic, Api::Messages, "claude-haiku-5-5"),
            ("gemini/tunedModels/cook-1", Provider::Gemini, Api::GenerateContent, "tunedModels/cook-1"),
            ("openai/gpt-5", Provider::OpenAi, Api::ChatCompletions, "gpt-5"),
            ("openai/openai/gpt-oss-120b", Provider::OpenAi, Api::ChatCompletions, "openai/gpt-oss-120b"),
            ("openai-responses/gpt-5", Provider::OpenAi, Api::Responses, "gpt-5"),
            ("ollama/qwen3:8b", Provider::Ollama, Api::ChatCompletions, "qwen3:8b"),
            ("azure/desk", Provider::Azure, Api::ChatCompletions, "desk"),
            ("azure-responses/desk", Provider::Azure, Api::Responses, "desk"),
            ("openrouter/anthropic/claude-x", Provider::OpenRouter, Api::ChatCompletions, "anthropic/claude-x"),
            (" gpt-5 ", Provider::OpenAi, Api::ChatCompletions, "gpt-5"),
        ] {
            let parsed = ModelName::parse(written, false).unwrap();
            assert_eq!((parsed.provider, parsed.api, parsed.name), (provider, api, name), "{written}");
            assert_eq!(ModelName::parse(written, true).unwrap().name, name, "the prefix counts with an endpoint, too");
        }
    }

    #[test]
    fn other_prefix_is_a_name_of_the_endpoint_or_an_error() {
        let name = ModelName::parse("Qwen/Qwen3-8B", true).unwrap();
        assert_eq!((name.provider, name.name), (Provider::OpenAi, "Qwen/Qwen3-8B"));

        let error = ModelName::parse("antropic/claude-x", false).unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown provider `antropic` in the model `antropic/claude-x`; did you mean `anthropic/claude-x`?; known \
             providers: anthropic, azure, azure-responses, gemini, openai, openai-responses, ollama, openrouter; set OPENAI_BASE_URL for a model of \
             another OpenAI-compatible endpoint"
        );
        for written in ["", " ", "openai-responses/", "anthropic/ "] {
            assert!(matches!(ModelName::parse(written, true), Err(ProviderError::NoName { .. })), "{written}");
        }
    }
}
