//! # DSL Option 5: Streamlined with Sensible Defaults (Recommended)
//!
//! ```typescript
//! import { brain } from '../brain.js';
//! import { z } from 'zod';
//!
//! export default brain('Support Agent')
//!   .step('Initialize', async ({ state }) => ({
//!     customer: await fetchCustomer(state.customerId),
//!     conversationHistory: [],
//!   }))
//!
//!   .loop('Chat', ({ state, options, brains, webhooks }) => ({
//!     // System prompt - the agent's persona and context
//!     system: `
//!       You are a friendly support agent for Acme Corp.
//!       Customer: ${state.customer.name}
//!       Account type: ${state.customer.tier}
//!
//!       Be helpful, concise, and professional.
//!     `,
//!
//!     // Tools the agent can use
//!     tools: {
//!       search_knowledge_base: {
//!         description: 'Search our help documentation',
//!         parameters: z.object({
//!           query: z.string().describe('Search query'),
//!         }),
//!         execute: async ({ query }) => {
//!           const results = await searchKB(query);
//!           return results.map(r => r.summary).join('\n');
//!         },
//!       },
//!
//!       check_order_status: {
//!         description: 'Look up a customer order',
//!         parameters: z.object({
//!           orderId: z.string(),
//!         }),
//!         execute: async ({ orderId }) => {
//!           return await getOrderStatus(orderId);
//!         },
//!       },
//!
//!       send_response: {
//!         description: 'Send a message to the customer and wait for their reply',
//!         parameters: z.object({
//!           message: z.string().describe('Message to send'),
//!         }),
//!         execute: async ({ message }, { state }) => {
//!           await sendSlackMessage(state.customer.slackThread, message);
//!           return { sent: true };
//!         },
//!         // This tool triggers a wait
//!         wait: ({ state }) => [
//!           webhooks.slack(state.customer.slackThread),
//!         ],
//!       },
//!
//!       resolve_ticket: {
//!         description: 'Mark the support ticket as resolved',
//!         parameters: z.object({
//!           resolution: z.string().describe('Summary of how the issue was resolved'),
//!         }),
//!         execute: async ({ resolution }, { state }) => {
//!           await updateTicket(state.ticketId, { status: 'resolved', resolution });
//!           return { resolved: true };
//!         },
//!         // This tool exits the loop
//!         exit: true,
//!       },
//!
//!       escalate: {
//!         description: 'Escalate to a human agent',
//!         parameters: z.object({
//!           reason: z.string(),
//!         }),
//!         execute: async ({ reason }, { state }) => {
//!           await escalateTicket(state.ticketId, reason);
//!           return { escalated: true };
//!         },
//!         exit: true,
//!       },
//!     },
//!
//!     // Brains this agent can delegate to (exposed as tools automatically)
//!     brains: {
//!       process_refund: {
//!         brain: brains.refundProcessor,
//!         description: 'Process a refund for the customer',
//!         // Optional: map state in/out
//!         mapInput: (state) => ({ orderId: state.currentOrderId }),
//!         mapOutput: (state, result) => ({ ...state, refundResult: result }),
//!       },
//!     },
//!
//!     // Optional: Max iterations before auto-exit (safety valve)
//!     maxIterations: 50,
//!
//!     // Optional: What happens when max iterations reached
//!     onMaxIterations: 'exit', // or 'error'
//!   }))
//!
//!   .step('Cleanup', ({ state }) => ({
//!     ...state,
//!     completedAt: new Date().toISOString(),
//!   }));
//! ```

use positronic_core::model::scripted::Reply;
use positronic_core::prelude::*;
use serde_json::json;

use crate::services::{
    Letter, Opened, Order, Query, Reason, Summary, Ticket, fetch_customer, open_ticket, order_status, refund_processor,
    search_docs, send, slack, update_ticket,
};
use crate::{complete, loop_events, pending, start};

fn support() -> Brain<Opened, Ticket> {
    brain! {
        "Support Agent"
        .options::<Opened>()
        .step("Initialize", async |cx| {
            let customer = fetch_customer(&cx.options.customer_id).await?;
            Ok(Ticket { customer, ..open_ticket() })
        })
        .loop("Chat", |cx| {
            // The system prompt: the agent's persona and context
            cx.system(format!(
                "You are a friendly support agent for Acme Corp.\nCustomer: {}\nAccount type: {}\n\n\
                 Be helpful, concise, and professional.",
                cx.state.customer.name, cx.state.customer.tier
            ))
            // The tools that the agent can use
            .tool("search_knowledge_base", |t| {
                t.description("Search our help documentation")
                    .execute(async |Query { query }, _| Ok(search_docs(&query).await?.join("\n")))
            })
            .tool("check_order_status", |t| {
                t.description("Look up a customer order")
                    .execute(async |Order { order_id }, _| order_status(&order_id).await)
            })
            .tool("send_response", |t| {
                t.description("Send a message to the customer and wait for their reply")
                    // This tool waits, and the payload changes the state
                    .wait(|_: &Letter, cx| {
                        [slack().on(&cx.state.customer.slack_thread).resume(|ticket, answer| ticket.history.push(answer.text))]
                    })
                    .execute(async |Letter { message }, cx| {
                        send(&cx.state.customer, &message).await?;
                        Ok(json!({ "sent": true }))
                    })
            })
            .tool("resolve_ticket", |t| {
                t.description("Mark the support ticket as resolved")
                    .exit() // this tool ends the loop
                    .execute(async |Summary { summary }, cx| {
                        update_ticket(&cx.state.customer, &summary).await?;
                        Ok(json!({ "resolved": true }))
                    })
            })
            .tool("escalate", |t| {
                t.description("Escalate to a human agent").exit().execute(async |Reason { reason }, cx| {
                    update_ticket(&cx.state.customer, &reason).await?;
                    Ok(json!({ "escalated": true }))
                })
            })
            // The brains that the agent can delegate to
            .tool("process_refund", |t| {
                t.brain(refund_processor()).description("Process a refund for the customer")
                    .map_input(|ticket| Order { order_id: ticket.current_order.clone() })
                    .map_output(|ticket, refund| ticket.refund_status = Some(refund.status))
            })
            .max_iterations(50)
            .on_max_iterations(OnLimit::Exit) // or `OnLimit::Error`
        })
        .step("Cleanup", async |cx| {
            let resolved_at = Some(cx.now());
            Ok(Ticket { resolved_at, ..cx.state })
        })
        .build()
    }
}

