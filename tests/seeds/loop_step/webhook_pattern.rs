//! # Webhook Pattern for Loops
//!
//! ```typescript
//! // Inside a tool's execute function, you can also return waitFor directly:
//! execute: async ({ message }, { state, webhooks }) => {
//!   await sendMessage(message);
//!   return {
//!     toolResult: { sent: true },
//!     waitFor: [webhooks.slack(state.threadId)],
//!   };
//! }
//!
//! // Or use the declarative `wait` property on the tool config:
//! wait: ({ state }) => [webhooks.slack(state.threadId)]
//! ```

use positronic_core::model::scripted::Reply;
use positronic_core::prelude::*;
use serde_json::json;

use crate::services::{Letter, Ticket, open_ticket, send, slack};
use crate::{complete, loop_events, pending, start};

fn agent() -> Brain<(), Ticket> {
    brain("Agent")
        .state(open_ticket())
        .r#loop("Chat", |cx| {
            cx.system("Help.")
                .tool("send", |t| {
                    t.execute(async |Letter { message }, cx| {
                        send(&cx.state.customer, &message).await?;
                        Ok(cx.result(json!({ "sent": true })).wait_for([slack().on(&cx.state.customer.slack_thread)]))
                    })
                })
                .tool("ask", |t| {
                    t.wait(|_: &Letter, cx| [slack().on(&cx.state.customer.slack_thread)])
                        .execute(async |Letter { message }, cx| send(&cx.state.customer, &message).await)
                })
        })
        .build()
}

#[tokio::test(start_paused = true)]
async fn tool_returns_its_waits_or_declares_them() {
    let replies = ["send", "ask"].map(|tool| Reply::call(tool, json!({ "message": "How are you?" })));
    let run = start(agent(), (), replies.into_iter().chain([Reply::text("They are well.")])).await;

    for call in ["Chat/0.0", "Chat/1.0"] {
        assert_eq!(pending(&run).await[0].as_str(), call);
        run.webhook("slack", "thread-7", json!({ "text": "Well." })).await.unwrap();
    }

    insta::assert_snapshot!(loop_events(&complete(&run).await), @r#"
    2 Chat LOOP_START "Begin."
    3 Chat/0 LOOP_ITERATION send ask
    4 Chat/0 LOOP_MODEL_CALL
    5 Chat/0 LOOP_MODEL_RESULT
    6 Chat/0.0 LOOP_TOOL_CALL send {"message":"How are you?"}
    7 Chat/0.0 LOOP_TOOL_START
    8 Chat/0.0 LOOP_WAIT for slack:thread-7 after {"sent":true}
    9 Chat/0.0 LOOP_RESUME wait 0: {"text":"Well."}
    10 Chat/0.0 LOOP_TOOL_RESULT {"answer":{"text":"Well."},"result":{"sent":true}}
    11 Chat/1 LOOP_ITERATION
    12 Chat/1 LOOP_MODEL_CALL
    13 Chat/1 LOOP_MODEL_RESULT
    14 Chat/1.0 LOOP_TOOL_CALL ask {"message":"How are you?"}
    15 Chat/1.0 LOOP_TOOL_START
    16 Chat/1.0 LOOP_WAIT for slack:thread-7
    17 Chat/1.0 LOOP_RESUME wait 0: {"text":"Well."}
    18 Chat/1.0 LOOP_TOOL_RESULT {"text":"Well."}
    19 Chat/2 LOOP_ITERATION
    20 Chat/2 LOOP_MODEL_CALL
    21 Chat/2 LOOP_MODEL_RESULT "They are well."
    22 Chat LOOP_COMPLETE {"type":"answered"}
    "#);
}
