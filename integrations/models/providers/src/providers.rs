//! The providers that variables configure, and their models.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use positronic_async_openai::Token;
use positronic_core::model::Model;
use positronic_core::record::ModelError;

use crate::error::ProviderError;
use crate::model_name::ModelName;
use crate::options::ModelOptions;
use crate::provider::{AZURE_VERSIONS, Provider};
use crate::provider_variables::{ProviderVariables, harmless};
use crate::{adapter, failure_advice};

/// The prefix of models of the Responses API.
const RESPONSES: &str = "openai-responses/";

/// The providers with their keys and base URLs.
///
/// A model's string is `PROVIDER/NAME`. A known prefix always selects its provider, and the rest is the model's name:
///
/// | prefix | API | key | base URL |
/// |---|---|---|---|
/// | `anthropic/` | Messages | `ANTHROPIC_API_KEY` | `ANTHROPIC_BASE_URL` |
/// | `gemini/` | `generateContent` | `GEMINI_API_KEY`, else `GOOGLE_API_KEY` | `GEMINI_BASE_URL`, else `GOOGLE_GEMINI_BASE_URL` |
/// | `openai/` | chat completions | `OPENAI_API_KEY` | `OPENAI_BASE_URL` |
/// | `openai-responses/` | Responses | `OPENAI_API_KEY` | `OPENAI_BASE_URL` |
/// | `ollama/` | chat completions | none | `OLLAMA_HOST`: `host`, `host:port` or a URL, as Ollama reads it |
/// | `openrouter/` | chat completions | `OPENROUTER_API_KEY` | `OPENROUTER_BASE_URL` |
/// | `azure/` | chat completions of a deployment | `AZURE_OPENAI_API_KEY`, else the token `AZURE_OPENAI_AD_TOKEN`, else the command `AZURE_OPENAI_TOKEN_COMMAND` | `AZURE_OPENAI_ENDPOINT`, required |
/// | `azure-responses/` | Responses of a deployment | as `azure/` | as `azure/` |
///
/// A string without a known prefix is a model of the OpenAI-compatible endpoint at `OPENAI_BASE_URL`, or of OpenAI. If that
/// endpoint has a model whose name begins with a known prefix, such as Groq's `openai/gpt-oss-120b`, its string is
/// `openai/openai/gpt-oss-120b`.
///
/// A base URL of Anthropic or Gemini may lack the API's version, as in the variables of their own libraries. With a base URL, the
/// key is optional. In events, the provider is the prefix without `-responses`.
///
/// `AZURE_OPENAI_API_VERSION`, else `OPENAI_API_VERSION`, is Azure's API version. Without one, requests go to `/openai/v1`; see
/// [`Azure`](positronic_async_openai::Azure).
#[derive(Clone, Default)]
pub struct Providers {
    access: BTreeMap<Provider, ProviderVariables>,
    openai_model: Option<String>,
}

/// A configured provider.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Configured {
    /// The provider.
    pub provider: Provider,
    /// The variable of its key, if one is set.
    pub key_variable: Option<&'static str>,
    /// The base URL, without credentials and query.
    pub base_url: String,
    /// The variable of the base URL, if one is set.
    pub url_variable: Option<&'static str>,
    /// The string of the model that is used if only this provider is configured.
    pub default_model: Option<String>,
}