#[tokio::test(start_paused = true)]
async fn support_agent_answers_refunds_and_resolves() {
    let replies = [
        Reply::calls([
            ("search_knowledge_base", json!({ "query": "refunds" })),
            ("check_order_status", json!({ "order_id": "A-7" })),
        ]),
        Reply::call("send_response", json!({ "message": "Shall I pay it back?" })),
        Reply::call("process_refund", json!({})),
        Reply::call("resolve_ticket", json!({ "summary": "paid back" })),
    ];
    let run = start(support(), Opened { customer_id: "C-7".to_owned() }, replies).await;

    assert_eq!(pending(&run).await[0].as_str(), "Chat/1.0");
    run.webhook("slack", "thread-7", json!({ "text": "Yes, please." })).await.unwrap();

    insta::assert_snapshot!(loop_events(&complete(&run).await), @r#"
    4 Chat LOOP_START "Begin."
    5 Chat/0 LOOP_ITERATION search_knowledge_base check_order_status send_response resolve_ticket escalate process_refund
    6 Chat/0 LOOP_MODEL_CALL
    7 Chat/0 LOOP_MODEL_RESULT
    8 Chat/0.0 LOOP_TOOL_CALL search_knowledge_base {"query":"refunds"}
    9 Chat/0.1 LOOP_TOOL_CALL check_order_status {"order_id":"A-7"}
    10 Chat/0.0 LOOP_TOOL_START
    11 Chat/0.1 LOOP_TOOL_START
    12 Chat/0.0 LOOP_TOOL_RESULT "a page about refunds"
    13 Chat/0.1 LOOP_TOOL_RESULT "sent"
    14 Chat/1 LOOP_ITERATION
    15 Chat/1 LOOP_MODEL_CALL
    16 Chat/1 LOOP_MODEL_RESULT
    17 Chat/1.0 LOOP_TOOL_CALL send_response {"message":"Shall I pay it back?"}
    18 Chat/1.0 LOOP_TOOL_START
    19 Chat/1.0 LOOP_WAIT for slack:thread-7 after {"sent":true}
    20 Chat/1.0 LOOP_RESUME wait 0: {"text":"Yes, please."}
    21 Chat/1.0 LOOP_TOOL_RESULT {"answer":{"text":"Yes, please."},"result":{"sent":true}} changes [{"op":"add","path":"/history/0","value":"Yes, please."}]
    22 Chat/2 LOOP_ITERATION
    23 Chat/2 LOOP_MODEL_CALL
    24 Chat/2 LOOP_MODEL_RESULT
    25 Chat/2.0 LOOP_TOOL_CALL process_refund {}
    26 Chat/2.0 LOOP_BRAIN_START Refund Processor {"order_id":"A-7"}
    31 Chat/2.0 LOOP_BRAIN_COMPLETE {"status":"paid"}
    32 Chat/2.0 LOOP_TOOL_RESULT {"status":"paid"} changes [{"op":"replace","path":"/refund_status","value":"paid"}]
    33 Chat/3 LOOP_ITERATION
    34 Chat/3 LOOP_MODEL_CALL
    35 Chat/3 LOOP_MODEL_RESULT
    36 Chat/3.0 LOOP_TOOL_CALL resolve_ticket {"summary":"paid back"}
    37 Chat/3.0 LOOP_TOOL_START
    38 Chat/3.0 LOOP_TOOL_RESULT {"resolved":true}
    39 Chat LOOP_EXIT resolve_ticket at Chat/3.0
    40 Chat LOOP_COMPLETE {"tool":"resolve_ticket","type":"exited"}
    "#);
    let ticket = run.result().await.unwrap();
    assert_eq!((ticket.history, ticket.refund_status), (vec!["Yes, please.".to_owned()], Some("paid".to_owned())));
}

#[tokio::test(start_paused = true)]
async fn escalation_ends_the_loop_too() {
    let replies = [Reply::call("escalate", json!({ "reason": "the customer is angry" }))];
    let run = start(support(), Opened { customer_id: "C-7".to_owned() }, replies).await;

    insta::assert_snapshot!(loop_events(&complete(&run).await), @r#"
    4 Chat LOOP_START "Begin."
    5 Chat/0 LOOP_ITERATION search_knowledge_base check_order_status send_response resolve_ticket escalate process_refund
    6 Chat/0 LOOP_MODEL_CALL
    7 Chat/0 LOOP_MODEL_RESULT
    8 Chat/0.0 LOOP_TOOL_CALL escalate {"reason":"the customer is angry"}
    9 Chat/0.0 LOOP_TOOL_START
    10 Chat/0.0 LOOP_TOOL_RESULT {"escalated":true}
    11 Chat LOOP_EXIT escalate at Chat/0.0
    12 Chat LOOP_COMPLETE {"tool":"escalate","type":"exited"}
    "#);
}
