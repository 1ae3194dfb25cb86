//! Guards: what ends a brain early, and what its callers get.

use std::sync::Arc;

use positronic_core::dsl::{IntoBrain, Skipped};
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::projection::timeline::{NodeKind, NodeStatus};
use positronic_core::record::{EventKind, Seq, Status};
use positronic_core::testing::Test;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::boundaries::{Ledger, Tale};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum TooBig {
    By(u32),
}

/// Doubles a number under a limit.
fn double(number: u32) -> Brain<(), Result<String, TooBig>> {
    brain("Double")
        .state(number)
        .guard("Small", |number| if *number < 10 { Ok(()) } else { Err(TooBig::By(*number - 9)) })
        .step("Double", async |cx| Ok(cx.state * 2))
        .guard("Still small", |number| if *number < 10 { Ok(()) } else { Err(TooBig::By(*number - 9)) })
        .step("Word", async |cx| Ok(format!("it is {}", cx.state)))
        .build()
}

fn test() -> Test {
    Test::new(ScriptedModel::new([]))
}

#[tokio::test(start_paused = true)]
async fn guard_that_does_not_pass_skips_the_rest_and_gives_its_reason() {
    for (number, result) in [(2, Ok("it is 4".to_owned())), (11, Err(TooBig::By(2))), (7, Err(TooBig::By(5)))] {
        let run = test().start(double(number), ()).await;
        assert_eq!(run.result().await.unwrap(), result);
        assert_eq!(run.status(), Status::Completed);
    }

    let story = test().run(double(7), ()).await;
    insta::assert_snapshot!(story.events(), @r#"
    0 · BRAIN_START {"fingerprint":"948cb6d49578eac0227e75b308d774ab","stages":[{"kind":"guard","name":"Small"},{"kind":"step","name":"Doubl…
    1 · RUN_CLAIMED {"owner":"worker-1"}
    2 Small GUARD_CHECKED {"passed":true}
    3 Double STEP_START
    4 Double STEP_COMPLETE {"change":{"state":14},"duration":0}
    5 Still small GUARD_CHECKED {"passed":false,"reason":{"By":5}}
    6 · BRAIN_COMPLETE {"result":{"Err":{"By":5}}}
    "#);
    let timeline = story.timeline();
    let stages: Vec<_> = timeline
        .nodes()
        .filter_map(|node| match &node.kind {
            NodeKind::Stage(stage) => Some((stage.name.as_str(), node.status, stage.stopped.clone())),
            _ => None,
        })
        .collect();
    assert_eq!(
        stages,
        [
            ("Small", NodeStatus::Done, None),
            ("Double", NodeStatus::Done, None),
            ("Still small", NodeStatus::Done, Some(json!({ "By": 5 }))),
            ("Word", NodeStatus::Skipped, None),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn row_names_the_guard_that_ended_the_run() {
    for (number, why) in
        [(2, None), (11, Some("ended by the guard `Small`")), (7, Some("ended by the guard `Still small`"))]
    {
        let test = test();
        let run = test.start(double(number), ()).await;
        run.settled().await;
        let row = test.runner().client().store().run(run.id()).await.unwrap();
        assert_eq!(row.why.as_deref(), why);
    }
}

#[tokio::test(start_paused = true)]
async fn inner_guard_ends_only_the_inner_brain() {
    let outer = |number| {
        brain("Outer")
            .state(Vec::<String>::new())
            .brain("Inner", double(number))
            .map_output(|mut log, result| {
                log.push(format!("{result:?}"));
                log
            })
            .step("After", async |cx| Ok(cx.state.join(", ")))
    };
    for (number, said) in [(1, r#"Ok("it is 2")"#), (10, "Err(By(1))")] {
        let run = test().start(outer(number), ()).await;
        assert_eq!(run.result().await.unwrap(), said);
    }
}

#[tokio::test(start_paused = true)]
async fn guard_of_a_brain_in_a_tool_gives_the_model_its_reason() {
    let model = ScriptedModel::new([Reply::call("double", json!({})), Reply::text("Done.")]);
    let outer = brain("Outer").r#loop("Chat", |cx| cx.system("Work.").input("Go.").brain("double", double(12)));
    let story = Test::new(model).run(outer, ()).await;
    let result = story.log().iter().find_map(|event| match &event.kind {
        EventKind::LoopToolResult { result, .. } => Some(serde_json::to_value(result).unwrap()),
        _ => None,
    });
    assert_eq!(result.unwrap()["output"], json!({ "Err": { "By": 3 } }));
}

#[tokio::test(start_paused = true)]
async fn otherwise_computes_the_result_from_the_reason() {
    for (number, expected) in [(3, "it is 6"), (20, "too big by 11")] {
        let brain = double(number).otherwise(|TooBig::By(by)| format!("too big by {by}"));
        let run = test().start(brain, ()).await;
        assert_eq!(run.result().await.unwrap(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn guard_that_returns_a_bool_has_the_reason_skipped() {
    let even = |number: u32| brain("Even").state(number).guard("Is even", |number| number % 2 == 0);
    assert_eq!(test().start(even(4), ()).await.result().await.unwrap(), Ok(4));
    assert_eq!(test().start(even(5), ()).await.result().await.unwrap(), Err(Skipped));
}

#[tokio::test(start_paused = true)]
async fn guard_that_panics_fails_its_brain() {
    let brain = brain("Panics").guard("Check", |()| -> bool { panic!("no such customer") });
    let error = test().start(brain, ()).await.result().await.unwrap_err().to_string();
    assert!(error.contains("the guard `Check` failed") && error.contains("no such customer"), "{error}");
}

#[test]
#[should_panic(expected = "`Plain` has no guard")]
fn otherwise_of_a_brain_without_a_guard_panics() {
    let plain = brain("Plain").step("Work", async |_| Ok(Ok::<u32, String>(1))).build();
    let _ = plain.otherwise(|_: String| 1);
}

#[tokio::test(start_paused = true)]
async fn guards_at_every_depth_survive_a_crash_at_any_moment() {
    let nested = brain("Outer")
        .state(Vec::<String>::new())
        .brain("First", double(1))
        .map_output(|log: Vec<String>, result| [log, vec![format!("{result:?}")]].concat())
        .brain("Second", double(30))
        .map_output(|log: Vec<String>, result| [log, vec![format!("{result:?}")]].concat())
        .guard("Stop", |log| log.len() > 5)
        .step("Never", async |_| Err::<Vec<String>, _>(Error::new("it was skipped")))
        .build();
    let tale = Tale {
        definition: IntoBrain::definition(&nested),
        options: Value::Null,
        ledger: Ledger::default(),
        says: Arc::new(|_| Reply::text("")),
        answers: Arc::new(|_| Vec::new()),
    };
    let baseline = tale.undisturbed().await;
    assert_eq!(baseline.end.state, json!([r#"Ok("it is 2")"#, "Err(By(21))"]));
    for death in &baseline.deaths {
        let Some((end, _)) = tale.after(&baseline, death).await else { continue };
        assert_eq!(end, baseline.end, "after {}", death.until);
    }
}

#[tokio::test(start_paused = true)]
async fn fork_after_a_check_keeps_its_outcome() {
    let test = test();
    let run = test.start(double(30), ()).await;
    run.result().await.unwrap().unwrap_err();
    let log = run.events(Seq(0)).await.unwrap();
    let checked = log.iter().find(|event| matches!(event.kind, EventKind::GuardChecked { .. })).unwrap();
    let runner = test.runner().clone().brain(double(1));
    let fork = runner.client().fork(run.id(), checked.seq, positronic_core::runner::Fork::default()).await.unwrap();
    let fork = runner.resume(&fork).await.unwrap();
    assert_eq!(fork.result().await.unwrap(), json!({ "Err": { "By": 21 } }), "the log decides, not the code");
}
