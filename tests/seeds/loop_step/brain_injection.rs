//! # Brain Injection Pattern
//!
//! ```typescript
//! // In positronic.config.ts or similar
//! export const brains = {
//!   refundProcessor: refundBrain,
//!   subscriptionManager: subscriptionBrain,
//!   billingHelper: billingBrain,
//! };
//!
//! // The loop receives these
//! .loop('Agent', ({ brains }) => ({
//!   brains: {
//!     refund: {
//!       brain: brains.refundProcessor, // Type-safe reference
//!       description: 'Process customer refunds',
//!     },
//!   },
//! }))
//! ```
//!
//! A function that returns the brain is the type-safe reference, as in the options. A brain that is only known by its title is
//! found at run time, so the closure can fail.

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::testing::Test;
use serde_json::json;

use crate::services::{refund_processor, subscription_manager};
use crate::{complete, loop_events};

fn agent() -> Brain<(), ()> {
    brain("Agent")
        .r#loop("Agent", |cx| {
            let refund = cx.brains().find("Refund Processor")?;
            Ok(cx.system("Help.").tool("refund", |t| t.brain(refund).description("Process customer refunds")))
        })
        .build()
}

#[tokio::test(start_paused = true)]
async fn brains_of_the_project_are_found_by_title() {
    let model =
        ScriptedModel::new([Reply::call("refund", json!({ "order_id": "A-7" })), Reply::text("It is paid back.")]);
    let test = Test::new(model).map(|runner| runner.brain(refund_processor()).brain(subscription_manager()));
    let run = test.start(agent(), ()).await;

    insta::assert_snapshot!(loop_events(&complete(&run).await), @r#"
    2 Agent LOOP_START "Begin."
    3 Agent/0 LOOP_ITERATION refund
    4 Agent/0 LOOP_MODEL_CALL
    5 Agent/0 LOOP_MODEL_RESULT
    6 Agent/0.0 LOOP_TOOL_CALL refund {"order_id":"A-7"}
    7 Agent/0.0 LOOP_BRAIN_START Refund Processor {"order_id":"A-7"}
    12 Agent/0.0 LOOP_BRAIN_COMPLETE {"status":"paid"}
    13 Agent/0.0 LOOP_TOOL_RESULT {"status":"paid"}
    14 Agent/1 LOOP_ITERATION
    15 Agent/1 LOOP_MODEL_CALL
    16 Agent/1 LOOP_MODEL_RESULT "It is paid back."
    17 Agent LOOP_COMPLETE {"type":"answered"}
    "#);
}
