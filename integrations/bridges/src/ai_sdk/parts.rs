//! The parts of a message that a thing of the run has: a request for an approval, the end of a call, a side output, a question.

use positronic_core::projection::result_text;
use positronic_core::record::{PendingKind, Seq, SideOutput, ToolResult};
use positronic_server::extension::OpenQuestion;
use serde_json::json;

use super::chunk::{Chunk, Data, StreamChunk};
use crate::outputs::{content, status};
use crate::projection::Projection;

/// An approval that is not decided.
pub(super) struct OpenApproval {
    pub(super) call: String,
    pub(super) reason: String,
}

/// Returns the request for an approval, with the reason why the caller may not decide it.
pub(super) fn request(
    question: &str,
    OpenApproval { call, reason }: &OpenApproval,
    refused: Option<&str>,
) -> StreamChunk {
    StreamChunk::Plain(Chunk::ToolApprovalRequest {
        approval_id: question.to_owned(),
        tool_call_id: call.clone(),
        reason: reason.clone(),
        approval_descriptor: refused.map(|refused| json!({ "answerable": false, "refused": refused })),
    })
}

/// Returns what a page has to know of a message: the first event that it does not show, and the usage.
pub(super) fn metadata(projection: &Projection, next: Seq) -> StreamChunk {
    let usage = projection.state().root.as_ref().map(|root| root.usage).filter(|usage| usage.total() > 0);
    let mut message_metadata = json!({ "seq": next.0 });
    if let (Some(usage), Some(fields)) = (usage, message_metadata.as_object_mut()) {
        let usage = json!({ "inputTokens": usage.input, "outputTokens": usage.output, "totalTokens": usage.total() });
        fields.insert("usage".to_owned(), usage);
    }
    StreamChunk::Plain(Chunk::MessageMetadata { message_metadata })
}

/// Returns the end of a call.
pub(super) fn ended(tool_call_id: String, result: ToolResult) -> Chunk {
    match result {
        ToolResult::Success { output, .. } => Chunk::ToolOutputAvailable { tool_call_id, output, dynamic: true },
        ToolResult::Denied { .. } => Chunk::ToolOutputDenied { tool_call_id },
        other => {
            let error_text = format!("{} ({})", result_text(&other), status(&other));
            Chunk::ToolOutputError { tool_call_id, error_text, dynamic: true }
        }
    }
}

/// Returns a side output as a part of data.
pub(super) fn shown(id: &str, message: &str, output: SideOutput) -> Data {
    let (kind, content) = content(id, output);
    Data::new(&kind, message, content)
}

/// Returns a question that is not an approval as a part of data: a person answers it with `answers` of the next request.
pub(super) fn asked(question: &OpenQuestion) -> Option<Data> {
    let data = match &question.pending.kind {
        PendingKind::Approval { .. } => return None,
        PendingKind::Budget(request) => json!({ "status": "waiting", "reason": "budget", "request": request }),
        PendingKind::Answer { waits } => match waits.iter().find(|wait| wait.person) {
            Some(wait) => json!({
                "status": "waiting", "reason": "answer", "prompt": wait.prompt, "schema": wait.schema,
                "answerable": question.refused.is_none(), "refused": question.refused,
            }),
            None => json!({ "status": "waiting", "reason": "webhook", "answerable": false }),
        },
    };
    Some(Data::new("wait", &question.id, data))
}
