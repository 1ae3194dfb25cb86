//! # State Evolution Example
//!
//! ```text
//! Step 0:
//!   State: {goal: "Research X", actions: [], results: []}
//!
//! Step 1:
//!   Decision: search_web("X")
//!   Result: [5 search results]
//!   State: {goal: "Research X", actions: [search_web], results: [...]}
//!
//! Step 2:
//!   Decision: write_file("report.md", "...")
//!   Result: File written
//!   State: {goal: "Research X", actions: [search_web, write_file], results: [...]}
//!
//! Step 3:
//!   Decision: finish("Report created")
//!   Result: Success
//!   State: {goal: "Research X", ..., is_complete: True}
//! ```
//!
//! The state after each decision, from the log alone. Failed actions are in the log only.

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::record::EventKind;
use positronic_core::testing::Test;
use serde_json::json;

use super::agent::agent;
use super::core_principle::Goal;
use crate::{complete, loop_events};

#[tokio::test(start_paused = true)]
async fn state_evolves_with_each_action() {
    let model = ScriptedModel::new([
        Reply::action("I know nothing yet.", "search_web", json!({ "query": "X" })),
        Reply::action("I know enough.", "write_file", json!({ "path": "report.md", "content": "X is a letter." })),
        Reply::action("It is written.", "finish", json!({ "summary": "Report created" })),
    ]);
    let test = Test::new(model);
    let run = test.start(agent(), Goal { goal: "Research X".to_owned() }).await;
    let story = complete(&run).await;

    insta::assert_snapshot!(loop_events(&story), @r#"
    4 Work LOOP_START "Goal: Research X"
    5 Work/0 LOOP_ITERATION search_web run_code write_file finish
    6 Work/0 LOOP_MODEL_CALL
    7 Work/0 LOOP_MODEL_RESULT "I know nothing yet."
    8 Work/0.0 LOOP_TOOL_CALL search_web {"query":"X"}
    9 Work/0.0 LOOP_TOOL_START
    10 Work/0.0 LOOP_TOOL_RESULT "a page about X" changes [{"op":"add","path":"/found/0","value":"a page about X"}]
    11 Work/1 LOOP_ITERATION
    12 Work/1 LOOP_MODEL_CALL
    13 Work/1 LOOP_MODEL_RESULT "I know enough."
    14 Work/1.0 LOOP_TOOL_CALL write_file {"content":"X is a letter.","path":"report.md"}
    15 Work/1.0 LOOP_TOOL_START
    16 Work/1.0 LOOP_OUTPUT file report.md text/plain
    17 Work/1.0 LOOP_TOOL_RESULT "written" changes [{"op":"add","path":"/files/0","value":"report.md"}]
    18 Work/2 LOOP_ITERATION
    19 Work/2 LOOP_MODEL_CALL
    20 Work/2 LOOP_MODEL_RESULT "It is written."
    21 Work/2.0 LOOP_TOOL_CALL finish {"summary":"Report created"}
    22 Work/2.0 LOOP_TOOL_START
    23 Work/2.0 LOOP_TOOL_RESULT "finished" changes [{"op":"replace","path":"/summary","value":"Report created"}]
    24 Work LOOP_EXIT finish at Work/2.0
    25 Work LOOP_COMPLETE {"tool":"finish","type":"exited"}
    "#);
    let mut states = Vec::new();
    let changes = |kind: &EventKind| matches!(kind, EventKind::LoopStart { .. } | EventKind::LoopToolResult { .. });
    for event in story.log().iter().filter(|event| changes(&event.kind)) {
        let (state, _) = test.runner().client().state_at(run.id(), event.seq).await.unwrap();
        states.push(state.root.unwrap().state.to_string());
    }
    insta::assert_snapshot!(states.join("\n"), @r#"
    {"files":[],"found":[],"goal":"Research X","summary":null}
    {"files":[],"found":["a page about X"],"goal":"Research X","summary":null}
    {"files":["report.md"],"found":["a page about X"],"goal":"Research X","summary":null}
    {"files":["report.md"],"found":["a page about X"],"goal":"Research X","summary":"Report created"}
    "#);
}
