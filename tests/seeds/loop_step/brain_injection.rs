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
//! `brains!` makes a struct of the brains, which the services hold. A field has the type of its brain, so a name that does not exist
//! does not compile.

use std::sync::Arc;

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::testing::Test;
use serde_json::json;

use crate::services::{Order, Refund, refund_processor, subscription_manager};
use crate::{complete, loop_events};

positronic_core::brains! {
    /// The brains of the project.
    struct Brains {
        refund_processor: Brain<Order, Refund> = refund_processor(),
        subscription_manager: Brain<Order, String> = subscription_manager(),
    }
}

fn agent() -> Brain<(), (), Brains> {
    brain("Agent")
        .services::<Brains>()
        .r#loop("Agent", |cx| {
            cx.system("Help.")
                .tool("refund", |t| t.brain(&cx.services.refund_processor).description("Process customer refunds"))
        })
        .build()
}

#[tokio::test(start_paused = true)]
async fn brains_of_the_project_are_fields_with_their_types() {
    let brains = Arc::new(Brains::new());
    let model =
        ScriptedModel::new([Reply::call("refund", json!({ "order_id": "A-7" })), Reply::text("It is paid back.")]);
    let test = Test::new(model).map(|runner| runner.brains(brains.bind(&brains)));
    let run = test.start(agent().bind(brains), ()).await;

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
