//! What a model reads of a call's result.

use serde_json::Value;

use crate::record::{DenialCause, ToolResult};

/// Returns the text of a result for the model.
#[must_use]
pub fn result_text(result: &ToolResult) -> String {
    match result {
        ToolResult::Success { brief: Some(brief), .. } => brief.clone(),
        ToolResult::Success { output: Value::String(text), .. } => text.clone(),
        ToolResult::Success { output, .. } => output.to_string(),
        ToolResult::Error { message } => format!("Error: {message}"),
        ToolResult::Denied { cause: Some(cause), reason, .. } => denial_text(*cause, reason.as_deref()),
        // The sentences of logs without causes, whose requests are rebuilt byte for byte.
        ToolResult::Denied { cause: None, reason: Some(reason), .. } => {
            format!("Denied: a person refused this call: {reason}")
        }
        ToolResult::Denied { cause: None, reason: None, .. } => "Denied: a person refused this call.".to_owned(),
        ToolResult::Skipped { reason } => format!("Skipped: {reason}"),
        ToolResult::Interrupted { reason } => format!("Interrupted: {reason}"),
    }
}

fn denial_text(cause: DenialCause, reason: Option<&str>) -> String {
    match (cause, reason) {
        (DenialCause::Rejected, Some(reason)) => format!("Not run: a person rejected this call: {reason}"),
        (DenialCause::Rejected, None) => "Not run: a person rejected this call.".to_owned(),
        (DenialCause::Expired, _) => "Not run: the approval expired.".to_owned(),
        (DenialCause::Repeated, _) => {
            "Not run: a person rejected an identical call before. Do not repeat it.".to_owned()
        }
    }
}
