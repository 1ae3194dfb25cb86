//! A first brain.

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::runner::Settled;
use positronic_core::testing::{Story, Test};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(Serialize, Deserialize)]
struct Count {
    value: u32,
}

#[derive(Deserialize, JsonSchema)]
struct By {
    by: u32,
}

#[tokio::test(start_paused = true)]
async fn loop_counts_to_its_goal() {
    let counter = brain("Counter")
        .step("Begin", async |_| Ok(Count { value: 0 }))
        .r#loop("Count", |cx| {
            cx.system(format!("The count is {}.", cx.state.value))
                .input("count")
                .tool("add", |t| {
                    t.description("Adds to the count")
                        .execute(async |By { by }, cx| Ok(cx.result("added").update(move |count| count.value += by)))
                })
                .tool("big", |t| {
                    t.description("Adds much")
                        .approval(|args: &By, _| (args.by > 5).then(|| format!("adds {}", args.by)))
                        .execute(async |args: By, cx| {
                            Ok(cx.result("added").update(move |count| count.value += args.by))
                        })
                })
        })
        .step("End", async |cx| Ok(cx.state.value));
    let test = Test::new(ScriptedModel::new([
        Reply::calls([("add", json!({"by": 2})), ("add", json!({"by": 3})), ("big", json!({"by": 30}))]),
        Reply::calls([("add", json!({"by": "x"})), ("nope", json!({}))]),
        Reply::text("Done."),
    ]));
    let run = test.start(&counter, ()).await;
    let Settled::Waiting(pending) = run.settled().await else { panic!("{:?}", run.settled().await) };
    run.approve(&pending[0].call, "ann").await.unwrap();
    let story = Story::of(&run).await;
    insta::assert_snapshot!(story.events());
    insta::assert_snapshot!(story.transcript());
    assert_eq!(run.result().await.unwrap(), 35);
}
