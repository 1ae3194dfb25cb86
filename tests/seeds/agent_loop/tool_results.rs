//! # Tool results — three states
//!
//! ```typescript
//! type PromptOutputToolResult =
//!   | { type: 'success'; output: unknown }
//!   | { type: 'error'; error: unknown }
//!   | { type: 'pending'; reason: string };   // Waiting for human approval
//! ```
//!
//! A call that waits for a person has no result yet. Its entry stays where it is, with the question and, later, the decision.

use positronic_core::model::scripted::Reply;
use positronic_core::prelude::*;
use positronic_core::record::{CallState, OutputKind, Prompt, ToolOutput, ToolResult};
use serde_json::json;

use crate::{complete, loop_events, pending, prompt, start};

fn show(call: &ToolOutput) -> String {
    match (&call.result, &call.approval) {
        (Some(ToolResult::Success { output, .. }), _) => format!("success: {output}"),
        (Some(ToolResult::Error { message }), _) => format!("error: {message}"),
        (None, Some(approval)) if call.state == CallState::Pending => format!("pending: {}", approval.reason),
        _ => "denied, skipped, interrupted or running".to_owned(),
    }
}

fn agent() -> Brain<(), ()> {
    brain("Agent")
        .r#loop("Work", |cx| {
            cx.system("Help.")
                .tool("look", |t| t.execute(async |_: NoArgs, _| Err::<(), _>(Error::new("it is dark"))))
                .tool("delete", |t| {
                    t.requires_approval("It cannot be undone.").execute(async |_: NoArgs, _| Ok("deleted"))
                })
        })
        .build()
}

fn shown(prompt: &Prompt) -> Vec<String> {
    let calls = prompt.output.iter().filter_map(|output| match &output.kind {
        OutputKind::Tool(call) => Some(show(call)),
        _ => None,
    });
    calls.collect()
}

#[tokio::test(start_paused = true)]
async fn approved_call_changes_from_pending_to_success_in_place() {
    let replies = [Reply::calls([("delete", json!({})), ("look", json!({}))]), Reply::text("It is deleted.")];
    let run = start(agent(), (), replies).await;

    let call = pending(&run).await.remove(0);
    assert_eq!(shown(&prompt(&run))[0], "pending: It cannot be undone.");
    run.approve(&call, "ann").await.unwrap();

    insta::assert_snapshot!(loop_events(&complete(&run).await), @r#"
    2 Work LOOP_START "Begin."
    3 Work/0 LOOP_ITERATION look delete
    4 Work/0 LOOP_MODEL_CALL
    5 Work/0 LOOP_MODEL_RESULT
    6 Work/0.0 LOOP_TOOL_CALL delete {}
    7 Work/0.1 LOOP_TOOL_CALL look {}
    8 Work/0.0 LOOP_APPROVAL_REQUESTED "It cannot be undone."
    9 Work/0.0 LOOP_APPROVAL_DECIDED Approved
    10 Work/0.0 LOOP_TOOL_START
    11 Work/0.1 LOOP_TOOL_START
    12 Work/0.0 LOOP_TOOL_RESULT "deleted"
    13 Work/0.1 LOOP_TOOL_RESULT error: it is dark
    14 Work/1 LOOP_ITERATION
    15 Work/1 LOOP_MODEL_CALL
    16 Work/1 LOOP_MODEL_RESULT "It is deleted."
    17 Work LOOP_COMPLETE {"type":"answered"}
    "#);
    assert_eq!(shown(&prompt(&run)), ["success: \"deleted\"", "error: it is dark"]);
}
