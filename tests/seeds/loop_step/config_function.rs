//! # Core Concept: The Config Function Pattern
//!
//! ```typescript
//! .loop('Agent Name', ({ state, options, resources, brains, webhooks }) => ({
//!   // Config returned here
//! }))
//! ```
//!
//! Brains, webhooks and resources of the project are fields of the services, each with its type.

use positronic_core::model::scripted::Reply;
use positronic_core::prelude::*;
use serde_json::json;

use crate::services::{Answer, Opened, Order, Refund, refund_processor};
use crate::{complete, loop_events, pending, start};

positronic_core::brains! {
    /// The brains of the project.
    struct Brains for Shop {
        refund_processor: Brain<Order, Refund> = refund_processor(),
    }
}

positronic_core::webhooks! {
    /// The webhooks of the project.
    struct Webhooks {
        /// A message in a thread.
        slack: Webhook<Answer> = "slack",
    }
}

/// The resources of the project: a missing file does not compile.
struct Resources {
    handbook: &'static str,
}

struct Shop {
    resources: Resources,
    brains: Brains,
    webhooks: Webhooks,
}

fn agent() -> Brain<Opened, u32, Shop> {
    brain("Agent")
        .options::<Opened>()
        .services::<Shop>()
        .state(1)
        .r#loop("Agent Name", |cx| {
            let Shop { resources, brains, webhooks } = &*cx.services;
            let slack = webhooks.slack.clone();
            // The configuration is returned here.
            cx.system(format!(
                "{}Customer {} writes for time {}.",
                resources.handbook, cx.options.customer_id, *cx.state
            ))
            .brain("refund", &brains.refund_processor)
            .tool("ask", |t| {
                t.wait(move |_: &NoArgs, cx| [slack.on(cx.options.customer_id.as_str()).untyped()])
                    .execute(async |_, _| Ok("asked"))
            })
        })
        .build()
}

#[tokio::test(start_paused = true)]
async fn function_gets_what_the_project_has_and_returns_the_configuration() {
    let resources = Resources { handbook: include_str!("handbook.md") };
    let shop = Shop { resources, brains: Brains::new(), webhooks: Webhooks::new() };
    let replies = [Reply::call("ask", json!({})), Reply::text("Hello.")];
    let run = start(agent().bind(shop), Opened { customer_id: "C-7".to_owned() }, replies).await;

    assert_eq!(pending(&run).await[0].as_str(), "Agent Name/0.0");
    run.webhook("slack", "C-7", json!({ "text": "Hi!" })).await.unwrap();

    let story = complete(&run).await;
    let begun = story.events();
    assert!(begun.contains("Money comes back within 14 days.\\nCustomer C-7 writes for time 1."), "{begun}");
    insta::assert_snapshot!(loop_events(&story), @r#"
    2 Agent Name LOOP_START "Begin."
    3 Agent Name/0 LOOP_ITERATION refund ask
    4 Agent Name/0 LOOP_MODEL_CALL
    5 Agent Name/0 LOOP_MODEL_RESULT
    6 Agent Name/0.0 LOOP_TOOL_CALL ask {}
    7 Agent Name/0.0 LOOP_TOOL_START
    8 Agent Name/0.0 LOOP_WAIT for slack:C-7 after "asked"
    9 Agent Name/0.0 LOOP_RESUME wait 0: {"text":"Hi!"}
    10 Agent Name/0.0 LOOP_TOOL_RESULT {"answer":{"text":"Hi!"},"result":"asked"}
    11 Agent Name/1 LOOP_ITERATION
    12 Agent Name/1 LOOP_MODEL_CALL
    13 Agent Name/1 LOOP_MODEL_RESULT "Hello."
    14 Agent Name LOOP_COMPLETE {"type":"answered"}
    "#);
}
