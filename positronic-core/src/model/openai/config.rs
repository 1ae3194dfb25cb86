//! How to reach a server, and what it can do.

use std::fmt;
use std::time::Duration;

use crate::record::{ActionFormat, Settings};

/// Says where a server is and how to speak with it.
///
/// What a compatible server does differently from OpenAI's own is a field here; what only one request needs goes
/// into [`Settings::extra`](crate::record::Settings).
#[derive(Clone, typed_builder::TypedBuilder)]
#[builder(field_defaults(setter(into)))]
pub struct OpenAiConfig {
    /// The address up to and including the version, such as `https://api.openai.com/v1`; a trailing slash is ignored.
    #[builder(default = "https://api.openai.com/v1".to_owned())]
    pub base_url: String,
    /// The key; empty for servers that want none.
    #[builder(default)]
    pub api_key: String,
    /// The model, where a request names no other.
    pub model: String,
    /// What events call the provider.
    #[builder(default = "openai".to_owned())]
    pub provider: String,
    /// The organization that is billed.
    #[builder(default, setter(strip_option))]
    pub organization: Option<String>,
    /// Further headers of each request, such as `("api-key", key)`; one that is named like a header of the adapter replaces it.
    #[builder(default)]
    pub headers: Vec<(String, String)>,
    /// A proxy's address, `http://…` or `socks5://…`. Without it there is none: the environment is not read.
    #[builder(default, setter(strip_option))]
    pub proxy: Option<String>,
    /// Whether the answer is streamed; some servers cannot.
    #[builder(default = true)]
    pub stream: bool,
    /// How long to wait for what.
    #[builder(default)]
    pub timeouts: Timeouts,
    /// The most tokens of an answer; a request that sets fewer keeps its own.
    #[builder(default, setter(strip_option))]
    pub max_output_tokens: Option<u32>,
    /// How much the model thinks, where a request does not say: `none`, `minimal`, `low`, `medium`, `high` or another word that
    /// the server knows.
    #[builder(default, setter(strip_option))]
    pub reasoning_effort: Option<String>,
    /// Whether the chat dialect limits an answer with `max_tokens` rather than `max_completion_tokens`, which older
    /// servers do not know.
    #[builder(default)]
    pub max_tokens: bool,
    /// Which thoughts the chat dialect sends back.
    #[builder(default)]
    pub reasoning_back: ReasoningBack,
    /// How the form of a decision is told to the model, where a loop asks for decisions and does not say.
    #[builder(default)]
    pub action_format: ActionFormat,
    /// Whether the Responses dialect asks for encrypted thoughts, which go back with the next request; OpenAI refuses that for
    /// models that do not think. `true` and `false` are always and never.
    #[builder(default)]
    pub encrypted_reasoning: EncryptedReasoning,
    /// Whether the server enforces strict schemas as OpenAI does; without it, `true` for OpenAI's own address and Azure's, and
    /// `false` for others. Where it does, each schema is sent as a strict one that can be
    /// ([`strict_schema`](crate::model::schema::strict_schema)).
    #[builder(default, setter(strip_option))]
    pub strict_schemas: Option<bool>,
    /// Where the context of a request goes when the last message is the result of a tool.
    #[builder(default)]
    pub context_after_results: ContextAfterResults,
}

impl OpenAiConfig {
    /// Returns the most tokens of an answer: the smaller one of the request's limit and the adapter's.
    pub(super) fn most_tokens(&self, request: Option<u32>) -> Option<u32> {
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
    /// Says whether schemas are sent as strict ones.
    pub(super) fn is_strict(&self) -> bool {
        self.strict_schemas.unwrap_or_else(|| {
            let host = host(&self.base_url);
            host == "api.openai.com" || host.ends_with(".openai.azure.com")
        })
    }

    /// Says whether the context goes into the last result of a tool rather than behind it.
    pub(super) fn context_in_results(&self) -> bool {
        match self.context_after_results {
            ContextAfterResults::ByAddress => host(&self.base_url) == "api.mistral.ai",
            ContextAfterResults::OwnMessage => false,
            ContextAfterResults::InResult => true,
        }
    }
}

fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let authority = authority.rsplit('@').next().unwrap_or_default();
    authority.split(':').next().unwrap_or_default()
}

/// Where the context of a request goes when the last message is the result of a tool. Behind a message of the user it is always
/// part of that message, so that no two of them follow one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ContextAfterResults {
    /// As the address says: into the result for Mistral's endpoint, which refuses a user message behind a result, and into a
    /// message of its own elsewhere.
    #[default]
    ByAddress,
    /// Into a user message of its own.
    OwnMessage,
    /// Behind the text of the result.
    InResult,
}

/// Which thoughts the chat dialect sends back, always under the field they came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReasoningBack {
    /// Those of answers with calls: models that think between calls want them, and no server is known to refuse them.
    #[default]
    WithCalls,
    /// All.
    Always,
    /// None.
    Never,
}

/// For which models the Responses dialect asks for encrypted thoughts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EncryptedReasoning {
    /// For those that are known to think: OpenAI's o series, GPT-5 and later ones but for their chat variants, and whichever
    /// model a request asks to think with a `reasoning` of its own.
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
    /// Says whether a request asks for them.
    pub(super) fn is_asked(self, model: &str, settings: &Settings) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::ForThinkers => thinks(model) || settings.extra.contains_key("reasoning"),
        }
    }
}

/// Says whether a model's name is one of OpenAI's that think. Gateways put the maker's name before it.
fn thinks(model: &str) -> bool {
    let name = model.rsplit_once('/').map_or(model, |(_, name)| name);
    let version = |prefix: &str| name.strip_prefix(prefix)?.split(['-', '.', '_']).next()?.parse::<u32>().ok();
    let is_o_series = version("o").is_some();
    is_o_series || (version("gpt-").is_some_and(|version| version >= 5) && !name.contains("chat"))
}

/// How long a request may take. A request that outlasts one of them fails with
/// [`Timeout`](crate::record::ModelErrorKind::Timeout).
#[derive(Debug, Clone, Copy, PartialEq, Eq, typed_builder::TypedBuilder)]
pub struct Timeouts {
    /// Until the connection stands; 10 s.
    #[builder(default = Duration::from_secs(10))]
    pub connect: Duration,
    /// From the start to the first chunk, where the answer is streamed; 3 minutes.
    #[builder(default = Duration::from_mins(3))]
    pub first_chunk: Duration,
    /// Between two chunks; 2 minutes.
    #[builder(default = Duration::from_mins(2))]
    pub idle: Duration,
    /// From the start to the end; 15 minutes.
    #[builder(default = Duration::from_mins(15))]
    pub whole: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self::builder().build()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encrypted_thoughts_are_asked_of_models_that_think() {
        for name in ["o3", "o4-mini", "gpt-5", "gpt-5.1-codex", "openai/gpt-5-mini", "gpt-6"] {
            assert!(thinks(name), "{name}");
        }
        for name in ["gpt-4o", "gpt-4.1-mini", "gpt-5-chat-latest", "qwen3-8b", "olmo", "claude-sonnet-4-5"] {
            assert!(!thinks(name), "{name}");
        }
    }
}
