//! # 3. Parallel Execution
//!
//! ```python
//! if decision.allows_parallel():
//!     results = asyncio.gather(*[execute(a) for a in actions])
//! ```
//!
//! One of the actions has to end the loop, so the report does.

use positronic_core::model::scripted::Reply;
use positronic_core::prelude::*;
use serde_json::json;

use crate::services::search_docs;
use crate::{complete, loop_events, start};

/// Searches the documentation.
#[tool(read_only)]
async fn search(query: String) -> Result<Vec<String>> {
    search_docs(&query).await
}

/// Sends a report, never at the same time as another tool.
#[tool(sequential, exit)]
async fn report(text: String) -> Result<usize> {
    Ok(text.len())
}

fn agent() -> Brain<(), ()> {
    brain("Agent")
        .r#loop("Work", |cx| {
            cx.system("Reach the goal.").structured_actions_in_batches().parallel(4).tools([search(), report()])
        })
        .build()
}

#[tokio::test(start_paused = true)]
async fn actions_of_an_answer_run_at_once_unless_they_are_sequential() {
    let actions = [
        ("search", json!({ "query": "refunds" })),
        ("search", json!({ "query": "returns" })),
        ("report", json!({ "text": "30 days" })),
    ];
    let run = start(agent(), (), [Reply::actions("Both, then the report.", actions)]).await;

    insta::assert_snapshot!(loop_events(&complete(&run).await), @r#"
    2 Work LOOP_START "Begin."
    3 Work/0 LOOP_ITERATION search report
    4 Work/0 LOOP_MODEL_CALL
    5 Work/0 LOOP_MODEL_RESULT "Both, then the report."
    6 Work/0.0 LOOP_TOOL_CALL search {"query":"refunds"}
    7 Work/0.1 LOOP_TOOL_CALL search {"query":"returns"}
    8 Work/0.2 LOOP_TOOL_CALL report {"text":"30 days"}
    9 Work/0.0 LOOP_TOOL_START
    10 Work/0.1 LOOP_TOOL_START
    11 Work/0.0 LOOP_TOOL_RESULT ["a page about refunds"]
    12 Work/0.1 LOOP_TOOL_RESULT ["a page about returns"]
    13 Work/0.2 LOOP_TOOL_START
    14 Work/0.2 LOOP_TOOL_RESULT 7
    15 Work LOOP_EXIT report at Work/0.2
    16 Work LOOP_COMPLETE {"tool":"report","type":"exited"}
    "#);
}
