//! # DSL Option 3: Skills as First-Class Concept
//!
//! ```typescript
//! export default brain('Support Agent')
//!   .loop('Handle Request', ({ state, brains }) => ({
//!     system: 'You are a helpful support agent.',
//!
//!     // Tools are simple functions the model can call
//!     tools: {
//!       search_docs: {
//!         description: 'Search documentation',
//!         parameters: z.object({ query: z.string() }),
//!         execute: async ({ query }) => searchDocs(query),
//!       },
//!     },
//!
//!     // Skills are higher-level capabilities (could wrap brains, multi-step workflows)
//!     skills: {
//!       process_refund: {
//!         description: 'Handle a customer refund request end-to-end',
//!         brain: brains.refundProcessor,
//!         // Optional: transform state before/after
//!         prepareState: (state) => ({ orderId: state.currentOrder.id }),
//!         handleResult: (state, brainResult) => ({
//!           ...state,
//!           refundStatus: brainResult.status,
//!         }),
//!       },
//!
//!       check_order_status: {
//!         description: 'Look up the status of a customer order',
//!         // Skills can also just be async functions
//!         execute: async ({ orderId }) => await fetchOrderStatus(orderId),
//!         parameters: z.object({ orderId: z.string() }),
//!       },
//!     },
//!
//!     // Exit conditions
//!     exitOn: ['issue_resolved', 'escalated_to_human'],
//!   }));
//! ```
//!
//! `exit_on` names tools that exist, so the two exits of the sample are tools here. They are the same in each iteration, so they follow
//! the loop, and a wrong name in `exit_on` panics when the brain is built.

use positronic_core::model::scripted::Reply;
use positronic_core::prelude::*;
use serde_json::json;

use crate::services::{Order, Query, Ticket, open_ticket, order_status, refund_processor, search_docs};
use crate::{complete, loop_events, start};

fn support() -> Brain<(), Ticket> {
    brain("Support Agent")
        .state(open_ticket())
        .r#loop("Handle Request", |cx| {
            cx.system("You are a helpful support agent.")
                .tool("search_docs", |t| {
                    t.description("Search documentation").execute(async |Query { query }, _| search_docs(&query).await)
                })
                .skill("process_refund", |s| {
                    s.description("Handle a customer refund request end-to-end")
                        .brain(refund_processor())
                        .prepare(|ticket| Order { order_id: ticket.current_order.clone() })
                        .handle_result(|ticket, refund| ticket.refund_status = Some(refund.status))
                })
                .skill("check_order_status", |s| {
                    s.description("Look up the status of a customer order")
                        .execute(async |Order { order_id }, _| order_status(&order_id).await)
                })
        })
        .tools([
            Tool::new("issue_resolved", |t| t.execute(async |_: NoArgs, _| Ok("resolved"))),
            Tool::new("escalated_to_human", |t| t.execute(async |_: NoArgs, _| Ok("escalated"))),
        ])
        .exit_on(["issue_resolved", "escalated_to_human"])
        .build()
}

#[tokio::test(start_paused = true)]
async fn skills_are_brains_and_functions() {
    let replies = [
        Reply::call("search_docs", json!({ "query": "refunds" })),
        Reply::calls([("check_order_status", json!({ "order_id": "A-7" })), ("process_refund", json!({}))]),
        Reply::call("issue_resolved", json!({})),
    ];
    let run = start(support(), (), replies).await;

    insta::assert_snapshot!(loop_events(&complete(&run).await), @r#"
    2 Handle Request LOOP_START "Begin."
    3 Handle Request/0 LOOP_ITERATION issue_resolved escalated_to_human search_docs process_refund check_order_status
    4 Handle Request/0 LOOP_MODEL_CALL
    5 Handle Request/0 LOOP_MODEL_RESULT
    6 Handle Request/0.0 LOOP_TOOL_CALL search_docs {"query":"refunds"}
    7 Handle Request/0.0 LOOP_TOOL_START
    8 Handle Request/0.0 LOOP_TOOL_RESULT ["a page about refunds"]
    9 Handle Request/1 LOOP_ITERATION
    10 Handle Request/1 LOOP_MODEL_CALL
    11 Handle Request/1 LOOP_MODEL_RESULT
    12 Handle Request/1.0 LOOP_TOOL_CALL check_order_status {"order_id":"A-7"}
    13 Handle Request/1.1 LOOP_TOOL_CALL process_refund {}
    14 Handle Request/1.0 LOOP_TOOL_START
    15 Handle Request/1.1 LOOP_BRAIN_START Refund Processor {"order_id":"A-7"}
    18 Handle Request/1.0 LOOP_TOOL_RESULT "sent"
    21 Handle Request/1.1 LOOP_BRAIN_COMPLETE {"status":"paid"}
    22 Handle Request/1.1 LOOP_TOOL_RESULT {"status":"paid"} changes [{"op":"replace","path":"/refund_status","value":"paid"}]
    23 Handle Request/2 LOOP_ITERATION
    24 Handle Request/2 LOOP_MODEL_CALL
    25 Handle Request/2 LOOP_MODEL_RESULT
    26 Handle Request/2.0 LOOP_TOOL_CALL issue_resolved {}
    27 Handle Request/2.0 LOOP_TOOL_START
    28 Handle Request/2.0 LOOP_TOOL_RESULT "resolved"
    29 Handle Request LOOP_EXIT issue_resolved at Handle Request/2.0
    30 Handle Request LOOP_COMPLETE {"tool":"issue_resolved","type":"exited"}
    "#);
    assert_eq!(run.result().await.unwrap().refund_status.as_deref(), Some("paid"));
}
