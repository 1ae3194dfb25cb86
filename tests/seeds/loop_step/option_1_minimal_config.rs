//! # DSL Option 1: Minimal Config Object
//!
//! ```typescript
//! import { brain } from '../brain.js';
//! import { slackWebhook, emailWebhook } from './webhooks/index.js';
//! import subTaskBrain from './sub-task.js';
//!
//! export default brain('Support Agent')
//!   .step('Load Context', async ({ state }) => ({
//!     customer: await fetchCustomer(state.customerId),
//!     history: await fetchHistory(state.customerId),
//!   }))
//!   .loop('Handle Request', ({ state, brains, webhooks }) => ({
//!     system: `You are a helpful support agent. Customer: ${state.customer.name}`,
//!
//!     tools: {
//!       search_knowledge_base: {
//!         description: 'Search our help docs',
//!         parameters: z.object({ query: z.string() }),
//!         execute: async ({ query }) => {
//!           return await searchKnowledgeBase(query);
//!         },
//!       },
//!
//!       escalate_to_human: {
//!         description: 'Escalate this ticket to a human agent',
//!         parameters: z.object({ reason: z.string() }),
//!         execute: async ({ reason }) => ({ escalated: true, reason }),
//!         exit: true, // Exits the loop after this tool
//!       },
//!
//!       wait_for_customer: {
//!         description: 'Wait for customer response',
//!         parameters: z.object({ message: z.string() }),
//!         execute: async ({ message }, { state }) => {
//!           await sendToCustomer(message, state.customer);
//!           return {
//!             state: { ...state, waitingForCustomer: true },
//!             waitFor: [
//!               webhooks.slack(state.customer.slackThreadId),
//!               webhooks.email(state.customer.email),
//!             ],
//!           };
//!         },
//!       },
//!     },
//!
//!     // Delegate to sub-brains
//!     brains: {
//!       process_refund: brains.refundProcessor,
//!       update_subscription: brains.subscriptionManager,
//!     },
//!   }))
//!   .step('Wrap Up', ({ state }) => ({
//!     ...state,
//!     resolved: true,
//!     resolvedAt: new Date().toISOString(),
//!   }));
//! ```

use positronic_core::model::scripted::Reply;
use positronic_core::prelude::*;
use serde_json::json;

use crate::services::{
    Customer, Letter, Opened, Query, Reason, Ticket, email, fetch_customer, fetch_history, refund_processor,
    search_docs, send, slack, subscription_manager,
};
use crate::{complete, loop_events, pending, start};

fn support() -> Brain<Opened, Ticket> {
    brain("Support Agent")
        .options::<Opened>()
        .step("Load Context", async |cx| {
            let customer = fetch_customer(&cx.options.customer_id).await?;
            let history = fetch_history(&cx.options.customer_id).await?;
            Ok(Ticket { customer, history, ..Ticket::default() })
        })
        .r#loop("Handle Request", |cx| {
            cx.system(format!("You are a helpful support agent. Customer: {}", cx.state.customer.name))
                .tool("search_knowledge_base", |t| {
                    t.description("Search our help docs").execute(async |Query { query }, _| search_docs(&query).await)
                })
                .tool("escalate_to_human", |t| {
                    t.description("Escalate this ticket to a human agent")
                        .exit() // ends the loop after this tool
                        .execute(async |Reason { reason }, _| Ok(json!({ "escalated": true, "reason": reason })))
                })
                .tool("wait_for_customer", |t| {
                    t.description("Wait for customer response").execute(async |Letter { message }, cx| {
                        let Customer { slack_thread, email: address, .. } = &cx.state.customer;
                        send(&cx.state.customer, &message).await?;
                        cx.update(|ticket| ticket.waiting_for_customer = true);
                        Ok(cx.result("sent").wait_for([slack().on(slack_thread), email().on(address)]))
                    })
                })
                // Delegate to sub-brains
                .brain("process_refund", refund_processor())
                .brain("update_subscription", subscription_manager())
        })
        .step("Wrap Up", async |cx| {
            let resolved_at = Some(cx.now());
            Ok(Ticket { resolved_at, ..cx.state })
        })
        .build()
}

