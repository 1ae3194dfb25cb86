//! Tools of the provider in requests.

use std::borrow::Cow;

use positronic_core::record::{ModelError, ModelErrorKind, ModelRequest, ProviderTool, WebSearchOptions};
use positronic_model_http::extend_list;
use serde_json::{Map, Value, json};

/// Checks that the API has the tools of the provider that a request offers.
pub(crate) fn check(provider: &str, request: &ModelRequest) -> Result<(), ModelError> {
    let refuse = |sentence: String| Err(ModelError::new(ModelErrorKind::Unsupported, sentence));
    for tool in &request.settings.provider_tools {
        let name = tool.name();
        if declaration(tool).is_none() {
            return refuse(format!(
                "the API of `{provider}` has no tool `{name}`; leave it out, or choose a model of another provider"
            ));
        }
        if let ProviderTool::WebSearch(WebSearchOptions { allowed_domains, blocked_domains, .. }) = tool
            && !allowed_domains.is_empty()
            && !blocked_domains.is_empty()
        {
            return refuse(format!(
                "the API of `{provider}` takes either the allowed or the blocked domains of a web search; leave out one list"
            ));
        }
        if request.tools.find(name).is_some() {
            return refuse(format!(
                "the brain and `{provider}` both have a tool `{name}`; rename the brain's, or leave out the provider's"
            ));
        }
    }
    Ok(())
}

/// Returns an encoded list of tools with those of the provider after the brain's own.
pub(crate) fn append<'a>(own: &'a str, tools: &[ProviderTool]) -> Cow<'a, str> {
    extend_list(own, tools.iter().filter_map(declaration).map(|tool| tool.to_string()))
}

/// Returns the declaration of a tool in the words of the API; `None` if the API does not have it.
fn declaration(tool: &ProviderTool) -> Option<Value> {
    Some(match tool {
        ProviderTool::WebSearch(options) => web_search(options),
        ProviderTool::WebFetch => json!({ "type": "web_fetch_20250910", "name": "web_fetch" }),
        ProviderTool::CodeExecution => json!({ "type": "code_execution_20250825", "name": "code_execution" }),
        ProviderTool::Raw { tool } => tool.clone(),
        _ => return None,
    })
}

fn web_search(options: &WebSearchOptions) -> Value {
    let domains = |list: &[String]| (!list.is_empty()).then(|| json!(list));
    let fields = [
        ("type", Some("web_search_20250305".into())),
        ("name", Some("web_search".into())),
        ("max_uses", options.max_uses.map(Value::from)),
        ("allowed_domains", domains(&options.allowed_domains)),
        ("blocked_domains", domains(&options.blocked_domains)),
    ];
    let set = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(set.collect::<Map<_, _>>())
}

/// Returns the beta feature that a tool needs.
pub(crate) const fn beta(tool: &ProviderTool) -> Option<&'static str> {
    match tool {
        ProviderTool::WebFetch => Some("web-fetch-2025-09-10"),
        ProviderTool::CodeExecution => Some("code-execution-2025-08-25"),
        _ => None,
    }
}
