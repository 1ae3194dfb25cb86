//! The error of a string that gives no model.

use std::fmt;

use crate::model_name::PREFIXES;
use crate::provider::Provider;

/// Why a string gives no model. Its text names the remedy, too.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{}", self.problem(), self.remedies().iter().map(|remedy| format!("; {remedy}")).collect::<String>())]
#[non_exhaustive]
pub enum ProviderError {
    /// The prefix is not a known provider, and no endpoint is configured whose models could have this name.
    UnknownProvider {
        /// The prefix.
        provider: String,
        /// The whole string.
        model: String,
    },
    /// The string contains no name of a model.
    NoName {
        /// The whole string.
        model: String,
        /// The provider of its prefix.
        provider: Provider,
    },
    /// The key of the provider is not set.
    NoKey {
        /// The provider.
        provider: Provider,
        /// The whole string.
        model: String,
        /// What was perhaps meant.
        instead: Option<String>,
    },
    /// The address of the provider is not set, and it has none that all users share.
    NoAddress {
        /// The provider.
        provider: Provider,
        /// The whole string.
        model: String,
    },
    /// A variable or an option has an invalid value.
    Unusable {
        /// The variable or the option.
        setting: Setting,
        /// What is wrong.
        problem: String,
        /// What to do.
        remedy: String,
    },
    /// The model does not have this reasoning effort.
    UnknownReasoning {
        /// The effort.
        reasoning: String,
        /// The whole string.
        model: String,
        /// The efforts that it has.
        known: &'static [&'static str],
    },
    /// The maximum of output tokens leaves no room for thinking.
    NoRoomForThinking {
        /// The whole string.
        model: String,
        /// The minimum.
        at_least: u32,
    },
    /// The only configured provider has no default model.
    NoDefaultModel {
        /// The provider.
        provider: Provider,
        /// The variable that configures it.
        variable: &'static str,
    },
    /// Several providers are configured, so none has the default model.
    SeveralProviders {
        /// The variables that configure them.
        variables: Vec<&'static str>,
    },
}

/// A variable or an option with which a model is created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Setting {
    /// A variable.
    Variable(&'static str),
    /// The model's name.
    Model,
    /// [`ModelOptions::proxy`](crate::ModelOptions::proxy).
    Proxy,
    /// [`ModelOptions::headers`](crate::ModelOptions::headers).
    Headers,
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Variable(name) => name,
            Self::Model => "the model's name",
            Self::Proxy => "the proxy",
            Self::Headers => "a header",
        })
    }
}

impl ProviderError {
    /// Returns what failed.
    #[must_use]
    pub fn problem(&self) -> String {
        match self {
            Self::UnknownProvider { provider, model } => {
                format!("unknown provider `{provider}` in the model `{model}`")
            }
            Self::NoName { model, .. } => format!("`{model}` contains no model name"),
            Self::NoKey { provider, model, .. } => {
                format!("cannot use the model `{model}`: {} is not set", provider.key_variables().join(" or "))
            }
            Self::NoAddress { provider, model } => {
                format!("cannot use the model `{model}`: {} is not set", provider.url_variables().join(" or "))
            }
            Self::Unusable { setting, problem, .. } => format!("cannot use {setting}: {problem}"),
            Self::UnknownReasoning { reasoning, model, .. } => {
                format!("cannot use the model `{model}`: unknown reasoning effort `{reasoning}`")
            }
            Self::NoRoomForThinking { model, at_least } => {
                format!("cannot use the model `{model}`: its thinking needs at least {at_least} output tokens")
            }
            Self::NoDefaultModel { variable, .. } => {
                format!("cannot choose a model: {variable} is set without a model")
            }
            Self::SeveralProviders { variables } => {
                format!("cannot choose a model: several providers are configured ({})", variables.join(", "))
            }
        }
    }

    /// Returns what to do, one remedy per entry.
    #[must_use]
    pub fn remedies(&self) -> Vec<String> {
        match self {
            Self::UnknownProvider { provider, model } => {
                let known = PREFIXES.map(|(name, ..)| name);
                let rest = model.strip_prefix(provider.as_str()).unwrap_or_default();
                let meant = nearest(provider, &known).map(|name| format!("did you mean `{name}{rest}`?"));
                let known = format!("known providers: {}", known.join(", "));
                let endpoint = "set OPENAI_BASE_URL for a model of another OpenAI-compatible endpoint".to_owned();
                meant.into_iter().chain([known, endpoint]).collect()
            }
            Self::NoName { provider, .. } => vec![format!("write it as {}", provider.example())],
            Self::NoKey { provider, instead, .. } => {
                let set = provider.key_variables().iter().take(1).map(|name| format!("set {name}"));
                set.chain(instead.clone()).collect()
            }
            Self::NoAddress { provider, .. } => {
                let variables = provider.url_variables().iter().take(1);
                variables.map(|name| format!("set {name}, such as {}", provider.default_url())).collect()
            }
            Self::Unusable { remedy, .. } => vec![remedy.clone()],
            Self::UnknownReasoning { known, .. } => vec![format!("use one of {}", known.join(", "))],
            Self::NoRoomForThinking { .. } => vec!["raise the maximum, or use the reasoning effort none".to_owned()],
            Self::NoDefaultModel { provider: Provider::OpenAi, .. } => {
                vec!["set OPENAI_MODEL, or name the model".to_owned()]
            }
            Self::NoDefaultModel { provider, .. } => vec![format!("name the model, such as {}", provider.example())],
            Self::SeveralProviders { .. } => {
                vec![format!("name the model, such as {}", Provider::Anthropic.example())]
            }
        }
    }
}

/// Returns the name that a misspelt one probably means.
fn nearest<'a>(written: &str, names: &[&'a str]) -> Option<&'a str> {
    let written = written.to_lowercase();
    let distance = |name: &&'a str| (strsim::damerau_levenshtein(&written, name), *name);
    let (distance, name) = names.iter().map(distance).min()?;
    (distance <= name.len() / 3).then_some(name)
}
