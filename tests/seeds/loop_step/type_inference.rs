//! # Type Inference Considerations
//!
//! ```typescript
//! // State flows through
//! brain('Example')
//!   .step('Init', () => ({ count: 0, name: 'test' }))
//!   .loop('Process', ({ state }) => {
//!     // state is typed as { count: number; name: string }
//!     return {
//!       system: `Processing ${state.name}`,
//!       tools: { /* ... */ },
//!     };
//!   })
//!   .step('After', ({ state }) => {
//!     // state should include any mutations from the loop
//!     return state;
//!   });
//! ```
//!
//! ```typescript
//! tools: {
//!   increment: {
//!     description: 'Increment the counter',
//!     parameters: z.object({}),
//!     execute: async (_, { state }) => {
//!       return {
//!         toolResult: 'Incremented',
//!         state: { ...state, count: state.count + 1 },
//!       };
//!     },
//!   },
//! }
//! ```

use positronic_core::model::scripted::Reply;
use positronic_core::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{complete, loop_events, start};

#[derive(Serialize, Deserialize)]
struct Counter {
    count: u32,
    name: String,
}

fn example() -> Brain<(), Counter> {
    brain("Example")
        .step("Init", async |_| Ok(Counter { count: 0, name: "test".to_owned() }))
        .r#loop("Process", |cx| {
            // `cx.state` derefs to a `Counter`
            cx.system(format!("Processing {}", cx.state.name)).tool("increment", |t| {
                t.description("Increment the counter").execute(async |_: NoArgs, cx| {
                    cx.update(|counter| counter.count += 1);
                    Ok("Incremented")
                })
            })
        })
        .step("After", async |cx| Ok(cx.state)) // with the changes of the loop
        .build()
}

#[tokio::test(start_paused = true)]
async fn calls_of_one_answer_both_count() {
    let replies = [Reply::calls([("increment", json!({})), ("increment", json!({}))]), Reply::text("It is 2.")];
    let run = start(example(), (), replies).await;

    insta::assert_snapshot!(loop_events(&complete(&run).await), @r#"
    4 Process LOOP_START "Begin."
    5 Process/0 LOOP_ITERATION increment
    6 Process/0 LOOP_MODEL_CALL
    7 Process/0 LOOP_MODEL_RESULT
    8 Process/0.0 LOOP_TOOL_CALL increment {}
    9 Process/0.1 LOOP_TOOL_CALL increment {}
    10 Process/0.0 LOOP_TOOL_START
    11 Process/0.1 LOOP_TOOL_START
    12 Process/0.0 LOOP_TOOL_RESULT "Incremented" new state {"count":1,"name":"test"}
    13 Process/0.1 LOOP_TOOL_RESULT "Incremented" new state {"count":2,"name":"test"}
    14 Process/1 LOOP_ITERATION
    15 Process/1 LOOP_MODEL_CALL
    16 Process/1 LOOP_MODEL_RESULT "It is 2."
    17 Process LOOP_COMPLETE {"type":"answered"}
    "#);
    assert_eq!(run.result().await.unwrap().count, 2);
}