#[tokio::test(start_paused = true)]
async fn agent_searches_delegates_waits_and_escalates() {
    let order = json!({ "order_id": "A-7" });
    let replies = [
        Reply::call("search_knowledge_base", json!({ "query": "refunds" })),
        Reply::calls([("process_refund", order.clone()), ("update_subscription", order)]),
        Reply::call("wait_for_customer", json!({ "message": "Is this what you want?" })),
        Reply::call("escalate_to_human", json!({ "reason": "it is not" })),
    ];
    let run = start(support(), Opened { customer_id: "C-7".to_owned() }, replies).await;

    assert_eq!(pending(&run).await[0].as_str(), "Handle Request/2.0");
    run.webhook("email", "mira@example.com", json!({ "text": "No." })).await.unwrap();

    insta::assert_snapshot!(loop_events(&complete(&run).await), @r#"
    4 Handle Request LOOP_START "Begin."
    5 Handle Request/0 LOOP_ITERATION search_knowledge_base escalate_to_human wait_for_customer process_refund update_subscription
    6 Handle Request/0 LOOP_MODEL_CALL
    7 Handle Request/0 LOOP_MODEL_RESULT
    8 Handle Request/0.0 LOOP_TOOL_CALL search_knowledge_base {"query":"refunds"}
    9 Handle Request/0.0 LOOP_TOOL_START
    10 Handle Request/0.0 LOOP_TOOL_RESULT ["a page about refunds"]
    11 Handle Request/1 LOOP_ITERATION
    12 Handle Request/1 LOOP_MODEL_CALL
    13 Handle Request/1 LOOP_MODEL_RESULT
    14 Handle Request/1.0 LOOP_TOOL_CALL process_refund {"order_id":"A-7"}
    15 Handle Request/1.1 LOOP_TOOL_CALL update_subscription {"order_id":"A-7"}
    16 Handle Request/1.0 LOOP_BRAIN_START Refund Processor {"order_id":"A-7"}
    18 Handle Request/1.1 LOOP_BRAIN_START Subscription Manager {"order_id":"A-7"}
    26 Handle Request/1.0 LOOP_BRAIN_COMPLETE {"status":"paid"}
    27 Handle Request/1.0 LOOP_TOOL_RESULT {"status":"paid"}
    28 Handle Request/1.1 LOOP_BRAIN_COMPLETE "updated"
    29 Handle Request/1.1 LOOP_TOOL_RESULT "updated"
    30 Handle Request/2 LOOP_ITERATION
    31 Handle Request/2 LOOP_MODEL_CALL
    32 Handle Request/2 LOOP_MODEL_RESULT
    33 Handle Request/2.0 LOOP_TOOL_CALL wait_for_customer {"message":"Is this what you want?"}
    34 Handle Request/2.0 LOOP_TOOL_START
    35 Handle Request/2.0 LOOP_WAIT for slack:thread-7 or email:mira@example.com after "sent" changes [{"op":"replace","path":"/waiting_for_customer","value":true}]
    36 Handle Request/2.0 LOOP_RESUME wait 1: {"text":"No."}
    37 Handle Request/2.0 LOOP_TOOL_RESULT {"answer":{"text":"No."},"result":"sent","webhook":"email"}
    38 Handle Request/3 LOOP_ITERATION
    39 Handle Request/3 LOOP_MODEL_CALL
    40 Handle Request/3 LOOP_MODEL_RESULT
    41 Handle Request/3.0 LOOP_TOOL_CALL escalate_to_human {"reason":"it is not"}
    42 Handle Request/3.0 LOOP_TOOL_START
    43 Handle Request/3.0 LOOP_TOOL_RESULT {"escalated":true,"reason":"it is not"}
    44 Handle Request LOOP_EXIT escalate_to_human at Handle Request/3.0
    45 Handle Request LOOP_COMPLETE {"tool":"escalate_to_human","type":"exited"}
    "#);
    let ticket = run.result().await.unwrap();
    assert!(ticket.waiting_for_customer && ticket.resolved_at.is_some(), "{ticket:?}");
}
