//! # 3. Structured Action Schema
//!
//! ```python
//! class ActionDecision(BaseModel):
//!     action: ActionType       # Enum, not freeform string
//!     reasoning: str           # Required explanation
//!     input: Dict[str, Any]    # Will be validated per action
//! ```
//!
//! The enum is the fixed action space, with the input of each action. The model answers `{reasoning, action, input}`; an answer
//! that does not fit is asked for again, with the error.

use positronic_core::model::scripted::Reply;
use positronic_core::prelude::*;
use serde_json::json;

use super::agent::agent;
use super::core_principle::Goal;
use crate::{complete, loop_events, start};

#[derive(Actions)]
pub(super) enum Step {
    /// Searches the web.
    #[action(read_only, retries = 3)]
    SearchWeb { query: String },
    /// Runs a program.
    #[action(retries = 3)]
    RunCode { code: String },
    /// Writes a file.
    WriteFile { path: String, content: String },
    /// Ends the work.
    #[action(exit)]
    Finish { summary: String },
}

#[tokio::test(start_paused = true)]
async fn invalid_actions_are_asked_for_again() {
    let replies = [
        Reply::text("I shall search the web."),
        Reply::action("I need a pizza.", "order_pizza", json!({})),
        Reply::action("Then I am done.", "finish", json!({})),
        Reply::action("Then I am done.", "finish", json!({ "summary": "no pizza" })),
    ];
    let run = start(agent(), Goal { goal: "Order a pizza".to_owned() }, replies).await;

    insta::assert_snapshot!(loop_events(&complete(&run).await), @r#"
    4 Work LOOP_START "Goal: Order a pizza"
    5 Work/0 LOOP_ITERATION search_web run_code write_file finish
    6 Work/0 LOOP_MODEL_CALL
    7 Work/0 LOOP_ANSWER_REFUSED "I shall search the web." because the answer has no JSON object
    8 Work/0 LOOP_MODEL_CALL
    9 Work/0 LOOP_ANSWER_REFUSED "{\"action\":\"order_pizza\",\"input\":{},\"reasoning\":\"I need a pizza.\"}" because there is no action `order_pizza`; the actions are `search_web`, `run_code`, `write_file`, `finish`
    10 Work/0 LOOP_MODEL_CALL
    11 Work/0 LOOP_ANSWER_REFUSED "{\"action\":\"finish\",\"input\":{},\"reasoning\":\"Then I am done.\"}" because the input of `finish` does not match its schema: "summary" is a required property
    12 Work/0 LOOP_MODEL_CALL
    13 Work/0 LOOP_MODEL_RESULT "Then I am done."
    14 Work/0.0 LOOP_TOOL_CALL finish {"summary":"no pizza"}
    15 Work/0.0 LOOP_TOOL_START
    16 Work/0.0 LOOP_TOOL_RESULT "finished" changes [{"op":"replace","path":"/summary","value":"no pizza"}]
    17 Work LOOP_EXIT finish at Work/0.0
    18 Work LOOP_COMPLETE {"tool":"finish","type":"exited"}
    "#);
}
