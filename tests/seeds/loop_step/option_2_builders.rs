//! # DSL Option 2: Builder Pattern for Tools
//!
//! ```typescript
//! import { tool, exitTool, waitTool } from '@positronic/core';
//!
//! export default brain('Support Agent')
//!   .loop('Handle Request', ({ state, brains, webhooks }) => ({
//!     system: `You are a support agent helping ${state.customer.name}`,
//!
//!     tools: [
//!       tool('search_docs')
//!         .description('Search documentation')
//!         .parameters(z.object({ query: z.string() }))
//!         .execute(async ({ query }) => searchDocs(query)),
//!
//!       tool('send_message')
//!         .description('Send message and wait for response')
//!         .parameters(z.object({ message: z.string() }))
//!         .waitFor(({ message }, { state }) => [
//!           webhooks.slack(state.threadId),
//!         ])
//!         .execute(async ({ message }) => {
//!           await sendMessage(message);
//!           return { messageSent: true };
//!         }),
//!
//!       exitTool('resolve')
//!         .description('Mark the issue as resolved')
//!         .parameters(z.object({ summary: z.string() }))
//!         .execute(async ({ summary }) => ({ resolved: true, summary })),
//!     ],
//!
//!     brains: [brains.refundProcessor, brains.billingHelper],
//!   }));
//! ```
//!
//! A tool as a value names the types of its brain, `Tool::<(), Ticket>`. In the design `exitTool` and `waitTool` are kinds of
//! tools; here they are settings, so that a tool can have both.

use positronic_core::model::scripted::Reply;
use positronic_core::prelude::*;
use serde_json::json;

use crate::services::{
    Letter, Query, Summary, Ticket, open_ticket, refund_processor, search_docs, send, slack, subscription_manager,
};
use crate::{complete, loop_events, pending, start};

fn support() -> Brain<(), Ticket> {
    brain("Support Agent")
        .state(open_ticket())
        .r#loop("Handle Request", |cx| {
            cx.system(format!("You are a support agent helping {}", cx.state.customer.name))
                .tools([
                    Tool::<(), Ticket>::new("search_docs", |t| {
                        t.description("Search documentation")
                            .execute(async |Query { query }, _| search_docs(&query).await)
                    }),
                    Tool::<(), Ticket>::new("send_message", |t| {
                        t.description("Send message and wait for response")
                            .wait(|_: &Letter, cx| [slack().on(&cx.state.customer.slack_thread)])
                            .execute(async |Letter { message }, cx| {
                                send(&cx.state.customer, &message).await?;
                                Ok(json!({ "message_sent": true }))
                            })
                    }),
                    Tool::<(), Ticket>::new("resolve", |t| {
                        t.description("Mark the issue as resolved")
                            .exit()
                            .execute(async |Summary { summary }, _| Ok(json!({ "resolved": true, "summary": summary })))
                    }),
                ])
                .brains([refund_processor().erased(), subscription_manager().erased()])
        })
        .build()
}

#[tokio::test(start_paused = true)]
async fn tools_are_values_that_run_wait_and_exit() {
    let replies = [
        Reply::calls([
            ("search_docs", json!({ "query": "refunds" })),
            ("refund_processor", json!({ "order_id": "A-7" })),
        ]),
        Reply::call("send_message", json!({ "message": "It is paid back." })),
        Reply::call("resolve", json!({ "summary": "paid back" })),
    ];
    let run = start(support(), (), replies).await;

    assert_eq!(pending(&run).await[0].as_str(), "Handle Request/1.0");
    run.webhook("slack", "thread-7", json!({ "text": "Thanks!" })).await.unwrap();

    insta::assert_snapshot!(loop_events(&complete(&run).await), @r#"
    2 Handle Request LOOP_START "Begin."
    3 Handle Request/0 LOOP_ITERATION search_docs send_message resolve refund_processor subscription_manager
    4 Handle Request/0 LOOP_MODEL_CALL
    5 Handle Request/0 LOOP_MODEL_RESULT
    6 Handle Request/0.0 LOOP_TOOL_CALL search_docs {"query":"refunds"}
    7 Handle Request/0.1 LOOP_TOOL_CALL refund_processor {"order_id":"A-7"}
    8 Handle Request/0.0 LOOP_TOOL_START
    9 Handle Request/0.1 LOOP_BRAIN_START Refund Processor {"order_id":"A-7"}
    12 Handle Request/0.0 LOOP_TOOL_RESULT ["a page about refunds"]
    15 Handle Request/0.1 LOOP_BRAIN_COMPLETE {"status":"paid"}
    16 Handle Request/0.1 LOOP_TOOL_RESULT {"status":"paid"}
    17 Handle Request/1 LOOP_ITERATION
    18 Handle Request/1 LOOP_MODEL_CALL
    19 Handle Request/1 LOOP_MODEL_RESULT
    20 Handle Request/1.0 LOOP_TOOL_CALL send_message {"message":"It is paid back."}
    21 Handle Request/1.0 LOOP_TOOL_START
    22 Handle Request/1.0 LOOP_WAIT for slack:thread-7 after {"message_sent":true}
    23 Handle Request/1.0 LOOP_RESUME wait 0: {"text":"Thanks!"}
    24 Handle Request/1.0 LOOP_TOOL_RESULT {"answer":{"text":"Thanks!"},"result":{"message_sent":true}}
    25 Handle Request/2 LOOP_ITERATION
    26 Handle Request/2 LOOP_MODEL_CALL
    27 Handle Request/2 LOOP_MODEL_RESULT
    28 Handle Request/2.0 LOOP_TOOL_CALL resolve {"summary":"paid back"}
    29 Handle Request/2.0 LOOP_TOOL_START
    30 Handle Request/2.0 LOOP_TOOL_RESULT {"resolved":true,"summary":"paid back"}
    31 Handle Request LOOP_EXIT resolve at Handle Request/2.0
    32 Handle Request LOOP_COMPLETE {"tool":"resolve","type":"exited"}
    "#);
}
