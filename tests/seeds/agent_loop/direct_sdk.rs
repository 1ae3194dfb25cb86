//! # What you write yourself
//!
//! ```typescript
//! // Minimal agent loop with OpenAI SDK
//! while (true) {
//!   const response = await openai.responses.create({ input: messages, tools });
//!   const toolCalls = response.output.filter(o => o.type === 'function_call');
//!   if (toolCalls.length === 0) break;
//!
//!   for (const call of toolCalls) {
//!     const result = await invokeMyTool(call.name, JSON.parse(call.arguments));
//!     messages.push({ type: 'function_call', ...call });
//!     messages.push({ type: 'function_call_output', call_id: call.call_id, output: JSON.stringify(result) });
//!   }
//! }
//! ```
//!
//! A brain with one loop does this, with the messages, the checks and the record.

use positronic_core::model::scripted::Reply;
use positronic_core::prelude::*;
use serde_json::json;

use crate::services::search_docs;
use crate::{complete, loop_events, start};

/// Searches the documentation.
#[tool]
async fn search(query: String) -> Result<Vec<String>> {
    search_docs(&query).await
}

fn agent() -> Brain<(), ()> {
    brain("Agent").r#loop("Work", |cx| cx.system("Help.").tools([search()])).build()
}

#[tokio::test(start_paused = true)]
async fn loop_calls_tools_until_the_model_answers() {
    let replies = [
        Reply::calls([("search", json!({ "query": "refunds" })), ("search", json!({ "query": "returns" }))]),
        Reply::text("You have 30 days."),
    ];
    let run = start(agent(), (), replies).await;

    insta::assert_snapshot!(loop_events(&complete(&run).await), @r#"
    2 Work LOOP_START "Begin."
    3 Work/0 LOOP_ITERATION search
    4 Work/0 LOOP_MODEL_CALL
    5 Work/0 LOOP_MODEL_RESULT
    6 Work/0.0 LOOP_TOOL_CALL search {"query":"refunds"}
    7 Work/0.1 LOOP_TOOL_CALL search {"query":"returns"}
    8 Work/0.0 LOOP_TOOL_START
    9 Work/0.1 LOOP_TOOL_START
    10 Work/0.0 LOOP_TOOL_RESULT ["a page about refunds"]
    11 Work/0.1 LOOP_TOOL_RESULT ["a page about returns"]
    12 Work/1 LOOP_ITERATION
    13 Work/1 LOOP_MODEL_CALL
    14 Work/1 LOOP_MODEL_RESULT "You have 30 days."
    15 Work LOOP_COMPLETE {"type":"answered"}
    "#);
}
