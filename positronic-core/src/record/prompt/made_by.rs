//! The model that made an answer, which alone may get the answer's private data back.
//!
//! Signatures, encrypted reasoning and items of a provider's own tools are bound to the model that made them, and to the server
//! that knows them: another model of the same provider refuses the whole request (Anthropic: "Invalid `signature` in `thinking`
//! block", OpenAI: `invalid_encrypted_content`). So each answer in a request names its model, and an adapter sends private data
//! back only where [`Recipient::made`] says that its recipient is that model; others read [`Message::for_others`].

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::message::{Assistant, Message};

/// The model that made an answer; unknown for an answer that no model made.
///
/// All values are equal, so that messages are compared by their content.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MadeBy(Option<Arc<Maker>>);

/// A model.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Maker {
    /// The provider.
    provider: String,
    /// The model that was asked for.
    model: String,
    /// The server, as host and port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    server: Option<String>,
}

impl MadeBy {
    /// Names a model: its provider, its name, and its server where that is known. Empty names mean an unknown model.
    #[must_use]
    pub fn new(provider: &str, model: &str, server: Option<&str>) -> Self {
        let is_known = !provider.is_empty() || !model.is_empty();
        let maker =
            || Maker { provider: provider.to_owned(), model: model.to_owned(), server: server.map(str::to_owned) };
        Self(is_known.then(|| Arc::new(maker())))
    }

    /// Names a model as [`new`](Self::new) does, and shares the name of an earlier answer if that is the same.
    pub(crate) fn shared(earlier: Option<&Self>, provider: &str, model: &str, server: Option<&str>) -> Self {
        let is_it = |by: &&Self| {
            let maker = by.0.as_deref();
            maker.is_some_and(|maker| {
                maker.provider == provider && maker.model == model && maker.server.as_deref() == server
            })
        };
        earlier.filter(is_it).cloned().unwrap_or_else(|| Self::new(provider, model, server))
    }

    /// Returns whether both name the same model.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.0 == other.0
    }

    /// Returns whether the model is unknown.
    #[must_use]
    pub const fn is_unknown(&self) -> bool {
        self.0.is_none()
    }
}

impl PartialEq for MadeBy {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for MadeBy {}

/// The model that a request goes to.
#[derive(Debug, Clone, Copy)]
pub struct Recipient<'a> {
    /// The provider's name in events.
    pub provider: &'a str,
    /// The model that the request asks for.
    pub model: &'a str,
    /// The server, as answers of it name it.
    pub server: &'a str,
}

impl Recipient<'_> {
    /// Returns whether a message holds no private data of another model. An unknown model counts as this one.
    #[must_use]
    pub fn made(&self, message: &Message) -> bool {
        let Message::Assistant { by, .. } = message else { return true };
        self.is(by)
    }

    /// Returns whether `by` names this recipient or is unknown.
    pub(super) fn is(&self, by: &MadeBy) -> bool {
        let MadeBy(Some(maker)) = by else { return true };
        maker.model == self.model
            && maker.provider == self.provider
            && maker.server.as_deref().is_none_or(|server| server == self.server)
    }
}

impl Message {
    /// Returns the message as another model reads it: an answer without the private data of its model. `None` if nothing remains.
    #[must_use]
    pub fn for_others(&self) -> Option<Self> {
        let Self::Assistant { parts, .. } = self else { return Some(self.clone()) };
        let parts: Vec<_> = parts.iter().filter_map(Assistant::without_private_data).collect();
        let says_something = |part: &Assistant| match part {
            Assistant::Text { text } => !text.trim().is_empty(),
            Assistant::Reasoning { .. } | Assistant::Opaque { .. } => false,
            Assistant::Call { .. } | Assistant::File { .. } => true,
        };
        parts.iter().any(says_something).then(|| Self::assistant(parts))
    }
}

impl Assistant {
    /// Returns the part as another model reads it; `None` if only its own model understands it.
    fn without_private_data(&self) -> Option<Self> {
        match self {
            Self::Text { .. } => Some(self.clone()),
            Self::Reasoning { text, .. } => Some(Self::Reasoning { text: text.clone(), data: None }),
            Self::Call { call, name, arguments, .. } => {
                Some(Self::Call { call: call.clone(), name: name.clone(), arguments: arguments.clone(), data: None })
            }
            Self::File { file, .. } => Some(Self::File { file: file.clone(), data: None }),
            Self::Opaque { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answer_is_of_a_model_by_provider_name_and_server() {
        let to = |provider, model, server| Recipient { provider, model, server };
        let own = to("openai", "gpt-5", "a.example");
        let by = |by: MadeBy| Message::Assistant { parts: Vec::new(), by };
        let made = by(MadeBy::new("openai", "gpt-5", Some("a.example")));

        assert!(own.made(&made) && own.made(&by(MadeBy::new("openai", "gpt-5", None))));
        for other in [
            to("azure", "gpt-5", "a.example"),
            to("openai", "gpt-5-mini", "a.example"),
            to("openai", "gpt-5", "b.example"),
        ] {
            assert!(!other.made(&made), "{other:?}");
        }
        assert!(own.made(&by(MadeBy::new("", "", None))) && own.made(&Message::user("Hi.")));
    }
}
