//! Answers and outputs that have to fit the schema of a type.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{EventKind, Seq, ToolResult};
use positronic_core::testing::Test;
use positronic_plugins::MatchesSchema;
use schemars::JsonSchema;
use serde_json::{Value, json};

#[expect(dead_code, reason = "only its schema is used")]
#[derive(JsonSchema)]
struct Weather {
    degrees: i32,
    wind: Option<String>,
}

fn station(outputs: impl IntoIterator<Item = Value>) -> Brain<(), ()> {
    let outputs = Arc::new(Mutex::new(outputs.into_iter().collect::<VecDeque<_>>()));
    brain("Station")
        .r#loop("Report", move |cx| {
            let outputs = Arc::clone(&outputs);
            let schema = MatchesSchema::of::<Weather>();
            cx.system("Report.")
                .input("Ghent?")
                .tool("measure", move |t| {
                    t.read_only().execute(move |_: NoArgs, _| {
                        let output = outputs.lock().unwrap().pop_front();
                        async move { Ok(output) }
                    })
                })
                .tool("note", |t| t.read_only().execute(async |_: NoArgs, _| Ok("noted")))
                .guard_answer("Weather", schema.answers())
                .guard_result("Weather", schema.results("measure"))
        })
        .build()
}

#[tokio::test(start_paused = true)]
async fn last_answer_is_asked_for_again_until_it_fits_and_texts_beside_calls_pass() {
    let model = ScriptedModel::new([
        Reply::call("note", json!({})).and_text("Let me see."),
        Reply::text("It is warm."),
        Reply::text(r#"{"degrees": "warm"}"#),
        Reply::text(r#"{"degrees": 21}"#),
    ]);
    let run = Test::new(model).start(station([]), ()).await;
    run.result().await.unwrap();
    assert_eq!(run.answer().as_deref(), Some(r#"{"degrees": 21}"#));
    let log = run.events(Seq(0)).await.unwrap();
    let reasons = log.iter().filter_map(|event| match &event.kind {
        EventKind::LoopAnswerRefused { message, .. } => Some(message.as_str()),
        _ => None,
    });
    insta::assert_snapshot!(reasons.collect::<Vec<_>>().join("\n"), @r#"
    it is not JSON: expected value at line 1 column 1
    it does not fit the schema: at `/degrees`: "warm" is not of type "integer"
    "#);
}

#[tokio::test(start_paused = true)]
async fn outputs_of_the_named_tool_are_checked_as_values_or_as_json_in_a_text() {
    let outputs = [json!({ "degrees": 21 }), json!(r#"{"degrees": 22, "wind": "west"}"#), json!({ "wind": "west" })];
    let calls = outputs.iter().map(|_| Reply::call("measure", json!({})));
    let last = [Reply::call("note", json!({})), Reply::text(r#"{"degrees": 21}"#)];
    let model = ScriptedModel::new(calls.chain(last));
    let run = Test::new(model).start(station(outputs.clone()), ()).await;
    run.result().await.unwrap();
    let log = run.events(Seq(0)).await.unwrap();
    let results: Vec<_> = log
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::LoopToolResult { result, .. } => Some(result.clone()),
            _ => None,
        })
        .collect();
    let refused =
        "the guard `Weather` refused the result: it does not fit the schema: \"degrees\" is a required property";
    let [first, second, _] = outputs;
    let expected = [
        ToolResult::success(first),
        ToolResult::success(second),
        ToolResult::error(refused),
        ToolResult::success("noted"),
    ];
    assert_eq!(results, expected);
}
