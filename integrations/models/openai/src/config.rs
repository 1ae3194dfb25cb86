//! Configuration of a server: its URL and its capabilities.

use std::fmt;
use std::sync::Arc;

use positronic_core::record::{ActionFormat, Settings};
use positronic_model_http::{Capabilities, HttpOptions, HttpSender, Route, Timeouts};

/// The configuration of a server and its differences from OpenAI's API.
///
/// Options of a single request go into [`Settings::extra`](positronic_core::record::Settings).
#[derive(Clone, typed_builder::TypedBuilder)]
#[builder(field_defaults(setter(into)))]
#[non_exhaustive]
pub struct OpenAiConfig {
    /// The base URL including the version, such as `https://api.openai.com/v1`; a trailing slash is ignored.
    #[builder(default = "https://api.openai.com/v1".to_owned())]
    pub base_url: String,
    /// The API key; empty for servers without keys.
    #[builder(default)]
    pub api_key: String,
    /// The default model.
    pub model: String,
    /// The provider's name in events.
    #[builder(default = "openai".to_owned())]
    pub provider: String,
    /// The organization that is billed.
    #[builder(default, setter(strip_option))]
    pub organization: Option<String>,
    /// Additional headers, such as `("api-key", key)`; they override the adapter's headers.
    #[builder(default)]
    pub headers: Vec<(String, String)>,
    /// The URL of a proxy, `http://…` or `socks5://…`. Proxies in the environment are ignored.
    #[builder(default, setter(strip_option))]
    pub proxy: Option<String>,
    /// Decides URL and credentials of each request. The base URL then only names the server in events and sets the defaults that
    /// depend on it; the API key is not sent.
    #[builder(default, setter(strip_option, !into))]
    pub route: Option<Arc<dyn Route>>,
    /// Sends the requests in place of the adapter's own HTTP client.
    #[builder(default, setter(strip_option, !into))]
    pub sender: Option<Arc<dyn HttpSender>>,
    /// Whether answers are streamed; some servers do not support it.
    #[builder(default = true)]
    pub stream: bool,
    /// Timeouts of a request.
    #[builder(default)]
    pub timeouts: Timeouts,
    /// The maximum number of tokens in an answer; a request may set a lower one.
    #[builder(default, setter(strip_option))]
    pub max_output_tokens: Option<u32>,
    /// The default reasoning effort: `none`, `minimal`, `low`, `medium`, `high` or another value that the server supports.
    #[builder(default, setter(strip_option))]
    pub reasoning_effort: Option<String>,
    /// Whether the chat API's limit of an answer is named `max_tokens`, for older servers without `max_completion_tokens`.
    #[builder(default)]
    pub max_tokens: bool,
    /// Which reasoning the chat API sends back.
    #[builder(default)]
    pub reasoning_back: ReasoningBack,
    /// Whether `<think>` and `<tool_call>` in texts are thinking and calls, for servers that do not separate them. A call is JSON, or
    /// `<function=…>` with `<parameter=…>`, as Qwen3-Coder writes it.
    #[builder(default)]
    pub text_marks: bool,
    /// How requests describe the format of actions, for a loop with structured actions that does not set it.
    #[builder(default)]
    pub action_format: ActionFormat,
    /// Whether the Responses API requests encrypted reasoning, which is sent back with the next request; OpenAI rejects that for
    /// models without reasoning. `true` and `false` convert to always and never.
    #[builder(default)]
    pub encrypted_reasoning: EncryptedReasoning,
    /// Whether the server enforces strict schemas as OpenAI does; the default is `true` for the URLs of OpenAI and Azure, else
    /// `false`. If so, each schema is made strict where possible ([`strict_schema`](positronic_model_http::schema::strict_schema)).
    #[builder(default, setter(strip_option))]
    pub strict_schemas: Option<bool>,
    /// Where the context of a request goes if the last message is a tool's result.
    #[builder(default)]
    pub context_after_results: ContextAfterResults,
    /// Which kinds of files models read.
    #[builder(default)]
    pub capabilities: Capabilities,
}

