//! Options of a model that are the same for all providers.

use std::fmt;

use positronic_core::record::ActionFormat;
use positronic_model_http::{Capabilities, is_secret_header};

/// The options of a model. Each provider gets them in its own form.
///
/// `reasoning` is an effort: `none`, `minimal`, `low`, `medium`, `high`, `xhigh`, `max` or another value that the model supports.
///
/// | provider | effort |
/// |---|---|
/// | `openai`, `ollama`, `openrouter` | sent unchanged, as `reasoning_effort` or `reasoning.effort` |
/// | `anthropic`, Claude 4.6 and later | `none` disables thinking; other values set `output_config.effort` and adaptive thinking; `minimal` counts as `low` |
/// | `anthropic`, before Claude 4.6 | `none` disables thinking; `minimal` allows 1,024 tokens of it, `low` 2,048, `medium` 6,144, `high` and above 12,288; at most three quarters of the maximum of output tokens |
/// | `gemini`, Gemini 3 and later | `thinkingLevel`; `none` and `minimal` are the lowest level, which is `low` for Pro models and `minimal` for others; `xhigh` and `max` count as `high` |
/// | `gemini`, before Gemini 3 | `thinkingBudget`: `none` is 0, and 128 for Pro models, which always think; `minimal` and `low` are 1,024, `medium` 8,192, `high` and above 24,576 |
///
/// The levels of Gemini are those of its own OpenAI-compatible endpoint.
#[derive(Clone, Default, PartialEq, Eq, typed_builder::TypedBuilder)]
#[builder(field_defaults(default, setter(strip_option, into)))]
#[non_exhaustive]
pub struct ModelOptions {
    /// The maximum number of tokens in an answer, reasoning included; a request may set a lower one.
    pub max_output_tokens: Option<u32>,
    /// The reasoning effort.
    pub reasoning: Option<String>,
    /// Additional headers of each request; they override the adapter's headers.
    #[builder(setter(!strip_option))]
    pub headers: Vec<(String, String)>,
    /// The URL of a proxy, `http://…` or `socks5://…`.
    pub proxy: Option<String>,
    /// How requests describe the format of actions, for a loop with structured actions that does not set it.
    #[builder(setter(!strip_option))]
    pub action_format: ActionFormat,
    /// Which kinds of files models read.
    #[builder(setter(!strip_option))]
    pub capabilities: Capabilities,
    /// Whether `<think>` and `<tool_call>` in texts are thinking and calls, for OpenAI-compatible servers that do not separate them.
    #[builder(setter(!strip_option))]
    pub text_marks: bool,
}

impl ModelOptions {
    /// Returns the secrets of the options: the values of secret headers, and the password of the proxy.
    #[must_use]
    pub fn secrets(&self) -> Vec<String> {
        let secret = self.headers.iter().filter(|(name, _)| is_secret_header(name));
        // The word before a space is a scheme, such as `Bearer`.
        let of_headers = secret.map(|(_, value)| value.rsplit(' ').next().unwrap_or_default().to_owned());
        of_headers.chain(self.proxy.as_deref().and_then(password)).filter(|secret| !secret.is_empty()).collect()
    }
}

/// Returns the password in a URL.
pub(crate) fn password(url: &str) -> Option<String> {
    let (authority, _) = url.split_once("://")?.1.split_once('@')?;
    Some(authority.split_once(':')?.1.to_owned())
}

/// Shows no credentials.
impl fmt::Debug for ModelOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelOptions")
            .field("max_output_tokens", &self.max_output_tokens)
            .field("reasoning", &self.reasoning)
            .field("action_format", &self.action_format)
            .finish_non_exhaustive()
    }
}
