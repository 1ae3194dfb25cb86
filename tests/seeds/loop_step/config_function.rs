//! # Core Concept: The Config Function Pattern
//!
//! ```typescript
//! .loop('Agent Name', ({ state, options, resources, brains, webhooks }) => ({
//!   // Config returned here
//! }))
//! ```

use positronic_core::model::scripted::Reply;
use positronic_core::prelude::*;

use crate::{complete, loop_events, start};

fn agent() -> Brain<(), ()> {
    brain("Agent")
        .r#loop("Agent Name", |cx| {
            let (_state, _options, _services, _brains) = (&cx.state, &cx.options, &cx.services, cx.brains());
            cx.system("You are an agent.") // the configuration is returned here
        })
        .build()
}

#[tokio::test(start_paused = true)]
async fn function_returns_the_configuration() {
    let run = start(agent(), (), [Reply::text("Hello.")]).await;

    insta::assert_snapshot!(loop_events(&complete(&run).await), @r#"
    2 Agent Name LOOP_START "Begin."
    3 Agent Name/0 LOOP_ITERATION
    4 Agent Name/0 LOOP_MODEL_CALL
    5 Agent Name/0 LOOP_MODEL_RESULT "Hello."
    6 Agent Name LOOP_COMPLETE {"type":"answered"}
    "#);
}