impl Providers {
    /// Reads the variables of the providers, each through a closure of the caller; an empty one counts as unset.
    #[must_use]
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
        let access = |provider| (provider, ProviderVariables::from_variables(provider, &variable));
        let openai_model = variable("OPENAI_MODEL").filter(|model| !model.trim().is_empty());
        Self { access: Provider::ALL.into_iter().map(access).collect(), openai_model }
    }

    /// Lists the variables that [`Providers::from_variables`] reads.
    pub fn variables() -> impl Iterator<Item = &'static str> {
        let of_provider = |provider: Provider| provider.key_variables().iter().chain(provider.url_variables()).copied();
        Provider::ALL.into_iter().flat_map(of_provider).chain(AZURE_VERSIONS).chain(["OPENAI_MODEL"])
    }

    /// Sets what renews the token of Entra ID for Azure. It takes precedence over the variables.
    #[must_use]
    pub fn azure_token(mut self, token: Token) -> Self {
        self.access.entry(Provider::Azure).or_default().token = Some(token);
        self
    }

    /// Creates the model of a string.
    ///
    /// # Errors
    ///
    /// [`ProviderError`] for an unknown provider, a missing name or key, and an invalid variable.
    pub fn model(&self, name: &str) -> Result<Arc<dyn Model>, ProviderError> {
        self.model_with(name, &ModelOptions::default())
    }

    /// Creates the model of a string, with options.
    ///
    /// # Errors
    ///
    /// [`ProviderError`] as from [`Providers::model`], and for invalid options.
    pub fn model_with(&self, name: &str, options: &ModelOptions) -> Result<Arc<dyn Model>, ProviderError> {
        let parsed = self.parse(name)?;
        let access = self.access(parsed.provider);
        if access.variable().is_none() && access.token.is_none() && !parsed.provider.key_variables().is_empty() {
            let (provider, model) = (parsed.provider, parsed.written.to_owned());
            return Err(ProviderError::NoKey { provider, model, instead: self.instead(parsed) });
        }
        if access.url.is_none() && parsed.provider == Provider::Azure {
            let (provider, model) = (parsed.provider, parsed.written.to_owned());
            return Err(ProviderError::NoAddress { provider, model });
        }
        adapter::create(parsed, &access, options)
    }

    /// Returns the provider of a model's string.
    ///
    /// # Errors
    ///
    /// [`ProviderError::UnknownProvider`] and [`ProviderError::NoName`].
    pub fn provider(&self, name: &str) -> Result<Provider, ProviderError> {
        self.parse(name).map(|parsed| parsed.provider)
    }

    /// Returns the string of the model that is used if none is named; `None` if no provider is configured. It is
    /// `OPENAI_MODEL`, a model of the OpenAI-compatible endpoint, or the default model of the only configured provider. Ollama
    /// does not count, since it needs no key.
    ///
    /// # Errors
    ///
    /// [`ProviderError::NoDefaultModel`] and [`ProviderError::SeveralProviders`].
    pub fn default_model(&self) -> Result<Option<String>, ProviderError> {
        let counts = |provider: &Provider| *provider != Provider::Ollama;
        let variable = |provider: Provider| Some((provider, self.access(provider).variable()?));
        let configured: Vec<_> = Provider::ALL.into_iter().filter(counts).filter_map(variable).collect();
        let has_openai = configured.iter().any(|(provider, _)| *provider == Provider::OpenAi);
        match configured.as_slice() {
            _ if has_openai && self.openai_model.is_some() => Ok(self.default_of(Provider::OpenAi)),
            [] => Ok(None),
            [(provider, variable)] => match self.default_of(*provider) {
                None => Err(ProviderError::NoDefaultModel { provider: *provider, variable }),
                model => Ok(model),
            },
            several => Err(ProviderError::SeveralProviders {
                variables: several.iter().map(|(_, variable)| *variable).collect(),
            }),
        }
    }

    /// Returns whether a provider other than Ollama is configured.
    #[must_use]
    pub fn is_configured(&self) -> bool {
        !matches!(self.default_model(), Ok(None))
    }

    /// Lists the providers of which a variable is set.
    #[must_use]
    pub fn list(&self) -> Vec<Configured> {
        Provider::ALL
            .into_iter()
            .filter(|provider| self.access(*provider).variable().is_some())
            .map(|it| self.row(it))
            .collect()
    }

    /// Describes a provider, configured or not.
    #[must_use]
    pub fn row(&self, provider: Provider) -> Configured {
        let access = self.access(provider);
        Configured {
            provider,
            key_variable: access.key.as_ref().map(|(name, _)| *name),
            base_url: harmless(&access.base_url(provider)),
            url_variable: access.url.as_ref().map(|(name, _)| *name),
            default_model: self.default_of(provider),
        }
    }

    /// Returns what to do after a failure of a model: the variable to check, or how to write its name.
    #[must_use]
    pub fn advice(&self, name: &str, error: &ModelError) -> Option<String> {
        let parsed = self.parse(name).ok()?;
        failure_advice::advice(parsed, &self.access(parsed.provider), self.endpoint_variable(), error)
    }

    /// Returns the secrets of all providers: their keys, and the passwords in their base URLs.
    #[must_use]
    pub fn secrets(&self) -> Vec<String> {
        self.access.values().flat_map(ProviderVariables::secrets).filter(|secret| !secret.is_empty()).collect()
    }

    fn parse<'a>(&self, name: &'a str) -> Result<ModelName<'a>, ProviderError> {
        ModelName::parse(name, self.endpoint_variable().is_some())
    }

    fn access(&self, provider: Provider) -> ProviderVariables {
        self.access.get(&provider).cloned().unwrap_or_default()
    }

    /// Returns the variable of the OpenAI-compatible endpoint, if it is set.
    fn endpoint_variable(&self) -> Option<&'static str> {
        self.access(Provider::OpenAi).url.map(|(name, _)| name)
    }

    fn default_of(&self, provider: Provider) -> Option<String> {
        let has_url = self.access(provider).url.is_some();
        match (provider, &self.openai_model) {
            // It is a name of the endpoint, whatever its prefix, except for the one that selects the API.
            (Provider::OpenAi, Some(model)) if model.starts_with(RESPONSES) => Some(model.clone()),
            (Provider::OpenAi, Some(model)) if !has_url && model.starts_with("openai/") => Some(model.clone()),
            (Provider::OpenAi, Some(model)) => Some(format!("openai/{model}")),
            (Provider::OpenAi, None) if has_url => None,
            _ => provider.default_model().map(str::to_owned),
        }
    }

    /// Returns what a string without a key perhaps means: a model of `OPENAI_BASE_URL`, or of the provider whose name it has.
    fn instead(&self, name: ModelName<'_>) -> Option<String> {
        let written = name.written;
        if let Some(variable) = self.endpoint_variable().filter(|_| name.has_prefix) {
            return Some(format!("for the model `{written}` of {variable} write `openai/{written}`"));
        }
        let families = [("claude", Provider::Anthropic), ("gemini", Provider::Gemini)];
        let (_, provider) = families.into_iter().find(|(family, _)| !name.has_prefix && written.starts_with(family))?;
        Some(format!("for the model of {provider} write `{provider}/{written}`"))
    }
}

/// Shows no credentials.
impl fmt::Debug for Providers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.list()).finish()
    }
}
