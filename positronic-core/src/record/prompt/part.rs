//! Parts of a model's answer.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::file::Attachment;
use super::message::Assistant;
use crate::record::encoding::document;

/// One part of a model's answer, in the order the model gave them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Part {
    /// Natural language.
    Text {
        /// The text.
        text: String,
    },
    /// The sources of the text before it.
    Citations {
        /// The sources, in the provider's order.
        citations: Vec<Citation>,
        /// Provider data that is sent back unchanged.
        #[serde(default, deserialize_with = "document::present", skip_serializing_if = "Option::is_none")]
        data: Option<Value>,
    },
    /// A refusal in the model's words. It is sent back as text, which every provider accepts.
    Refusal {
        /// The words.
        text: String,
    },
    /// The model's reasoning before its answer.
    Reasoning {
        /// The reasoning or its summary, as far as the provider shows it.
        text: String,
        /// Provider data that is sent back unchanged: an encrypted item, a signature.
        #[serde(default, deserialize_with = "document::present", skip_serializing_if = "Option::is_none")]
        data: Option<Value>,
    },
    /// A call; its arguments are in its `LOOP_TOOL_CALL`.
    Call {
        /// The index of the call in this answer, from 0.
        index: u32,
    },
    /// What a tool of the provider did. It ran at the provider, within the answer.
    ProviderTool(Box<ProviderToolUse>),
    /// A file that the model made, such as a picture.
    File {
        /// The file; the runner stores its bytes before it records the answer.
        file: Attachment,
        /// Provider data that is sent back with the file.
        #[serde(default, deserialize_with = "document::present", skip_serializing_if = "Option::is_none")]
        data: Option<Value>,
    },
    /// An item that only the provider understands; it is sent back unchanged.
    Opaque {
        /// The item.
        data: Value,
    },
}

impl Part {
    /// Converts it to what is sent back to the model. A call is sent back with its arguments, which are not in the answer.
    #[must_use]
    pub fn sent_back(&self) -> Option<Assistant> {
        let opaque = |data: &Option<Value>| data.clone().map(|data| Assistant::Opaque { data });
        match self {
            Self::Text { text } | Self::Refusal { text } => Some(Assistant::Text { text: text.clone() }),
            Self::Reasoning { text, data } => Some(Assistant::Reasoning { text: text.clone(), data: data.clone() }),
            Self::File { file, data } => Some(Assistant::File { file: file.clone(), data: data.clone() }),
            Self::Citations { data, .. } => opaque(data),
            Self::ProviderTool(used) => opaque(&used.data),
            Self::Opaque { data } => Some(Assistant::Opaque { data: data.clone() }),
            Self::Call { .. } => None,
        }
    }

    /// Returns whether it is visible to people: reasoning, empty texts and provider data are not.
    #[must_use]
    pub fn says_something(&self) -> bool {
        match self {
            Self::Opaque { data } => data.get("type").is_some(),
            part => part.is_for_people(),
        }
    }

    /// Returns whether people read it as a part of the answer: items that only the provider understands are not.
    pub(crate) fn is_for_people(&self) -> bool {
        match self {
            Self::Text { text } => !text.trim().is_empty(),
            Self::Refusal { .. } | Self::ProviderTool(_) | Self::File { .. } => true,
            Self::Citations { .. } | Self::Reasoning { .. } | Self::Call { .. } | Self::Opaque { .. } => false,
        }
    }
}

/// A source of an answer. What the provider does not report is absent.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize, typed_builder::TypedBuilder)]
#[builder(field_defaults(default, setter(strip_option, into)))]
#[serde(default)]
#[non_exhaustive]
pub struct Citation {
    /// The address of the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Its title, or the name of a document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The words of the source that support the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quote: Option<String>,
    /// The words of the answer that the source supports, if not the whole text before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supports: Option<String>,
}

impl Citation {
    /// Creates a citation of a source by what is known about it.
    #[must_use]
    pub const fn new(url: Option<String>, title: Option<String>, quote: Option<String>) -> Self {
        Self { url, title, quote, supports: None }
    }

    /// Names the source in one line: its title and its address, as far as they are known.
    #[must_use]
    pub fn line(&self) -> String {
        match (self.title.as_deref().filter(|title| !title.trim().is_empty()), self.url.as_deref()) {
            (Some(title), Some(url)) if title != url => format!("{title} <{url}>"),
            (Some(name), _) | (None, Some(name)) => name.to_owned(),
            (None, None) => "a source without a name".to_owned(),
        }
    }
}

/// What a tool of the provider did.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ProviderToolUse {
    /// The tool: `web_search`, `web_fetch`, `code_execution`, or the provider's own name.
    pub tool: String,
    /// What the model asked it for: a query, an address, code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// What it returned as text, such as the output of a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// The reason why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What it found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<Citation>,
    /// The item as the provider sent it, which is sent back unchanged.
    #[serde(default, deserialize_with = "document::present", skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl ProviderToolUse {
    /// Creates an entry without input, results and provider data.
    pub fn new(tool: impl Into<String>) -> Self {
        Self { tool: tool.into(), ..Self::default() }
    }
}
