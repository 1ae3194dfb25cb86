//! Tools of the provider in requests.

use positronic_core::record::{ModelError, ModelErrorKind, ModelRequest, ProviderTool, ToolChoice};
use serde_json::{Value, json};

/// Checks that the API has the tools of the provider that a request offers, with their options.
pub(crate) fn check(provider: &str, request: &ModelRequest) -> Result<(), ModelError> {
    let refuse = |sentence: String| Err(ModelError::new(ModelErrorKind::Unsupported, sentence));
    let settings = &*request.settings;
    for tool in &settings.provider_tools {
        let name = tool.name();
        if declaration(tool).is_none() {
            let advice = match tool {
                ProviderTool::ImageGeneration => {
                    "choose a model that makes pictures, such as `gemini-2.5-flash-image`, and set `response_modalities`"
                }
                _ => "leave it out, or choose a model of another provider",
            };
            return refuse(format!("the API of `{provider}` has no tool `{name}`; {advice}"));
        }
        if let ProviderTool::WebSearch(options) = tool {
            let set = [
                ("max_uses", options.max_uses.is_some()),
                ("allowed_domains", !options.allowed_domains.is_empty()),
                ("blocked_domains", !options.blocked_domains.is_empty()),
            ];
            if let Some((option, _)) = set.iter().find(|(_, is_set)| *is_set) {
                return refuse(format!(
                    "a web search of the API of `{provider}` has no option `{option}`; leave it out"
                ));
            }
        }
    }
    let has_only_provided = request.tools.tools().is_empty() && !settings.provider_tools.is_empty();
    if has_only_provided && settings.tool_choice == ToolChoice::Required {
        return refuse(format!(
            "the API of `{provider}` cannot require its own tools; let the model choose, or add a tool to the brain"
        ));
    }
    Ok(())
}

/// Returns the encoded declarations of a request's tools. A model that may not call tools gets none, since the mode of function
/// calls does not apply to them.
pub(crate) fn encode(tools: &[ProviderTool], choice: ToolChoice) -> Vec<String> {
    if choice == ToolChoice::None {
        return Vec::new();
    }
    tools.iter().filter_map(declaration).map(|tool| tool.to_string()).collect()
}

/// Returns the declaration of a tool in the words of the API; `None` if the API does not have it.
fn declaration(tool: &ProviderTool) -> Option<Value> {
    Some(match tool {
        ProviderTool::WebSearch(_) => json!({ "googleSearch": {} }),
        ProviderTool::WebFetch => json!({ "urlContext": {} }),
        ProviderTool::CodeExecution => json!({ "codeExecution": {} }),
        ProviderTool::Raw { tool } => tool.clone(),
        _ => return None,
    })
}
