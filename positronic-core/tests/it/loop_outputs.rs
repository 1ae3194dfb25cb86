//! Loops with an output: what ends them, and what the next stage gets.

use std::sync::Arc;

use positronic_core::dsl::IntoBrain;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{EndReason, Event, EventKind, ToolResult};
use positronic_core::runner::RunError;
use positronic_core::testing::Test;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::boundaries::{Ledger, Tale};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Report {
    title: String,
    findings: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Look {
    at: String,
}

/// Looks, then reports; the title must not be empty.
fn research() -> Brain<(), (u32, Report)> {
    brain("Research")
        .state(0_u32)
        .loop_to(
            "Research",
            |cx| {
                cx.system("Find out.")
                    .max_iterations(4)
                    .tool("look", |t| {
                        t.execute(async |Look { at }, cx| {
                            cx.update(|looks: &mut u32| *looks += 1);
                            if at == "nowhere" { Err(Error::new("there is nothing")) } else { Ok("a kettle") }
                        })
                    })
                    .output_checked::<Report>(|report| {
                        if report.title.is_empty() { Err("give it a title".to_owned()) } else { Ok(()) }
                    })
            },
            |looks, report| (looks, report),
        )
        .build()
}

fn done(title: &str) -> Reply {
    Reply::call("done", json!({ "title": title, "findings": ["it leaks"] }))
}

fn report() -> Report {
    Report { title: "Kettles".to_owned(), findings: vec!["it leaks".to_owned()] }
}

#[tokio::test(start_paused = true)]
async fn output_goes_to_the_next_state() {
    let model = ScriptedModel::new([Reply::call("look", json!({ "at": "home" })), done("Kettles")]);
    let run = Test::new(model).start(research(), ()).await;
    assert_eq!(run.result().await.unwrap(), (1, report()));
}

#[tokio::test(start_paused = true)]
async fn model_gets_what_does_not_fit_and_text_does_not_end_the_loop() {
    let misfit = Reply::call("done", json!({ "title": 7 }));
    let model = ScriptedModel::new([misfit, Reply::text("It is done."), done(""), done("Kettles")]);
    let story = Test::new(model).run(research(), ()).await;
    assert_eq!(*story.state(), json!([0, report()]));
    let errors: Vec<_> = story
        .log()
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::LoopToolResult { result, .. } => serde_json::to_value(result).unwrap().get("message").cloned(),
            _ => None,
        })
        .collect();
    assert_eq!(errors.len(), 2);
    assert!(errors[0].as_str().unwrap().contains("title") && errors[1] == "give it a title", "{errors:?}");
}

#[tokio::test(start_paused = true)]
async fn calls_before_the_output_run_first() {
    let both = Reply::calls([("look", json!({ "at": "home" })), ("done", serde_json::to_value(report()).unwrap())]);
    let run = Test::new(ScriptedModel::new([both])).start(research(), ()).await;
    assert_eq!(run.result().await.unwrap(), (1, report()));
}

#[tokio::test(start_paused = true)]
async fn output_is_skipped_after_a_call_that_fails() {
    let both =
        Reply::calls([("look", json!({ "at": "nowhere" })), ("done", json!({ "title": "Nothing", "findings": [] }))]);
    let test = Test::new(ScriptedModel::new([both, done("Kettles")]));
    let story = test.run(research(), ()).await;
    assert_eq!(*story.state(), json!([0, report()]));
    let skipped = "`look` failed before it. Call it again when that is resolved";
    let is_skipped = |event: &Arc<Event>| match &event.kind {
        EventKind::LoopToolResult { result: ToolResult::Skipped { reason }, .. } => reason == skipped,
        _ => false,
    };
    assert!(story.log().iter().any(is_skipped), "{}", story.transcript());
}

#[tokio::test(start_paused = true)]
async fn loop_without_an_output_fails_its_brain_with_its_limit() {
    let model = ScriptedModel::from_fn(|_| Reply::call("look", json!({ "at": "home" })));
    let run = Test::new(model).start(research(), ()).await;
    let RunError::Failed(failure) = run.result().await.unwrap_err() else { panic!() };
    assert_eq!(failure.code, EndReason::Limit, "{failure}");
}

#[tokio::test(start_paused = true)]
async fn another_exit_tool_fails_the_loop() {
    let brain = brain("Research").state(()).loop_to(
        "Research",
        |cx| cx.system("Work.").tool("leave", |t| t.exit().execute(async |_: NoArgs, _| Ok("left"))).output::<Report>(),
        |(), report| report,
    );
    let run = Test::new(ScriptedModel::new([Reply::call("leave", json!({}))])).start(brain, ()).await;
    let error = run.result().await.unwrap_err().to_string();
    assert!(error.contains("`leave` ended the loop, which needs the output of `done`"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn handoff_from_a_loop_with_an_output_is_refused_before_the_model_is_asked() {
    let desk = brain("Desk").r#loop("Talk", |cx| cx.system("Talk.")).build();
    let brain = brain("Research").state(()).loop_to(
        "Research",
        move |cx| cx.system("Work.").handoff("desk", desk.clone()).output::<Report>(),
        |(), report| report,
    );
    let run = Test::new(ScriptedModel::new([])).start(brain, ()).await;
    let error = run.result().await.unwrap_err().to_string();
    let expected =
        "the loop `Research` cannot be configured: the handoff `desk` would end the loop without the output of `done`";
    assert!(error.contains(expected), "{error}");
}

#[tokio::test(start_paused = true)]
async fn output_that_is_no_object_is_wrapped_for_providers() {
    let brain = brain("Count").state(()).loop_to("Count", |cx| cx.system("Count.").output::<u32>(), |(), count| count);
    let run = Test::new(ScriptedModel::new([Reply::call("done", json!({ "value": 7 }))])).start(brain, ()).await;
    assert_eq!(run.result().await.unwrap(), 7);
}

#[tokio::test(start_paused = true)]
async fn output_survives_a_crash_at_any_moment() {
    let tale = Tale {
        definition: IntoBrain::definition(&research()),
        options: Value::Null,
        ledger: Ledger::default(),
        says: Arc::new(|request| match request.messages.len() {
            1 => Reply::call("look", json!({ "at": "home" })),
            _ => done("Kettles"),
        }),
        answers: Arc::new(|_| Vec::new()),
    };
    let baseline = tale.undisturbed().await;
    assert_eq!(baseline.end.state, json!([1, report()]));
    for death in &baseline.deaths {
        let Some((end, log)) = tale.after(&baseline, death).await else { continue };
        if crate::support::boundaries::interrupted(&log).is_empty() {
            assert_eq!(end, baseline.end, "after {}", death.until);
        }
    }
}
