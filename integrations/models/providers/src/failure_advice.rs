//! What to do after a failure of a model.

use positronic_core::record::{ModelError, ModelErrorKind};

use crate::model_name::ModelName;
use crate::provider::{AZURE_TOKEN, AZURE_TOKEN_COMMAND, Provider};
use crate::provider_variables::ProviderVariables;

/// Returns what to check after a failure: the variable of the key or of the base URL, or the model's name.
pub(crate) fn advice(
    name: ModelName<'_>,
    access: &ProviderVariables,
    openai_url: Option<&str>,
    error: &ModelError,
) -> Option<String> {
    let provider = name.provider;
    Some(match (error.kind, error.status) {
        (ModelErrorKind::Auth, _) => match (&access.key, provider.key_variables()) {
            (Some((variable @ (AZURE_TOKEN | AZURE_TOKEN_COMMAND), _)), _) => azure_token_advice(variable),
            (None, _) if access.token.is_some() => azure_token_advice("the callback of the token"),
            (Some((variable, _)), _) => {
                format!("check {variable}: it must be a key of this endpoint with access to the model")
            }
            (None, [variable, ..]) => format!("set {variable} to a key of this endpoint"),
            (None, []) => url_advice(provider, access),
        },
        (ModelErrorKind::NotFound, Some(_)) if error.message.to_ascii_lowercase().contains("model") => {
            let other = openai_url.filter(|_| name.has_prefix).map(|variable| {
                let written = name.written;
                format!("; the model `{written}` of {variable} is `openai/{written}`")
            });
            format!("use the name of one of its models{}", other.unwrap_or_default())
        }
        (ModelErrorKind::NotFound, _) | (ModelErrorKind::Connection, None) => url_advice(provider, access),
        _ => return None,
    })
}

fn azure_token_advice(source: &str) -> String {
    format!(
        "check {source}: the token must be for https://cognitiveservices.azure.com, of an identity that has the role Cognitive \
         Services OpenAI User"
    )
}

fn url_advice(provider: Provider, access: &ProviderVariables) -> String {
    match (&access.url, provider) {
        (Some((variable, _)), _) => format!("check {variable}"),
        (None, Provider::Ollama) => "start Ollama, or set OLLAMA_HOST to the address of its server".to_owned(),
        (None, provider) => {
            let variable = provider.url_variables().first().copied().unwrap_or_default();
            format!("set {variable} to use another endpoint than {}", provider.default_url())
        }
    }
}
