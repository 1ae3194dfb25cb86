//! Creation of the adapter that a model's string selects.

use std::sync::Arc;

use positronic_anthropic::{Anthropic, AnthropicConfig};
use positronic_async_openai::{Azure, Connection, Token};
use positronic_core::model::Model;
use positronic_core::record::ModelError;
use positronic_gemini::{Gemini, GeminiConfig};
use positronic_model_http::Endpoint;
use positronic_openai::{OpenAiChat, OpenAiConfig, OpenAiResponses};

use crate::error::{ProviderError, Setting};
use crate::model_name::{Api, ModelName};
use crate::options::ModelOptions;
use crate::provider::{AZURE_TOKEN, AZURE_TOKEN_COMMAND, Provider};
use crate::provider_variables::ProviderVariables;
use crate::reasoning::{self, EFFORTS, EffortError, LEAST_BUDGET};

/// What an adapter is made of.
#[derive(Clone)]
struct Parts<'a> {
    name: ModelName<'a>,
    access: &'a ProviderVariables,
    url: String,
    key: String,
    options: ModelOptions,
}

/// Creates the adapter of a model.
pub(crate) fn create(
    name: ModelName<'_>,
    access: &ProviderVariables,
    options: &ModelOptions,
) -> Result<Arc<dyn Model>, ProviderError> {
    access.check(name.provider)?;
    let key = access.key.as_ref().map(|(_, key)| key.clone()).unwrap_or_default();
    let parts = Parts { name, access, url: access.base_url(name.provider), key, options: options.clone() };
    parts.create()?.map_err(|error| parts.culprit(&error))
}

impl Parts<'_> {
    /// Creates the adapter. The outer error is one of the options.
    fn create(&self) -> Result<Result<Arc<dyn Model>, ModelError>, ProviderError> {
        let is_azure = self.name.provider == Provider::Azure;
        Ok(match self.name.api {
            Api::ChatCompletions if is_azure => self.azure().chat(self.openai()).map(erased),
            Api::Responses if is_azure => self.azure().responses(self.openai()).map(erased),
            Api::ChatCompletions => OpenAiChat::new(self.openai()).map(erased),
            Api::Responses => OpenAiResponses::new(self.openai()).map(erased),
            Api::Messages => Anthropic::new(self.anthropic()?).map(erased),
            Api::GenerateContent => Gemini::new(self.gemini()?).map(erased),
        })
    }

    fn openai(&self) -> OpenAiConfig {
        let options = &self.options;
        let mut config = OpenAiConfig::builder()
            .provider(self.name.provider.name())
            .base_url(&*self.url)
            .api_key(&*self.key)
            .model(self.name.name)
            .headers(options.headers.clone())
            .action_format(options.action_format)
            .capabilities(options.capabilities.clone())
            .text_marks(options.text_marks)
            // Ollama does not know the newer name of the limit.
            .max_tokens(self.name.provider == Provider::Ollama)
            .build();
        config.proxy.clone_from(&options.proxy);
        config.max_output_tokens = options.max_output_tokens;
        config.reasoning_effort.clone_from(&options.reasoning);
        config
    }

    fn azure(&self) -> Connection {
        let mut azure = Azure::new(&*self.url, self.name.name);
        if let Some((_, version)) = &self.access.version {
            azure = azure.with_api_version(version.trim());
        }
        let key = &*self.key;
        let token = match (&self.access.token, &self.access.key) {
            (Some(token), _) => token.clone(),
            (None, Some((AZURE_TOKEN_COMMAND, _))) => Token::command(key),
            (None, Some((AZURE_TOKEN, _))) => return Connection::new(azure.with_token(key)),
            (None, _) => return Connection::new(azure.with_api_key(key)),
        };
        Connection::with_tokens(token, move |token| azure.clone().with_token(token))
    }

    fn anthropic(&self) -> Result<AnthropicConfig, ProviderError> {
        let options = &self.options;
        let mut config = AnthropicConfig::builder()
            .provider(self.name.provider.name())
            .base_url(&*self.url)
            .api_key(&*self.key)
            .model(self.name.name)
            .headers(options.headers.clone())
            .action_format(options.action_format)
            .capabilities(options.capabilities.clone())
            .build();
        config.proxy.clone_from(&options.proxy);
        config.max_output_tokens = options.max_output_tokens.unwrap_or(config.max_output_tokens);
        if let Some(effort) = &options.reasoning {
            let set = reasoning::claude(self.name.name, effort, config.max_output_tokens);
            let set = set.map_err(|refusal| self.refused(refusal, effort))?;
            (config.thinking, config.effort) = (set.thinking, set.effort);
        }
        Ok(config)
    }

    fn gemini(&self) -> Result<GeminiConfig, ProviderError> {
        let options = &self.options;
        let mut config = GeminiConfig::builder()
            .provider(self.name.provider.name())
            .base_url(&*self.url)
            .api_key(&*self.key)
            .model(self.name.name)
            .headers(options.headers.clone())
            .action_format(options.action_format)
            .capabilities(options.capabilities.clone())
            .build();
        config.proxy.clone_from(&options.proxy);
        config.max_output_tokens = options.max_output_tokens;
        if let Some(effort) = &options.reasoning {
            match reasoning::gemini(self.name.name, effort).map_err(|refusal| self.refused(refusal, effort))? {
                reasoning::GeminiReasoning::Level(level) => config.thinking_level = Some(level),
                reasoning::GeminiReasoning::Budget(tokens) => config.thinking_budget = Some(tokens),
            }
        }
        Ok(config)
    }

    fn refused(&self, refusal: EffortError, effort: &str) -> ProviderError {
        let model = self.name.written.to_owned();
        match refusal {
            EffortError::Unknown => {
                ProviderError::UnknownReasoning { reasoning: effort.to_owned(), model, known: &EFFORTS }
            }
            EffortError::NoRoom => ProviderError::NoRoomForThinking { model, at_least: LEAST_BUDGET / 3 * 4 + 4 },
        }
    }

    /// Finds the setting whose value the adapter refused: the first one whose removal makes the rest valid.
    fn culprit(&self, error: &ModelError) -> ProviderError {
        let access = self.access;
        type Remove = fn(&mut Parts<'_>);
        let variable = |from: &Option<(&'static str, String)>| from.as_ref().map(|(name, _)| *name);
        let removals: [(Option<Setting>, Remove); 3] = [
            (Some(Setting::Proxy), |parts| parts.options.proxy = None),
            (Some(Setting::Headers), |parts| parts.options.headers.clear()),
            (variable(&access.key).map(Setting::Variable), |parts| parts.key.clear()),
        ];
        let mut rest = self.clone();
        let found = removals.into_iter().find(|(_, remove)| {
            remove(&mut rest);
            Endpoint::new(&rest.url, &[]).is_ok() && matches!(rest.create(), Ok(Ok(_)))
        });
        let setting = found.and_then(|(setting, _)| setting).or(variable(&access.url).map(Setting::Variable));
        let (problem, remedy) = error.message.split_once("; ").unwrap_or((&error.message, "correct its value"));
        ProviderError::Unusable {
            setting: setting.unwrap_or(Setting::Model),
            problem: problem.to_owned(),
            remedy: remedy.to_owned(),
        }
    }
}

fn erased(model: impl Model) -> Arc<dyn Model> {
    Arc::new(model)
}
