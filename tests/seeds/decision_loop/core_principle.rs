//! # Core Principle: The Decision Loop
//!
//! ```python
//! state = initialize(goal)
//!
//! while not goal_satisfied(state):
//!     decision = llm_decide(state)      # LLM picks an action
//!     result = system_execute(decision)  # System runs it
//!     state = update(state, result)      # State evolves
//! ```

use positronic_core::model::scripted::Reply;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::agent::agent;
use crate::{complete, loop_events, start};

#[derive(Serialize, Deserialize, JsonSchema)]
pub(super) struct Goal {
    pub(super) goal: String,
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct AgentState {
    pub(super) goal: String,
    pub(super) found: Vec<String>,
    pub(super) files: Vec<String>,
    pub(super) summary: Option<String>,
}

impl AgentState {
    pub(super) fn initialize(goal: &str) -> Self {
        Self { goal: goal.to_owned(), ..Self::default() }
    }
}

#[tokio::test(start_paused = true)]
async fn action_leads_to_a_result_that_changes_the_state() {
    let replies = [
        Reply::action("I know nothing yet.", "search_web", json!({ "query": "X" })),
        Reply::action("That is enough.", "finish", json!({ "summary": "X is a letter" })),
    ];
    let run = start(agent(), Goal { goal: "Research X".to_owned() }, replies).await;

    insta::assert_snapshot!(loop_events(&complete(&run).await), @r#"
    4 Work LOOP_START "Goal: Research X"
    5 Work/0 LOOP_ITERATION search_web run_code write_file finish
    6 Work/0 LOOP_MODEL_CALL
    7 Work/0 LOOP_MODEL_RESULT "I know nothing yet."
    8 Work/0.0 LOOP_TOOL_CALL search_web {"query":"X"}
    9 Work/0.0 LOOP_TOOL_START
    10 Work/0.0 LOOP_TOOL_RESULT "a page about X" changes [{"op":"add","path":"/found/0","value":"a page about X"}]
    11 Work/1 LOOP_ITERATION
    12 Work/1 LOOP_MODEL_CALL
    13 Work/1 LOOP_MODEL_RESULT "That is enough."
    14 Work/1.0 LOOP_TOOL_CALL finish {"summary":"X is a letter"}
    15 Work/1.0 LOOP_TOOL_START
    16 Work/1.0 LOOP_TOOL_RESULT "finished" changes [{"op":"replace","path":"/summary","value":"X is a letter"}]
    17 Work LOOP_EXIT finish at Work/1.0
    18 Work LOOP_COMPLETE {"tool":"finish","type":"exited"}
    "#);
    let state = run.result().await.unwrap();
    assert_eq!(
        (&state.found[..], state.summary.as_deref()),
        (&["a page about X".to_owned()][..], Some("X is a letter"))
    );
}