impl OpenAiConfig {
    /// Returns the part for the transport.
    pub(super) fn http(&self) -> HttpOptions {
        let key = Some(&self.api_key)
            .filter(|key| !key.is_empty() && self.route.is_none())
            .map(|key| ("authorization", format!("Bearer {key}")));
        let organization = self.organization.clone().map(|name| ("openai-organization", name));
        HttpOptions::builder()
            .provider(&*self.provider)
            .model(&*self.model)
            .version("v1")
            .capabilities(self.capabilities.clone())
            .credentials(key.into_iter().chain(organization).collect::<Vec<_>>())
            .headers(self.headers.clone())
            .proxy(self.proxy.clone())
            .sender(self.sender.clone())
            .stream(self.stream)
            .timeouts(self.timeouts)
            .build()
    }

    /// Returns the lower limit of the request and the adapter.
    pub(super) fn output_limit(&self, request: Option<u32>) -> Option<u32> {
        [request, self.max_output_tokens].into_iter().flatten().min()
    }
}

impl fmt::Debug for OpenAiConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAiConfig")
            .field("base_url", &self.base_url)
            .field("model", &self.model)
            .field("provider", &self.provider)
            .field("stream", &self.stream)
            .field("timeouts", &self.timeouts)
            .finish_non_exhaustive()
    }
}

impl OpenAiConfig {
    /// Returns whether schemas are made strict.
    pub(super) fn is_strict(&self) -> bool {
        self.strict_schemas.unwrap_or_else(|| {
            let host = host(&self.base_url);
            host == "api.openai.com" || AZURE_DOMAINS.iter().any(|domain| host.ends_with(domain))
        })
    }

    /// Returns whether the context is appended to the last tool result instead of a separate message.
    pub(super) fn context_in_results(&self) -> bool {
        match self.context_after_results {
            ContextAfterResults::ByAddress => host(&self.base_url) == "api.mistral.ai",
            ContextAfterResults::OwnMessage => false,
            ContextAfterResults::InResult => true,
        }
    }
}

/// The domains of Azure's resources for OpenAI's models.
const AZURE_DOMAINS: [&str; 2] = [".openai.azure.com", ".cognitiveservices.azure.com"];

fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let authority = authority.rsplit('@').next().unwrap_or_default();
    authority.split(':').next().unwrap_or_default()
}

/// Where the context of a request goes if the last message is a tool's result. After a user message it is always
/// part of that message, so that there are never two in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ContextAfterResults {
    /// Depends on the URL: in the result for Mistral's API, which rejects a user message after a result, else in a separate
    /// message.
    #[default]
    ByAddress,
    /// In a separate user message.
    OwnMessage,
    /// At the end of the result's text.
    InResult,
}

/// Which reasoning the chat API sends back, always in the field in which it was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ReasoningBack {
    /// That of answers with calls: models that reason between calls need it, and no server is known to reject it.
    #[default]
    WithCalls,
    /// All.
    Always,
    /// None.
    Never,
}

/// For which models the Responses API requests encrypted reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum EncryptedReasoning {
    /// For known reasoning models: OpenAI's o series, GPT-5 and later except for their chat variants, and any model
    /// for which a request sets `reasoning`.
    #[default]
    ForThinkers,
    /// For all.
    Always,
    /// For none.
    Never,
}

impl From<bool> for EncryptedReasoning {
    fn from(always: bool) -> Self {
        if always { Self::Always } else { Self::Never }
    }
}

impl EncryptedReasoning {
    /// Returns whether a request asks for encrypted reasoning.
    pub(super) fn is_asked(self, model: &str, settings: &Settings) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::ForThinkers => thinks(model) || settings.extra.contains_key("reasoning"),
        }
    }
}

/// Returns whether a model's name is one of OpenAI's reasoning models. Gateways prefix the vendor's name.
fn thinks(model: &str) -> bool {
    let name = model.rsplit_once('/').map_or(model, |(_, name)| name);
    let version = |prefix: &str| name.strip_prefix(prefix)?.split(['-', '.', '_']).next()?.parse::<u32>().ok();
    let is_o_series = version("o").is_some();
    is_o_series || (version("gpt-").is_some_and(|version| version >= 5) && !name.contains("chat"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encrypted_reasoning_is_requested_from_reasoning_models() {
        for name in ["o3", "o4-mini", "gpt-5", "gpt-5.1-codex", "openai/gpt-5-mini", "gpt-6"] {
            assert!(thinks(name), "{name}");
        }
        for name in ["gpt-4o", "gpt-4.1-mini", "gpt-5-chat-latest", "qwen3-8b", "olmo", "claude-sonnet-4-5"] {
            assert!(!thinks(name), "{name}");
        }
    }
}
