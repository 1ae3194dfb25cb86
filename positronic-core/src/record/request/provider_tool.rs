//! Tools of a provider: they run at the provider, within an answer.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A tool of the provider that a request offers beside the brain's own.
///
/// Each adapter translates it into the words of its API, and refuses a request with a tool that its API does not have.
/// What the tool did is a part of the answer: [`Part::ProviderTool`](crate::record::Part::ProviderTool).
///
/// ```
/// use positronic_core::record::{ProviderTool, WebSearchOptions, web_search};
///
/// let anywhere = web_search();
/// let docs = ProviderTool::from(WebSearchOptions::builder().allowed_domains(["docs.rs".to_owned()]).max_uses(3).build());
/// let open = ProviderTool::raw(serde_json::json!({"type": "tool_search_tool_regex_20251119", "name": "tools"}));
/// # let _ = (anywhere, docs, open);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ProviderTool {
    /// Searches the web.
    WebSearch(WebSearchOptions),
    /// Loads pages whose addresses are in the conversation.
    WebFetch,
    /// Runs programs that the model writes.
    CodeExecution,
    /// Makes pictures.
    ImageGeneration,
    /// A tool in the words of one provider, which is sent unchanged.
    Raw {
        /// The tool's declaration.
        tool: Value,
    },
}

/// The options of a web search.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, typed_builder::TypedBuilder)]
#[builder(field_defaults(default))]
#[serde(default)]
#[non_exhaustive]
pub struct WebSearchOptions {
    /// The maximum number of searches in an answer, for APIs with such a limit.
    #[builder(setter(strip_option))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_uses: Option<u32>,
    /// The only domains to search; all if empty.
    #[builder(setter(into))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_domains: Vec<String>,
    /// Domains to leave out.
    #[builder(setter(into))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocked_domains: Vec<String>,
}

impl ProviderTool {
    /// Creates a tool in the words of one provider, which is sent unchanged.
    #[must_use]
    pub const fn raw(tool: Value) -> Self {
        Self::Raw { tool }
    }

    /// Returns its name in messages for people.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::WebSearch(_) => "web_search",
            Self::WebFetch => "web_fetch",
            Self::CodeExecution => "code_execution",
            Self::ImageGeneration => "image_generation",
            Self::Raw { tool } => {
                let field = |name: &str| tool.get(name).and_then(Value::as_str);
                field("name").or_else(|| field("type")).unwrap_or("a tool of the provider")
            }
        }
    }
}

impl From<WebSearchOptions> for ProviderTool {
    fn from(search: WebSearchOptions) -> Self {
        Self::WebSearch(search)
    }
}

/// Creates a web search without restrictions.
#[must_use]
pub fn web_search() -> ProviderTool {
    WebSearchOptions::default().into()
}

/// Creates a tool that loads pages whose addresses are in the conversation.
#[must_use]
pub const fn web_fetch() -> ProviderTool {
    ProviderTool::WebFetch
}

/// Creates a tool that runs programs of the model at the provider.
#[must_use]
pub const fn code_execution() -> ProviderTool {
    ProviderTool::CodeExecution
}

/// Creates a tool that makes pictures.
#[must_use]
pub const fn image_generation() -> ProviderTool {
    ProviderTool::ImageGeneration
}
