//! # Recommended Approach: Option 5 with Progressive Disclosure
//!
//! ```typescript
//! // Minimal loop - just system + tools
//! .loop('Agent', () => ({
//!   system: 'You are a helpful assistant.',
//!   tools: {
//!     search: {
//!       description: 'Search the web',
//!       parameters: z.object({ query: z.string() }),
//!       execute: async ({ query }) => search(query),
//!     },
//!     done: {
//!       description: 'Task complete',
//!       parameters: z.object({}),
//!       execute: async () => ({ done: true }),
//!       exit: true,
//!     },
//!   },
//! }))
//! ```

use positronic_core::model::scripted::Reply;
use positronic_core::prelude::*;
use serde_json::json;

use crate::services::{Query, search_docs};
use crate::{complete, loop_events, start};

fn agent() -> Brain<(), ()> {
    brain("Agent")
        .r#loop("Agent", |cx| {
            cx.system("You are a helpful assistant.")
                .tool("search", |t| {
                    t.description("Search the web").execute(async |Query { query }, _| search_docs(&query).await)
                })
                .tool("done", |t| {
                    t.description("Task complete").exit().execute(async |_: NoArgs, _| Ok(json!({ "done": true })))
                })
        })
        .build()
}

#[tokio::test(start_paused = true)]
async fn minimal_loop_searches_and_is_done() {
    let replies = [Reply::call("search", json!({ "query": "refunds" })), Reply::call("done", json!({}))];
    let run = start(agent(), (), replies).await;

    insta::assert_snapshot!(loop_events(&complete(&run).await), @r#"
    2 Agent LOOP_START "Begin."
    3 Agent/0 LOOP_ITERATION search done
    4 Agent/0 LOOP_MODEL_CALL
    5 Agent/0 LOOP_MODEL_RESULT
    6 Agent/0.0 LOOP_TOOL_CALL search {"query":"refunds"}
    7 Agent/0.0 LOOP_TOOL_START
    8 Agent/0.0 LOOP_TOOL_RESULT ["a page about refunds"]
    9 Agent/1 LOOP_ITERATION
    10 Agent/1 LOOP_MODEL_CALL
    11 Agent/1 LOOP_MODEL_RESULT
    12 Agent/1.0 LOOP_TOOL_CALL done {}
    13 Agent/1.0 LOOP_TOOL_START
    14 Agent/1.0 LOOP_TOOL_RESULT {"done":true}
    15 Agent LOOP_EXIT done at Agent/1.0
    16 Agent LOOP_COMPLETE {"tool":"done","type":"exited"}
    "#);
}
