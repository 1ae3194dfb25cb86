//! # Approval as a tool result state
//!
//! ```typescript
//! const dangerousTool = createTool({
//!   id: 'system.delete-data',
//!   requireApproval: { required: true, reason: 'This will permanently delete data.' },
//!   // ...
//! });
//!
//! const conditionalTool = createTool({
//!   id: 'payment.send',
//!   requireApproval: async ({ input }) => ({
//!     required: input.amount > 100,
//!     reason: `Sending $${input.amount} requires approval.`,
//!   }),
//!   // ...
//! });
//! ```

use positronic_core::model::scripted::Reply;
use positronic_core::prelude::*;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::{complete, loop_events, pending, start};

#[derive(Deserialize, JsonSchema)]
struct Payment {
    amount: u32,
}

fn dangerous_tool() -> Tool {
    Tool::new("system.delete-data", |t| {
        t.requires_approval("This will permanently delete data.").execute(async |_: NoArgs, _| Ok("deleted"))
    })
}

fn conditional_tool() -> Tool {
    Tool::new("payment.send", |t| {
        t.approval(|payment: &Payment, _| {
            let amount = payment.amount;
            async move { (amount > 100).then(|| format!("Sending ${amount} requires approval.")) }
        })
        .execute(async |Payment { amount }, _| Ok(amount))
    })
}

#[tokio::test(start_paused = true)]
async fn people_decide_on_the_calls_that_need_it() {
    let agent = brain("Agent").r#loop("Work", |cx| cx.system("Help.").tools([dangerous_tool(), conditional_tool()]));
    let replies = [
        Reply::calls([
            ("payment_send", json!({ "amount": 100 })),
            ("payment_send", json!({ "amount": 250 })),
            ("system_delete-data", json!({})),
        ]),
        Reply::text("Both amounts are sent, and the data is still there."),
    ];
    let run = start(agent, (), replies).await;

    let calls = pending(&run).await;
    run.approve(&calls[0], "ann").await.unwrap();
    run.reject(&calls[1], "we need it", "ann").await.unwrap();

    insta::assert_snapshot!(loop_events(&complete(&run).await), @r#"
    2 Work LOOP_START "Begin."
    3 Work/0 LOOP_ITERATION system.delete-data payment.send
    4 Work/0 LOOP_MODEL_CALL
    5 Work/0 LOOP_MODEL_RESULT
    6 Work/0.0 LOOP_TOOL_CALL payment.send {"amount":100}
    7 Work/0.1 LOOP_TOOL_CALL payment.send {"amount":250}
    8 Work/0.2 LOOP_TOOL_CALL system.delete-data {}
    9 Work/0.0 LOOP_TOOL_START
    10 Work/0.1 LOOP_APPROVAL_REQUESTED "Sending $250 requires approval."
    11 Work/0.2 LOOP_APPROVAL_REQUESTED "This will permanently delete data."
    12 Work/0.0 LOOP_TOOL_RESULT 100
    13 Work/0.1 LOOP_APPROVAL_DECIDED Approved
    14 Work/0.2 LOOP_APPROVAL_DECIDED Rejected "we need it"
    15 Work/0.2 LOOP_TOOL_RESULT {"by":"ann","cause":"rejected","reason":"we need it","type":"denied"}
    16 Work/0.1 LOOP_TOOL_START
    17 Work/0.1 LOOP_TOOL_RESULT 250
    18 Work/1 LOOP_ITERATION
    19 Work/1 LOOP_MODEL_CALL
    20 Work/1 LOOP_MODEL_RESULT "Both amounts are sent, and the data is still there."
    21 Work LOOP_COMPLETE {"type":"answered"}
    "#);
}
