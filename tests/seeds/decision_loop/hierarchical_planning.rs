//! # 4. Hierarchical Planning
//!
//! ```python
//! plan = llm_plan(goal)  # Returns subtasks
//! for subtask in plan:
//!     run_agent(subtask)  # Recursive
//! ```

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::testing::Test;
use positronic_toolbox::{PlanOptions, plan};
use serde_json::json;

use crate::{complete, loop_events};

fn agent() -> Brain<String, String> {
    brain("Agent")
        .options::<String>()
        .state(String::new())
        .r#loop("Work", |cx| {
            let subtasks = plan(agent(), PlanOptions::default(), |subtask, _| subtask.goal.clone());
            cx.system("Reach the goal.").input(cx.options.as_str()).tools([subtasks])
        })
        .build()
}

#[tokio::test(start_paused = true)]
async fn subtasks_run_as_agents_of_their_own() {
    let parts = json!([{ "title": "Water", "goal": "Boil water" }, { "title": "Tea", "goal": "Brew it" }]);
    let model = ScriptedModel::new([
        Reply::call("plan", json!({ "goal": "Make tea", "parts": parts })),
        Reply::text("The tea is ready."),
    ])
    .on("Work/0.0/Sub-goals/0.0/Work", [Reply::text("It boils.")])
    .on("Work/0.0/Sub-goals/1.0/Work", [Reply::text("It is brewed.")]);
    let run = Test::new(model).start(agent(), "Make tea".to_owned()).await;

    insta::assert_snapshot!(loop_events(&complete(&run).await), @r#"
    2 Work LOOP_START "Make tea"
    3 Work/0 LOOP_ITERATION plan
    4 Work/0 LOOP_MODEL_CALL
    5 Work/0 LOOP_MODEL_RESULT
    6 Work/0.0 LOOP_TOOL_CALL plan {"goal":"Make tea","parts":[{"goal":"Boil water","title":"Water"},{"goal":"Brew it","title":"Tea"}]}
    7 Work/0.0 LOOP_BRAIN_START Plan {"goal":"Make tea","parts":[{"goal":"Boil water","title":"Water"},{"goal":"Brew it","title":"Tea"}]}
    11 Work/0.0/Sub-goals LOOP_START
    12 Work/0.0/Sub-goals/0 LOOP_ITERATION part_1 part_2
    13 Work/0.0/Sub-goals/0 LOOP_MODEL_CALL
    14 Work/0.0/Sub-goals/0 LOOP_MODEL_RESULT
    15 Work/0.0/Sub-goals/0.0 LOOP_TOOL_CALL part_1 {}
    16 Work/0.0/Sub-goals/0.0 LOOP_BRAIN_START Agent "Boil water"
    18 Work/0.0/Sub-goals/0.0/Work LOOP_START "Boil water"
    19 Work/0.0/Sub-goals/0.0/Work/0 LOOP_ITERATION plan
    20 Work/0.0/Sub-goals/0.0/Work/0 LOOP_MODEL_CALL
    21 Work/0.0/Sub-goals/0.0/Work/0 LOOP_MODEL_RESULT "It boils."
    22 Work/0.0/Sub-goals/0.0/Work LOOP_COMPLETE {"type":"answered"}
    24 Work/0.0/Sub-goals/0.0 LOOP_BRAIN_COMPLETE ""
    25 Work/0.0/Sub-goals/0.0 LOOP_TOOL_RESULT "" changes [{"op":"add","path":"/parts/0/result","value":""},{"op":"replace","path":"/parts/0/status","value":"done"}]
    26 Work/0.0/Sub-goals/1 LOOP_ITERATION
    27 Work/0.0/Sub-goals/1 LOOP_MODEL_CALL
    28 Work/0.0/Sub-goals/1 LOOP_MODEL_RESULT
    29 Work/0.0/Sub-goals/1.0 LOOP_TOOL_CALL part_2 {}
    30 Work/0.0/Sub-goals/1.0 LOOP_BRAIN_START Agent "Brew it"
    32 Work/0.0/Sub-goals/1.0/Work LOOP_START "Brew it"
    33 Work/0.0/Sub-goals/1.0/Work/0 LOOP_ITERATION plan
    34 Work/0.0/Sub-goals/1.0/Work/0 LOOP_MODEL_CALL
    35 Work/0.0/Sub-goals/1.0/Work/0 LOOP_MODEL_RESULT "It is brewed."
    36 Work/0.0/Sub-goals/1.0/Work LOOP_COMPLETE {"type":"answered"}
    38 Work/0.0/Sub-goals/1.0 LOOP_BRAIN_COMPLETE ""
    39 Work/0.0/Sub-goals/1.0 LOOP_TOOL_RESULT "" changes [{"op":"add","path":"/parts/1/result","value":""},{"op":"replace","path":"/parts/1/status","value":"done"}]
    40 Work/0.0/Sub-goals/2 LOOP_ITERATION
    41 Work/0.0/Sub-goals/2 LOOP_MODEL_CALL
    42 Work/0.0/Sub-goals/2 LOOP_MODEL_RESULT
    43 Work/0.0/Sub-goals LOOP_COMPLETE {"type":"answered"}
    47 Work/0.0 LOOP_BRAIN_COMPLETE {"complete":true,"goal":"Make tea","parts":[{"goal":"Boil water","result":"","status":"done","title":"Water"},{"goal":"Brew it","result":"","status":"done","title":"Tea"}]}
    48 Work/0.0 LOOP_TOOL_RESULT {"complete":true,"goal":"Make tea","parts":[{"goal":"Boil water","result":"","status":"done","title":"Water"},{"goal":"Brew it","result":"","status":"done","title":"Tea"}]}
    49 Work/1 LOOP_ITERATION
    50 Work/1 LOOP_MODEL_CALL
    51 Work/1 LOOP_MODEL_RESULT "The tea is ready."
    52 Work LOOP_COMPLETE {"type":"answered"}
    "#);
}
