//! Unwraps the wrapper in which some models put parallel calls.
//!
//! Models that were trained on OpenAI's tools sometimes call an undeclared tool `parallel` or `multi_tool_use.parallel`:
//! `{"tool_uses": [{"recipient_name": "functions.weather", "parameters": {…}}]}`.

use positronic_core::record::{ModelResponse, Part, ProposedCall};
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Wrapped {
    tool_uses: Vec<ToolUse>,
}

#[derive(Deserialize)]
struct ToolUse {
    recipient_name: String,
    /// As the model wrote them: a value would round their numbers.
    #[serde(default)]
    parameters: Option<Box<RawValue>>,
}

/// Replaces each wrapper by its calls, in order. The first keeps the wrapper's id, the others get derived ids.
pub(super) fn unwrap_parallel(response: ModelResponse) -> ModelResponse {
    if !response.calls.iter().any(|call| inner_calls(call).is_some()) {
        return response;
    }
    let mut calls = Vec::new();
    let mut ranges = Vec::new();
    for call in response.calls {
        let first = calls.len();
        match inner_calls(&call) {
            Some(inner) => calls.extend(inner),
            None => calls.push(call),
        }
        ranges.push(first..calls.len());
    }
    let range = |index: u32| usize::try_from(index).ok().and_then(|index| ranges.get(index).cloned());
    let mut parts = Vec::new();
    for part in response.parts {
        match part {
            Part::Call { index } => {
                let inner = range(index).unwrap_or_default().filter_map(|index| u32::try_from(index).ok());
                parts.extend(inner.map(|index| Part::Call { index }));
            }
            other => parts.push(other),
        }
    }
    ModelResponse { parts, calls, ..response }
}

fn inner_calls(call: &ProposedCall) -> Option<Vec<ProposedCall>> {
    if !matches!(call.name.as_str(), "parallel" | "multi_tool_use.parallel" | "multi_tool_use_parallel") {
        return None;
    }
    let wrapped: Wrapped = serde_json::from_str(&call.arguments).ok()?;
    let unwrap = |(index, inner): (usize, ToolUse)| {
        Some(ProposedCall {
            provider_id: call
                .provider_id
                .as_ref()
                .map(|id| if index == 0 { id.clone() } else { format!("{id}_{index}") }),
            name: inner.recipient_name.strip_prefix("functions.")?.to_owned(),
            arguments: inner.parameters.map_or_else(|| "{}".to_owned(), |parameters| parameters.get().to_owned()),
            data: if index == 0 { call.data.clone() } else { None },
        })
    };
    let calls: Vec<_> = wrapped.tool_uses.into_iter().enumerate().map(unwrap).collect::<Option<_>>()?;
    Some(calls).filter(|calls| !calls.is_empty())
}
