//! The key and the base URL of a provider, as variables set them.

use positronic_async_openai::Token;
use positronic_model_http::Endpoint;

use crate::error::{ProviderError, Setting};
use crate::ollama;
use crate::options::password;
use crate::provider::{AZURE_VERSIONS, Provider};

/// Paths that each request appends to a base URL.
const REQUEST_PATHS: [&str; 3] = ["/chat/completions", "/responses", "/messages"];

/// The variables of a provider that are set, with their names.
#[derive(Clone, Default)]
pub(crate) struct ProviderVariables {
    pub(crate) key: Option<(&'static str, String)>,
    /// The base URL as it is written.
    pub(crate) url: Option<(&'static str, String)>,
    /// The API version of Azure.
    pub(crate) version: Option<(&'static str, String)>,
    /// What renews the token of Azure, if code sets it.
    pub(crate) token: Option<Token>,
}

impl ProviderVariables {
    pub(crate) fn from_variables(provider: Provider, variable: impl Fn(&str) -> Option<String>) -> Self {
        const NONE: &[&str] = &[];
        let versions = if provider == Provider::Azure { &AZURE_VERSIONS } else { NONE };
        let first = |names: &'static [&'static str]| {
            names.iter().find_map(|name| Some((*name, variable(name).filter(|value| !value.trim().is_empty())?)))
        };
        let (key, url) = (first(provider.key_variables()), first(provider.url_variables()));
        Self { key, url, version: first(versions), token: None }
    }

    /// Returns the variable that configures the provider: of its key, or of its base URL.
    pub(crate) fn variable(&self) -> Option<&'static str> {
        self.key.as_ref().or(self.url.as_ref()).map(|(name, _)| *name)
    }

    /// Returns the base URL of requests, with the API's version.
    pub(crate) fn base_url(&self, provider: Provider) -> String {
        match (&self.url, provider) {
            (None, _) => provider.default_url().to_owned(),
            (Some((_, host)), Provider::Ollama) => ollama::base_url(host),
            (Some((_, url)), Provider::Anthropic) => with_version(url, "v1"),
            (Some((_, url)), Provider::Gemini) => with_version(url, "v1beta"),
            (Some((_, url)), Provider::OpenAi | Provider::OpenRouter | Provider::Azure) => url.trim().to_owned(),
        }
    }

    /// Refuses a base URL that already ends with the path of a request.
    pub(crate) fn check(&self, provider: Provider) -> Result<(), ProviderError> {
        let Some((variable, url)) = &self.url else { return Ok(()) };
        if provider == Provider::Azure
            && let Some((resource, _)) =
                url.split_once("/openai/").filter(|(_, rest)| !matches!(*rest, "v1" | "v1/" | ""))
        {
            return Err(ProviderError::Unusable {
                setting: Setting::Variable(variable),
                problem: "it contains the path of an API".to_owned(),
                remedy: format!("set it to the address of the resource: {}", harmless(resource).trim_end_matches('/')),
            });
        }
        let bare = url.trim().trim_end_matches('/');
        let end = REQUEST_PATHS.into_iter().find_map(|end| Some((bare.strip_suffix(end)?, end)));
        end.map_or(Ok(()), |(base, end)| {
            Err(ProviderError::Unusable {
                setting: Setting::Variable(variable),
                problem: format!("it ends with {end}, which each request appends"),
                remedy: format!("set it to the URL up to and including the version: {base}"),
            })
        })
    }

    pub(crate) fn secrets(&self) -> impl Iterator<Item = String> {
        let key = self.key.as_ref().map(|(_, key)| key.clone());
        key.into_iter().chain(self.url.as_ref().and_then(|(_, url)| password(url)))
    }
}

/// Returns a URL without user, password and query.
pub(crate) fn harmless(url: &str) -> String {
    Endpoint::new(url, &[]).map_or_else(|_| "an invalid URL".to_owned(), |endpoint| endpoint.to_string())
}

/// Appends the API's version to a URL that does not end with one: the variables of the providers' own libraries have none.
fn with_version(url: &str, version: &str) -> String {
    let (path, query) = url.trim().split_once('?').map_or((url.trim(), None), |(path, query)| (path, Some(query)));
    let path = path.trim_end_matches('/');
    let last = path.rsplit('/').next().unwrap_or_default();
    let digits = last.strip_prefix('v').map(|rest| rest.trim_start_matches(|letter: char| letter.is_ascii_digit()));
    let has_version = last.len() > 1 && digits.is_some_and(|rest| ["", "alpha", "beta"].contains(&rest));
    let path = if has_version { path.to_owned() } else { format!("{path}/{version}") };
    match query {
        Some(query) => format!("{path}?{query}"),
        None => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_appended_to_a_url_without_one() {
        for (url, with) in [
            ("https://api.anthropic.com", "https://api.anthropic.com/v1"),
            ("https://h/anthropic/", "https://h/anthropic/v1"),
            (" https://h/v1/ ", "https://h/v1"),
            ("https://h/v1beta", "https://h/v1beta"),
            ("https://h/vault", "https://h/vault/v1"),
            ("https://h?key=1", "https://h/v1?key=1"),
        ] {
            assert_eq!(with_version(url, "v1"), with, "{url}");
        }
    }
}
