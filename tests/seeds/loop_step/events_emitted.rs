//! # Events Emitted by Loops
//!
//! ```typescript
//! LOOP_START      // Loop begins
//! LOOP_ITERATION  // Each turn (with state patch)
//! LOOP_TOOL_CALL  // Tool was called
//! LOOP_TOOL_RESULT // Tool returned
//! LOOP_BRAIN_START // Nested brain started
//! LOOP_BRAIN_COMPLETE // Nested brain finished
//! LOOP_WAIT       // Waiting for webhook
//! LOOP_RESUME     // Resumed from webhook
//! LOOP_EXIT       // Loop finished (via exit tool)
//! LOOP_MAX_ITERATIONS // Hit max iterations
//! ```

use positronic_core::model::scripted::Reply;
use positronic_core::prelude::*;
use positronic_core::record::EventKind;
use serde_json::json;

use crate::services::{Letter, Ticket, open_ticket, refund_processor, send, slack};
use crate::{complete, loop_events, pending, start};

fn about_loops(kind: &EventKind) -> Option<&'static str> {
    Some(match kind {
        EventKind::LoopStart { .. } => "loop begins",
        EventKind::LoopIteration(_) => "each turn",
        EventKind::LoopToolCall(_) => "tool was called",
        EventKind::LoopToolResult { .. } => "tool returned",
        EventKind::LoopBrainStart { .. } => "nested brain started",
        EventKind::LoopBrainComplete { .. } => "nested brain finished",
        EventKind::LoopWait { .. } => "waiting for webhook",
        EventKind::LoopResume { .. } => "resumed from webhook",
        EventKind::LoopExit { .. } => "loop finished",
        EventKind::LoopMaxIterations { .. } => "hit max iterations",
        _ => return None, // another event
    })
}

fn agent() -> Brain<(), Ticket> {
    brain("Agent")
        .state(open_ticket())
        .r#loop("Chat", |cx| {
            cx.system("Help.")
                .brain("refund", refund_processor())
                .tool("ask", |t| {
                    t.wait(|_: &Letter, cx| [slack().on(&cx.state.customer.slack_thread)])
                        .execute(async |Letter { message }, cx| send(&cx.state.customer, &message).await)
                })
                .tool("done", |t| t.exit().execute(async |_: NoArgs, _| Ok("done")))
        })
        .r#loop("Review", |cx| {
            cx.system("Review.").max_iterations(1).tool("read", |t| t.execute(async |_: NoArgs, _| Ok("fine")))
        })
        .build()
}

#[tokio::test(start_paused = true)]
async fn loops_emit_the_ten_events() {
    let replies = [
        Reply::calls([("refund", json!({ "order_id": "A-7" })), ("ask", json!({ "message": "Are you happy?" }))]),
        Reply::call("done", json!({})),
        Reply::call("read", json!({})),
    ];
    let run = start(agent(), (), replies).await;
    pending(&run).await;
    run.webhook("slack", "thread-7", json!({ "text": "Yes." })).await.unwrap();

    let story = complete(&run).await;
    insta::assert_snapshot!(loop_events(&story), @r#"
    2 Chat LOOP_START "Begin."
    3 Chat/0 LOOP_ITERATION refund ask done
    4 Chat/0 LOOP_MODEL_CALL
    5 Chat/0 LOOP_MODEL_RESULT
    6 Chat/0.0 LOOP_TOOL_CALL refund {"order_id":"A-7"}
    7 Chat/0.1 LOOP_TOOL_CALL ask {"message":"Are you happy?"}
    8 Chat/0.1 LOOP_TOOL_START
    9 Chat/0.0 LOOP_BRAIN_START Refund Processor {"order_id":"A-7"}
    13 Chat/0.1 LOOP_WAIT for slack:thread-7
    15 Chat/0.0 LOOP_BRAIN_COMPLETE {"status":"paid"}
    16 Chat/0.0 LOOP_TOOL_RESULT {"status":"paid"}
    17 Chat/0.1 LOOP_RESUME wait 0: {"text":"Yes."}
    18 Chat/0.1 LOOP_TOOL_RESULT {"text":"Yes."}
    19 Chat/1 LOOP_ITERATION
    20 Chat/1 LOOP_MODEL_CALL
    21 Chat/1 LOOP_MODEL_RESULT
    22 Chat/1.0 LOOP_TOOL_CALL done {}
    23 Chat/1.0 LOOP_TOOL_START
    24 Chat/1.0 LOOP_TOOL_RESULT "done"
    25 Chat LOOP_EXIT done at Chat/1.0
    26 Chat LOOP_COMPLETE {"tool":"done","type":"exited"}
    27 Review LOOP_START "Begin."
    28 Review/0 LOOP_ITERATION read
    29 Review/0 LOOP_MODEL_CALL
    30 Review/0 LOOP_MODEL_RESULT
    31 Review/0.0 LOOP_TOOL_CALL read {}
    32 Review/0.0 LOOP_TOOL_START
    33 Review/0.0 LOOP_TOOL_RESULT "fine"
    34 Review LOOP_MAX_ITERATIONS 1
    35 Review LOOP_COMPLETE {"type":"max_iterations"}
    "#);
    let mut seen = Vec::new();
    for about in story.log().iter().filter_map(|event| about_loops(&event.kind)) {
        if !seen.contains(&about) {
            seen.push(about);
        }
    }
    assert_eq!(seen.len(), 10, "{seen:?}");
}
