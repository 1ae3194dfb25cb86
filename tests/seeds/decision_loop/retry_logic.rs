//! # 5. Retry Logic with Context
//!
//! ```python
//! for attempt in range(max_retries):
//!     result = execute(action)
//!     if result.success:
//!         return result
//!     # Error is added to state, LLM sees it in next decision
//! ```
//!
//! The engine repeats an action after a transient error; the model sees every other error, and that of the last try.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use positronic_core::model::scripted::Reply;
use positronic_core::prelude::*;
use serde_json::json;

use crate::{complete, loop_events, start};

#[derive(Actions)]
enum Step {
    /// Fetches a page.
    #[action(read_only, retries = 3)]
    Fetch { url: String },
    /// Ends the work.
    #[action(exit)]
    Finish,
}

fn agent(tries: Arc<AtomicU32>) -> Brain<(), ()> {
    brain("Agent")
        .r#loop("Work", move |cx| {
            let tries = Arc::clone(&tries);
            cx.system("Reach the goal.").structured_actions().act(move |step: Step, _| {
                let tries = Arc::clone(&tries);
                async move {
                    match step {
                        Step::Fetch { url } if url.is_empty() => Err(Error::new("there is no such page")),
                        Step::Fetch { .. } if tries.fetch_add(1, Ordering::Relaxed) < 2 => {
                            Err(Error::transient("the server is busy"))
                        }
                        Step::Fetch { url } => Ok(format!("the page {url}")),
                        Step::Finish => Ok("finished".to_owned()),
                    }
                }
            })
        })
        .build()
}

#[tokio::test(start_paused = true)]
async fn transient_errors_are_retried_and_others_are_shown_to_the_model() {
    let replies = [
        Reply::action("This should do.", "fetch", json!({ "url": "" })),
        Reply::action("It needs an address.", "fetch", json!({ "url": "/docs" })),
        Reply::action("I have it.", "finish", json!({})),
    ];
    let run = start(agent(Arc::default()), (), replies).await;

    insta::assert_snapshot!(loop_events(&complete(&run).await), @r#"
    2 Work LOOP_START "Begin."
    3 Work/0 LOOP_ITERATION fetch finish
    4 Work/0 LOOP_MODEL_CALL
    5 Work/0 LOOP_MODEL_RESULT "This should do."
    6 Work/0.0 LOOP_TOOL_CALL fetch {"url":""}
    7 Work/0.0 LOOP_TOOL_START
    8 Work/0.0 LOOP_TOOL_RESULT error: there is no such page
    9 Work/1 LOOP_ITERATION
    10 Work/1 LOOP_MODEL_CALL
    11 Work/1 LOOP_MODEL_RESULT "It needs an address."
    12 Work/1.0 LOOP_TOOL_CALL fetch {"url":"/docs"}
    13 Work/1.0 LOOP_TOOL_START
    14 Work/1.0 LOOP_TOOL_RETRY attempt 0 failed: the server is busy
    15 Work/1.0 LOOP_TOOL_START attempt 1
    16 Work/1.0 LOOP_TOOL_RETRY attempt 1 failed: the server is busy
    17 Work/1.0 LOOP_TOOL_START attempt 2
    18 Work/1.0 LOOP_TOOL_RESULT "the page /docs"
    19 Work/2 LOOP_ITERATION
    20 Work/2 LOOP_MODEL_CALL
    21 Work/2 LOOP_MODEL_RESULT "I have it."
    22 Work/2.0 LOOP_TOOL_CALL finish {}
    23 Work/2.0 LOOP_TOOL_START
    24 Work/2.0 LOOP_TOOL_RESULT "finished"
    25 Work LOOP_EXIT finish at Work/2.0
    26 Work LOOP_COMPLETE {"tool":"finish","type":"exited"}
    "#);
}
