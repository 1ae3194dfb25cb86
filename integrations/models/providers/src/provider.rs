//! The known providers, their variables and defaults.

use std::fmt;

/// The variable of a token of Entra ID.
pub(crate) const AZURE_TOKEN: &str = "AZURE_OPENAI_AD_TOKEN";

/// The variable of a command that prints a token of Entra ID.
pub(crate) const AZURE_TOKEN_COMMAND: &str = "AZURE_OPENAI_TOKEN_COMMAND";

/// The variables of Azure's API version; the first one that is set counts.
pub(crate) const AZURE_VERSIONS: [&str; 2] = ["AZURE_OPENAI_API_VERSION", "OPENAI_API_VERSION"];

/// A provider of models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Provider {
    /// OpenAI, or the compatible endpoint at `OPENAI_BASE_URL`.
    OpenAi,
    /// Anthropic's Messages API.
    Anthropic,
    /// Google's Gemini API.
    Gemini,
    /// A server of Ollama.
    Ollama,
    /// OpenRouter.
    OpenRouter,
    /// Azure OpenAI.
    Azure,
}

impl Provider {
    /// All providers.
    pub const ALL: [Self; 6] =
        [Self::OpenAi, Self::Anthropic, Self::Gemini, Self::Ollama, Self::OpenRouter, Self::Azure];

    /// Returns the name in strings, events and price tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
            Self::OpenRouter => "openrouter",
            Self::Azure => "azure",
        }
    }

    /// Returns the variables of the API key; the first one that is set counts. Azure's second one has a token of Entra ID, its third
    /// one a command that prints a token.
    #[must_use]
    pub const fn key_variables(self) -> &'static [&'static str] {
        match self {
            Self::OpenAi => &["OPENAI_API_KEY"],
            Self::Anthropic => &["ANTHROPIC_API_KEY"],
            Self::Gemini => &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
            Self::Ollama => &[],
            Self::OpenRouter => &["OPENROUTER_API_KEY"],
            Self::Azure => &["AZURE_OPENAI_API_KEY", AZURE_TOKEN, AZURE_TOKEN_COMMAND],
        }
    }

    /// Returns the variables of the base URL; the first one that is set counts.
    #[must_use]
    pub const fn url_variables(self) -> &'static [&'static str] {
        match self {
            Self::OpenAi => &["OPENAI_BASE_URL"],
            Self::Anthropic => &["ANTHROPIC_BASE_URL"],
            Self::Gemini => &["GEMINI_BASE_URL", "GOOGLE_GEMINI_BASE_URL"],
            Self::Ollama => &["OLLAMA_HOST"],
            Self::OpenRouter => &["OPENROUTER_BASE_URL"],
            Self::Azure => &["AZURE_OPENAI_ENDPOINT"],
        }
    }

    /// Returns the base URL without a variable. That of Azure is an example, since each resource has its own.
    #[must_use]
    pub const fn default_url(self) -> &'static str {
        match self {
            Self::OpenAi => "https://api.openai.com/v1",
            Self::Anthropic => "https://api.anthropic.com/v1",
            Self::Gemini => "https://generativelanguage.googleapis.com/v1beta",
            Self::Ollama => "http://127.0.0.1:11434/v1",
            Self::OpenRouter => "https://openrouter.ai/api/v1",
            Self::Azure => "https://NAME.openai.azure.com",
        }
    }

    /// Returns the model that is used if only this provider is configured: a small one of the current generation with a known
    /// price, so that a first run is cheap. Ollama, OpenRouter and Azure have none, since their models are the user's choice.
    #[must_use]
    pub const fn default_model(self) -> Option<&'static str> {
        match self {
            Self::OpenAi => Some("openai/gpt-5-mini"),
            Self::Anthropic => Some("anthropic/claude-haiku-5-5"),
            Self::Gemini => Some("gemini/gemini-3.8-flash"),
            Self::Ollama | Self::OpenRouter | Self::Azure => None,
        }
    }

    /// Returns an example of a model's string.
    pub(crate) const fn example(self) -> &'static str {
        match (self.default_model(), self) {
            (Some(model), _) => model,
            (None, Self::OpenRouter) => "openrouter/openai/gpt-5-mini",
            (None, Self::Azure) => "azure/DEPLOYMENT",
            (None, _) => "ollama/qwen3:8b",
        }
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
