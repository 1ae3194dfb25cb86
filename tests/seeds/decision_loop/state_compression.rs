//! # 1. State Compression
//!
//! ```python
//! if len(state.actions) > 20:
//!     state.compressed_history = llm_summarize(state.actions[:15])
//!     state.actions = state.actions[15:]  # Keep recent
//! ```
//!
//! The record stays complete; the summary only replaces older messages of a request.

use positronic_core::model::scripted::Reply;
use positronic_core::prelude::*;
use positronic_plugins::Compaction;
use serde_json::json;

use crate::{complete, loop_events, start};

fn agent() -> Brain<(), ()> {
    brain("Agent")
        .r#loop("Work", |cx| {
            cx.system("Reach the goal.")
                .plugin(Compaction::new().iterations(20).keep(5))
                .tool("look", |t| t.execute(async |_: NoArgs, _| Ok("nothing yet")))
        })
        .build()
}

#[tokio::test(start_paused = true)]
async fn fifteen_of_twenty_iterations_are_summarised() {
    let looks = (0..20).map(|_| Reply::call("look", json!({})));
    let replies = looks.chain([Reply::text("I looked 15 times."), Reply::text("There is nothing.")]);
    let run = start(agent(), (), replies).await;

    let events = loop_events(&complete(&run).await);
    let compaction = events.lines().position(|line| line.contains("Work/20 ")).unwrap();
    let last: Vec<_> = events.lines().skip(compaction).collect();
    insta::assert_snapshot!(last.join("\n"), @r#"
    123 Work/20 LOOP_MODEL_CALL a plugin's question
    124 Work/20 LOOP_MODEL_RESULT "I looked 15 times."
    125 Work LOOP_COMPACTED {"keep":10,"summary":"Summary of the conversation before this point:\n\nI looked 15 times."}
    126 Work/20 LOOP_ITERATION
    127 Work/20 LOOP_MODEL_CALL
    128 Work/20 LOOP_MODEL_RESULT "There is nothing."
    129 Work LOOP_COMPLETE {"type":"answered"}
    "#);
}
