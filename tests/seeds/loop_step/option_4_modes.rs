//! # DSL Option 4: Declarative with "Modes"
//!
//! ```typescript
//! export default brain('Support Agent')
//!   .loop('Handle Request', ({ state, brains, webhooks }) => ({
//!     system: 'You are a support agent.',
//!
//!     // Initial mode
//!     mode: 'gathering_info',
//!
//!     modes: {
//!       gathering_info: {
//!         prompt: 'First, understand the customer problem.',
//!         tools: ['ask_clarifying_question', 'search_history'],
//!         canTransitionTo: ['solving', 'escalating'],
//!       },
//!       solving: {
//!         prompt: 'Now solve the problem.',
//!         tools: ['search_docs', 'process_refund', 'update_account'],
//!         canTransitionTo: ['awaiting_response', 'resolved'],
//!       },
//!       awaiting_response: {
//!         prompt: 'Waiting for customer response.',
//!         waitFor: [webhooks.slack(state.threadId)],
//!         canTransitionTo: ['gathering_info', 'solving', 'resolved'],
//!       },
//!       resolved: {
//!         exit: true,
//!       },
//!     },
//!
//!     tools: {
//!       ask_clarifying_question: { /* ... */ },
//!       search_history: { /* ... */ },
//!       search_docs: { /* ... */ },
//!       process_refund: { brain: brains.refundProcessor },
//!       update_account: { /* ... */ },
//!     },
//!   }));
//! ```
//!
//! The sample leads to a mode `escalating` that it does not define; every mode is defined here, or the loop fails.

use positronic_core::model::scripted::Reply;
use positronic_core::prelude::*;
use positronic_plugins::Modes;
use serde_json::json;

use crate::services::{Query, Ticket, open_ticket, refund_processor, search_docs, slack};
use crate::{complete, loop_events, pending, start};

fn support() -> Brain<(), Ticket> {
    brain("Support Agent")
        .state(open_ticket())
        .r#loop("Handle Request", |cx| {
            let modes = Modes::new("gathering_info")
                .mode("gathering_info", |m| {
                    m.prompt("First, understand the customer problem.")
                        .tools(["ask_clarifying_question", "search_history"])
                        .leads_to(["solving", "escalating"])
                })
                .mode("solving", |m| {
                    m.prompt("Now solve the problem.")
                        .tools(["search_docs", "process_refund", "update_account"])
                        .leads_to(["awaiting_response", "resolved"])
                })
                .mode("awaiting_response", |m| {
                    m.prompt("Waiting for customer response.")
                        .wait([slack().on(&cx.state.customer.slack_thread)])
                        .leads_to(["gathering_info", "solving", "resolved"])
                })
                .mode("escalating", |m| m.exit())
                .mode("resolved", |m| m.exit());

            cx.system("You are a support agent.")
                .plugin(modes)
                .tool("ask_clarifying_question", |t| t.execute(async |_: NoArgs, _| Ok("…")))
                .tool("search_history", |t| t.execute(async |_: NoArgs, cx| Ok(cx.state.history.clone())))
                .tool("search_docs", |t| t.execute(async |Query { query }, _| search_docs(&query).await))
                .tool("update_account", |t| t.execute(async |_: NoArgs, _| Ok("…")))
                .brain("process_refund", refund_processor())
        })
        .build()
}

#[tokio::test(start_paused = true)]
async fn modes_offer_their_tools_wait_and_exit() {
    let enter = |mode: &str| Reply::call("mode_enter", json!({ "mode": mode }));
    let replies = [
        Reply::call("search_history", json!({})),
        enter("solving"),
        Reply::call("process_refund", json!({ "order_id": "A-7" })),
        enter("awaiting_response"),
        enter("resolved"),
    ];
    let run = start(support(), (), replies).await;

    assert_eq!(pending(&run).await[0].as_str(), "Handle Request/3.0");
    run.webhook("slack", "thread-7", json!({ "text": "Thanks!" })).await.unwrap();

    insta::assert_snapshot!(loop_events(&complete(&run).await), @r#"
    2 Handle Request LOOP_START "Begin."
    3 Handle Request/0 LOOP_ITERATION ask_clarifying_question search_history mode.enter mode="The mode is `gathering_info`. First, understand the customer problem."
    4 Handle Request/0 LOOP_MODEL_CALL
    5 Handle Request/0 LOOP_MODEL_RESULT
    6 Handle Request/0.0 LOOP_TOOL_CALL search_history {}
    7 Handle Request/0.0 LOOP_TOOL_START
    8 Handle Request/0.0 LOOP_TOOL_RESULT []
    9 Handle Request/1 LOOP_ITERATION
    10 Handle Request/1 LOOP_MODEL_CALL
    11 Handle Request/1 LOOP_MODEL_RESULT
    12 Handle Request/1.0 LOOP_TOOL_CALL mode.enter {"mode":"solving"}
    13 Handle Request/1.0 LOOP_TOOL_START
    14 Handle Request/1.0 LOOP_PLUGIN_CHANGED modes
    15 Handle Request/1.0 LOOP_TOOL_RESULT "the mode is `solving`"
    16 Handle Request/2 LOOP_ITERATION search_docs update_account process_refund mode.enter mode="The mode is `solving`. Now solve the problem."
    17 Handle Request/2 LOOP_MODEL_CALL
    18 Handle Request/2 LOOP_MODEL_RESULT
    19 Handle Request/2.0 LOOP_TOOL_CALL process_refund {"order_id":"A-7"}
    20 Handle Request/2.0 LOOP_BRAIN_START Refund Processor {"order_id":"A-7"}
    25 Handle Request/2.0 LOOP_BRAIN_COMPLETE {"status":"paid"}
    26 Handle Request/2.0 LOOP_TOOL_RESULT {"status":"paid"}
    27 Handle Request/3 LOOP_ITERATION
    28 Handle Request/3 LOOP_MODEL_CALL
    29 Handle Request/3 LOOP_MODEL_RESULT
    30 Handle Request/3.0 LOOP_TOOL_CALL mode.enter {"mode":"awaiting_response"}
    31 Handle Request/3.0 LOOP_TOOL_START
    32 Handle Request/3.0 LOOP_PLUGIN_CHANGED modes
    33 Handle Request/3.0 LOOP_WAIT for slack:thread-7 after "the mode is `awaiting_response`"
    34 Handle Request/3.0 LOOP_RESUME wait 0: {"text":"Thanks!"}
    35 Handle Request/3.0 LOOP_TOOL_RESULT {"answer":{"text":"Thanks!"},"result":"the mode is `awaiting_response`"}
    36 Handle Request/4 LOOP_ITERATION mode.enter mode="The mode is `awaiting_response`. Waiting for customer response."
    37 Handle Request/4 LOOP_MODEL_CALL
    38 Handle Request/4 LOOP_MODEL_RESULT
    39 Handle Request/4.0 LOOP_TOOL_CALL mode.enter {"mode":"resolved"}
    40 Handle Request/4.0 LOOP_TOOL_START
    41 Handle Request/4.0 LOOP_PLUGIN_CHANGED modes
    42 Handle Request/4.0 LOOP_TOOL_RESULT "the mode is `resolved`"
    43 Handle Request LOOP_EXIT mode.enter at Handle Request/4.0
    44 Handle Request LOOP_COMPLETE {"tool":"mode.enter","type":"exited"}
    "#);
}
