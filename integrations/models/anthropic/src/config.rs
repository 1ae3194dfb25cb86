//! Configuration of the adapter.

use std::fmt;

use positronic_core::record::ActionFormat;
use positronic_model_http::{Capabilities, HttpOptions, Timeouts};
use serde::Serialize;

/// The header with the names of beta features.
pub(crate) const BETA: &str = "anthropic-beta";

/// The configuration of Anthropic's API, or of a server with the same API.
///
/// Fields that the adapter does not know go into [`Settings::extra`](positronic_core::record::Settings), which is sent
/// unchanged.
#[derive(Clone, typed_builder::TypedBuilder)]
#[builder(field_defaults(setter(into)))]
#[non_exhaustive]
pub struct AnthropicConfig {
    /// The base URL including the version; a trailing slash is ignored.
    #[builder(default = "https://api.anthropic.com/v1".to_owned())]
    pub base_url: String,
    /// The API key.
    #[builder(default)]
    pub api_key: String,
    /// The default model.
    pub model: String,
    /// The provider's name in events.
    #[builder(default = "anthropic".to_owned())]
    pub provider: String,
    /// The version of the API, sent as `anthropic-version`.
    #[builder(default = "2023-06-01".to_owned())]
    pub version: String,
    /// Names of beta features, sent as `anthropic-beta`. A request adds those that its files and its tools need.
    #[builder(default)]
    pub beta: Vec<String>,
    /// Additional headers; they override the adapter's headers.
    #[builder(default)]
    pub headers: Vec<(String, String)>,
    /// The URL of a proxy, `http://…` or `socks5://…`. Proxies in the environment are ignored.
    #[builder(default, setter(strip_option))]
    pub proxy: Option<String>,
    /// Whether answers are streamed. Anthropic refuses long answers that are not.
    #[builder(default = true)]
    pub stream: bool,
    /// Timeouts of a request.
    #[builder(default)]
    pub timeouts: Timeouts,
    /// The maximum number of tokens in an answer, thinking included, which the API requires; a request may set a lower one.
    /// Every model since Claude 3.7 can write 16,384.
    #[builder(default = 16_384)]
    pub max_output_tokens: u32,
    /// Whether and how the model thinks before it answers.
    #[builder(default)]
    pub thinking: Thinking,
    /// The effort of models that have one: `low`, `medium`, `high` or another value that the model supports.
    #[builder(default, setter(strip_option))]
    pub effort: Option<String>,
    /// How long the provider caches the stable prefix of requests.
    #[builder(default)]
    pub cache: CacheLife,
    /// Whether the provider enforces the schemas of tools, where they can be strict. It allows at most 20 strict tools in a
    /// request and 16 parameters that may be `null`, and models before Claude 4.5 know no strict tools, so it is off by
    /// default; arguments are checked in any case.
    #[builder(default)]
    pub strict_tools: bool,
    /// Whether a call's arguments are streamed as they are written, instead of when a field is complete; the default is `true`
    /// for Anthropic's URL, since other servers may refuse the field.
    #[builder(default, setter(strip_option))]
    pub stream_arguments: Option<bool>,
    /// Whether the model cites the PDFs and the text files of messages, which become parts of its answers. A request whose output
    /// has a schema that the API enforces goes without: the API refuses both together.
    #[builder(default)]
    pub cite_documents: bool,
    /// Which kinds of files models read.
    #[builder(default)]
    pub capabilities: Capabilities,
    /// How requests describe the format of actions, for a loop with structured actions that does not set it.
    #[builder(default)]
    pub action_format: ActionFormat,
}

/// Whether and how a model thinks before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Thinking {
    /// As the model does by default.
    #[default]
    #[serde(skip)]
    Unset,
    /// The model decides.
    Adaptive,
    /// It thinks, with at most this number of tokens; at least 1,024, and fewer than `max_output_tokens`.
    Enabled {
        /// The number of tokens.
        budget_tokens: u32,
    },
    /// It does not.
    Disabled,
}

/// How long the provider caches the stable prefix of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum CacheLife {
    /// Not at all.
    Off,
    /// Five minutes from the last use; writing costs 1.25 times an uncached token.
    #[default]
    FiveMinutes,
    /// An hour from the last use; writing costs twice an uncached token.
    OneHour,
}

impl AnthropicConfig {
    pub(crate) fn http(&self) -> HttpOptions {
        let key = Some(&self.api_key).filter(|key| !key.is_empty()).map(|key| ("x-api-key", key.clone()));
        let version = ("anthropic-version".to_owned(), self.version.clone());
        let beta = Some((BETA.to_owned(), self.beta.join(","))).filter(|(_, names)| !names.is_empty());
        let headers: Vec<_> = [version].into_iter().chain(beta).chain(self.headers.iter().cloned()).collect();
        HttpOptions::builder()
            .provider(&*self.provider)
            .model(&*self.model)
            .credentials(key.into_iter().collect::<Vec<_>>())
            .headers(headers)
            .proxy(self.proxy.clone())
            .stream(self.stream)
            .timeouts(self.timeouts)
            .capabilities(self.capabilities.clone())
            .build()
    }

    /// Returns the value of the header with beta features, for a request that needs more of them.
    pub(crate) fn beta_with(&self, needed: &[&'static str]) -> String {
        let own = self.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(BETA));
        let mut names: Vec<&str> = match own {
            Some((_, names)) => names.split(',').map(str::trim).collect(),
            None => self.beta.iter().map(String::as_str).collect(),
        };
        for name in needed {
            if !names.contains(name) {
                names.push(name);
            }
        }
        names.join(",")
    }

    /// Returns the lower limit of the request and the adapter.
    pub(crate) fn output_limit(&self, request: Option<u32>) -> u32 {
        request.unwrap_or(u32::MAX).min(self.max_output_tokens)
    }

    pub(crate) fn streams_arguments(&self) -> bool {
        self.stream_arguments.unwrap_or_else(|| self.base_url.contains("//api.anthropic.com"))
    }
}

/// Shows no credentials.
impl fmt::Debug for AnthropicConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnthropicConfig")
            .field("base_url", &self.base_url)
            .field("model", &self.model)
            .field("provider", &self.provider)
            .field("thinking", &self.thinking)
            .field("cache", &self.cache)
            .finish_non_exhaustive()
    }
}
