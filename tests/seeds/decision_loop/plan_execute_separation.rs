//! # 1. Plan-Execute Separation
//!
//! ```python
//! # LLM (decision_engine.py)
//! def decide_next_action(state) -> ActionDecision:
//!     # Returns structured decision, doesn't execute anything
//!     pass
//!
//! # System (executor.py)
//! def execute(action_type, input_data) -> ActionResult:
//!     # Executes deterministically, no LLM involved
//!     pass
//! ```
//!
//! The model's answer is a `Step`, which nothing but `execute` runs.

use positronic_core::model::scripted::Reply;
use positronic_core::prelude::*;
use serde_json::json;

use super::agent::agent;
use super::core_principle::{AgentState, Goal};
use super::structured_action_schema::Step;
use crate::services::search_docs;
use crate::{complete, loop_events, start};

pub(super) async fn execute(step: Step, cx: ToolContext<Goal, AgentState>) -> Result<String> {
    match step {
        Step::SearchWeb { query } => {
            let pages = search_docs(&query).await?;
            let found = pages.join("\n");
            cx.update(|state| state.found.extend(pages));
            Ok(found)
        }
        Step::RunCode { code } if code.is_empty() => Err(Error::new("there is no code to run")),
        Step::RunCode { code } => Ok(format!("ran {} bytes", code.len())),
        Step::WriteFile { path, content } => {
            cx.save_file(&path, "text/plain", content).await?;
            cx.update(|state| state.files.push(path));
            Ok("written".to_owned())
        }
        Step::Finish { summary } => {
            cx.update(|state| state.summary = Some(summary));
            Ok("finished".to_owned())
        }
    }
}

#[tokio::test(start_paused = true)]
async fn claim_of_the_model_executes_nothing() {
    let replies = [
        Reply::action("I have written a.md and b.md.", "write_file", json!({ "path": "a.md", "content": "A" })),
        Reply::action("Both are written.", "finish", json!({ "summary": "a.md and b.md" })),
    ];
    let run = start(agent(), Goal { goal: "Write a.md and b.md".to_owned() }, replies).await;

    insta::assert_snapshot!(loop_events(&complete(&run).await), @r#"
    4 Work LOOP_START "Goal: Write a.md and b.md"
    5 Work/0 LOOP_ITERATION search_web run_code write_file finish
    6 Work/0 LOOP_MODEL_CALL
    7 Work/0 LOOP_MODEL_RESULT "I have written a.md and b.md."
    8 Work/0.0 LOOP_TOOL_CALL write_file {"content":"A","path":"a.md"}
    9 Work/0.0 LOOP_TOOL_START
    10 Work/0.0 LOOP_OUTPUT file a.md text/plain
    11 Work/0.0 LOOP_TOOL_RESULT "written" changes [{"op":"add","path":"/files/0","value":"a.md"}]
    12 Work/1 LOOP_ITERATION
    13 Work/1 LOOP_MODEL_CALL
    14 Work/1 LOOP_MODEL_RESULT "Both are written."
    15 Work/1.0 LOOP_TOOL_CALL finish {"summary":"a.md and b.md"}
    16 Work/1.0 LOOP_TOOL_START
    17 Work/1.0 LOOP_TOOL_RESULT "finished" changes [{"op":"replace","path":"/summary","value":"a.md and b.md"}]
    18 Work LOOP_EXIT finish at Work/1.0
    19 Work LOOP_COMPLETE {"tool":"finish","type":"exited"}
    "#);
    assert_eq!(run.result().await.unwrap().files, ["a.md"]);
}
