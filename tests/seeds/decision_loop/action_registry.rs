//! # 2. Action Registry
//!
//! ```python
//! @register_action("custom_action")
//! def my_action(input_data):
//!     ...
//! ```

use positronic_core::dsl::Action;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::testing::Test;
use serde_json::json;

use crate::{complete, loop_events};

fn my_action() -> Action {
    Action::new("custom_action", |t| {
        t.description("Does what the project needs").execute(async |_: NoArgs, _| Ok("done"))
    })
}

fn agent() -> Brain<(), ()> {
    brain("Agent")
        .actions(["custom_action"])
        .r#loop("Work", |cx| cx.system("Reach the goal.").actions(["custom_action"]))
        .build()
}

#[tokio::test(start_paused = true)]
async fn registered_action_is_found_by_name() {
    let model = ScriptedModel::new([Reply::call("custom_action", json!({})), Reply::text("It is done.")]);
    let run = Test::new(model).map(|runner| runner.action(my_action())).start(agent(), ()).await;

    insta::assert_snapshot!(loop_events(&complete(&run).await), @r#"
    2 Work LOOP_START "Begin."
    3 Work/0 LOOP_ITERATION custom_action
    4 Work/0 LOOP_MODEL_CALL
    5 Work/0 LOOP_MODEL_RESULT
    6 Work/0.0 LOOP_TOOL_CALL custom_action {}
    7 Work/0.0 LOOP_TOOL_START
    8 Work/0.0 LOOP_TOOL_RESULT "done"
    9 Work/1 LOOP_ITERATION
    10 Work/1 LOOP_MODEL_CALL
    11 Work/1 LOOP_MODEL_RESULT "It is done."
    12 Work LOOP_COMPLETE {"type":"answered"}
    "#);
}
