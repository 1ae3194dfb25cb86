//! # 2. Decision Engine (`llm/decision_engine.py`)
//!
//! ```text
//! System: You are an autonomous agent. You have 4 actions...
//! User: Goal: X. Current state: Y. History: Z. Decide next action.
//! ```
//!
//! The author writes the first sentence and the goal. The actions come from the enum, the history from the record of the loop.

use std::sync::Arc;

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::testing::Test;
use serde_json::json;

use super::agent::agent;
use super::core_principle::Goal;
use crate::{complete, loop_events};

#[tokio::test(start_paused = true)]
async fn prompt_has_the_actions_the_goal_and_the_history() {
    let model = Arc::new(ScriptedModel::new([
        Reply::action("I know nothing yet.", "search_web", json!({ "query": "X" })),
        Reply::action("That is enough.", "finish", json!({ "summary": "X is a letter" })),
    ]));
    let run = Test::new(Arc::clone(&model)).start(agent(), Goal { goal: "Research X".to_owned() }).await;

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
    let requests = model.requests();
    insta::assert_snapshot!(requests[0].system, @r#"
    You are an autonomous agent. Decide the next action.

    Act only by the actions below. Answer with one JSON object of this form and nothing else:

    {"reasoning": "why, in a sentence or two", "action": "the name of an action", "input": {its input}}

    The actions:

    search_web: Searches the web.
    The fields of its input: `query`

    run_code: Runs a program.
    The fields of its input: `code`

    write_file: Writes a file.
    The fields of its input: `path`, `content`

    finish: Ends the work. When it succeeds, the task is finished.
    The fields of its input: `summary`
    "#);
    let messages = requests[1].messages.messages();
    let messages: Vec<_> = messages.iter().map(|message| json!(message).to_string()).collect();
    insta::assert_snapshot!(messages.join("\n"), @r#"
    {"role":"user","text":"Goal: Research X"}
    {"by":{"model":"scripted","provider":"scripted"},"parts":[{"text":"{\"reasoning\":\"I know nothing yet.\",\"action\":\"search_web\",\"input\":{\"query\":\"X\"}}","type":"text"}],"role":"assistant"}
    {"role":"user","text":"The result of `search_web`:\na page about X"}
    "#);
}
