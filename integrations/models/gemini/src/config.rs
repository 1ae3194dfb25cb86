//! Configuration of the adapter.

use std::fmt;

use positronic_core::record::ActionFormat;
use positronic_model_http::{Capabilities, HttpOptions, Timeouts};
use serde_json::Value;

/// The configuration of the Gemini API, or of a server with the same API.
///
/// Fields that the adapter does not know go into [`Settings::extra`](positronic_core::record::Settings), which is sent
/// unchanged. With `cachedContent` there, requests leave out the system prompt and the tools, which are in the cache. The API
/// has no setting against parallel calls, so [`Settings::parallel_tool_calls`](positronic_core::record::Settings) has no effect.
#[derive(Clone, typed_builder::TypedBuilder)]
#[builder(field_defaults(setter(into)))]
#[non_exhaustive]
pub struct GeminiConfig {
    /// The base URL including the version; a trailing slash is ignored.
    #[builder(default = "https://generativelanguage.googleapis.com/v1beta".to_owned())]
    pub base_url: String,
    /// The API key.
    #[builder(default)]
    pub api_key: String,
    /// The default model, such as `gemini-2.5-flash` or `tunedModels/…`.
    pub model: String,
    /// The provider's name in events.
    #[builder(default = "gemini".to_owned())]
    pub provider: String,
    /// Additional headers; they override the adapter's headers.
    #[builder(default)]
    pub headers: Vec<(String, String)>,
    /// The URL of a proxy, `http://…` or `socks5://…`. Proxies in the environment are ignored.
    #[builder(default, setter(strip_option))]
    pub proxy: Option<String>,
    /// Whether answers are streamed.
    #[builder(default = true)]
    pub stream: bool,
    /// Timeouts of a request.
    #[builder(default)]
    pub timeouts: Timeouts,
    /// The maximum number of tokens in an answer, thoughts included; a request may set a lower one.
    #[builder(default, setter(strip_option))]
    pub max_output_tokens: Option<u32>,
    /// Whether answers contain summaries of the model's thoughts. Models that do not think refuse it.
    #[builder(default, setter(strip_option))]
    pub include_thoughts: Option<bool>,
    /// The maximum number of tokens for thoughts, for Gemini 2.5; 0 turns them off, -1 lets the model decide.
    #[builder(default, setter(strip_option))]
    pub thinking_budget: Option<i32>,
    /// How much the model thinks, for Gemini 3: `low`, `high` or another level that the model supports.
    #[builder(default, setter(strip_option))]
    pub thinking_level: Option<String>,
    /// Thresholds of the safety filters, by category: `("HARM_CATEGORY_HARASSMENT", "BLOCK_ONLY_HIGH")`.
    #[builder(default)]
    pub safety: Vec<(String, String)>,
    /// What an answer contains, for models that make more than text: `TEXT`, `IMAGE`, `AUDIO`.
    #[builder(default)]
    pub response_modalities: Vec<String>,
    /// The form of pictures that the model makes, such as `{"aspectRatio": "16:9"}`, sent as `imageConfig`.
    #[builder(default, setter(strip_option))]
    pub image_config: Option<Value>,
    /// Which kinds of files models read.
    #[builder(default)]
    pub capabilities: Capabilities,
    /// How requests describe the format of actions, for a loop with structured actions that does not set it.
    #[builder(default)]
    pub action_format: ActionFormat,
}

impl GeminiConfig {
    pub(crate) fn http(&self) -> HttpOptions {
        let key = Some(&self.api_key).filter(|key| !key.is_empty()).map(|key| ("x-goog-api-key", key.clone()));
        HttpOptions::builder()
            .provider(&*self.provider)
            .model(&*self.model)
            .version("v1beta")
            .credentials(key.into_iter().collect::<Vec<_>>())
            .headers(self.headers.clone())
            .proxy(self.proxy.clone())
            .stream(self.stream)
            .timeouts(self.timeouts)
            .capabilities(self.capabilities.clone())
            .build()
    }

    /// Returns the lower limit of the request and the adapter.
    pub(crate) fn output_limit(&self, request: Option<u32>) -> Option<u32> {
        [request, self.max_output_tokens].into_iter().flatten().min()
    }
}

/// Shows no credentials.
impl fmt::Debug for GeminiConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GeminiConfig")
            .field("base_url", &self.base_url)
            .field("model", &self.model)
            .field("provider", &self.provider)
            .finish_non_exhaustive()
    }
}
