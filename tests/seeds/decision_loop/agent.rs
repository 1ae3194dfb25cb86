//! # 4. Agent (`core/agent.py`)
//!
//! ```python
//! def run(goal):
//!     state = init_state(goal)
//!
//!     while state.can_continue():
//!         # THE LOOP
//!         decision = decide_with_retry(state)
//!         result = execute_with_retry(decision)
//!         state.add_action(decision, result)
//!
//!         if decision.action == FINISH and result.success:
//!             break
//!
//!     return state
//! ```

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::testing::Test;
use serde_json::json;

use super::core_principle::{AgentState, Goal};
use super::plan_execute_separation::execute;
use crate::{complete, loop_events, start};

pub(super) fn agent() -> Brain<Goal, AgentState> {
    brain("AgentLoop")
        .options::<Goal>()
        .step("Initialize", async |cx| Ok(AgentState::initialize(&cx.options.goal)))
        .r#loop("Work", |cx| {
            cx.system("You are an autonomous agent. Decide the next action.")
                .input(format!("Goal: {}", cx.state.goal))
                .structured_actions() // the model answers `{reasoning, action, input}`
                .action_retries(3) // an answer that does not fit is asked for again, with the error
                .max_iterations(50)
                .act(execute)
        })
        .build()
}

#[tokio::test(start_paused = true)]
async fn agent_works_until_it_finishes() {
    let replies = [
        Reply::action("I have to compute it.", "run_code", json!({ "code": "" })),
        Reply::action("I forgot the code.", "run_code", json!({ "code": "print(6 * 7)" })),
        Reply::action("That is it.", "finish", json!({ "summary": "42" })),
    ];
    let run = start(agent(), Goal { goal: "How much is 6 * 7?".to_owned() }, replies).await;

    insta::assert_snapshot!(loop_events(&complete(&run).await), @r#"
    4 Work LOOP_START "Goal: How much is 6 * 7?"
    5 Work/0 LOOP_ITERATION search_web run_code write_file finish
    6 Work/0 LOOP_MODEL_CALL
    7 Work/0 LOOP_MODEL_RESULT "I have to compute it."
    8 Work/0.0 LOOP_TOOL_CALL run_code {"code":""}
    9 Work/0.0 LOOP_TOOL_START
    10 Work/0.0 LOOP_TOOL_RESULT error: there is no code to run
    11 Work/1 LOOP_ITERATION
    12 Work/1 LOOP_MODEL_CALL
    13 Work/1 LOOP_MODEL_RESULT "I forgot the code."
    14 Work/1.0 LOOP_TOOL_CALL run_code {"code":"print(6 * 7)"}
    15 Work/1.0 LOOP_TOOL_START
    16 Work/1.0 LOOP_TOOL_RESULT "ran 12 bytes"
    17 Work/2 LOOP_ITERATION
    18 Work/2 LOOP_MODEL_CALL
    19 Work/2 LOOP_MODEL_RESULT "That is it."
    20 Work/2.0 LOOP_TOOL_CALL finish {"summary":"42"}
    21 Work/2.0 LOOP_TOOL_START
    22 Work/2.0 LOOP_TOOL_RESULT "finished" changes [{"op":"replace","path":"/summary","value":"42"}]
    23 Work LOOP_EXIT finish at Work/2.0
    24 Work LOOP_COMPLETE {"tool":"finish","type":"exited"}
    "#);
    assert_eq!(run.result().await.unwrap().summary.as_deref(), Some("42"));
}

#[tokio::test(start_paused = true)]
async fn agent_that_never_finishes_ends_after_fifty_iterations() {
    let model = ScriptedModel::from_fn(|_| Reply::action("Once more.", "run_code", json!({ "code": "print()" })));
    let run = Test::new(model).start(agent(), Goal { goal: "Never end".to_owned() }).await;

    let events = loop_events(&complete(&run).await);
    let last: Vec<_> = events.lines().rev().take(3).collect();
    insta::assert_snapshot!(last.into_iter().rev().collect::<Vec<_>>().join("\n"), @r#"
    304 Work/49.0 LOOP_TOOL_RESULT "ran 7 bytes"
    305 Work LOOP_MAX_ITERATIONS 50
    306 Work LOOP_COMPLETE {"type":"max_iterations"}
    "#);
}
