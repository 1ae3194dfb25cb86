//! JSON that nests too deep for the log: from models, code and people.

use positronic_core::machine::Refusal;
use positronic_core::model::scripted::Reply;
use positronic_core::prelude::*;
use positronic_core::record::{Actor, ToolResult};
use positronic_core::runner::{Settled, SignalError};
use serde_json::json;

use crate::support::{Job, Journal, Play, ShopLoop, batch, done, error_of, results, success, workshop};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Loose {
    more: serde_json::Value,
}

/// A text of JSON in which lists stand within one another.
fn nested(levels: usize) -> String {
    format!(r#"{{"more":{}{}}}"#, "[".repeat(levels - 1), "]".repeat(levels - 1))
}

#[tokio::test(start_paused = true)]
async fn arguments_that_nest_too_deep_for_the_log_are_refused_and_the_log_can_be_read() {
    for (levels, runs) in [(64, true), (65, false), (126, false), (127, false), (128, false), (100_000, false)] {
        let play = Play::new([Reply::calls([("loose", json!(nested(levels)))]), done()]);
        let journal = Journal::default();
        let loose = workshop(&journal, |config| {
            config.tool("loose", |t| {
                t.execute(async |given: Loose, _| Ok(if given.more.is_array() { "ran" } else { "odd" }))
            })
        });

        let story = play.run(&loose, ()).await;

        assert!(matches!(story.settled(), Settled::Completed(_)), "{levels}: {:?}", story.settled());
        match &results(&story, "Work")[0] {
            result @ ToolResult::Success { .. } if runs => assert_eq!(*result, success("ran")),
            ToolResult::Error { message } if !runs => assert!(message.contains("the arguments"), "{levels}: {message}"),
            result => panic!("{levels}: {result:?}"),
        }
    }
}

fn deep() -> serde_json::Value {
    (0..126).fold(json!("core"), |inner, _| json!([inner]))
}

#[tokio::test(start_paused = true)]
async fn what_nests_too_deep_for_the_log_is_an_error_of_the_tool_or_the_step_that_made_it() {
    let journal = Journal::default();
    let digging = |config: ShopLoop| config.tool("dig", |t| t.execute(async |_: Job, _| Ok(deep())));
    let play = Play::new([batch([("dig", "a")]), done()]);
    let story = play.run(&workshop(&journal, digging), ()).await;
    assert!(error_of(&results(&story, "Work")[0]).contains("64 levels"), "{:?}", results(&story, "Work"));

    let kept = brain("Kept").state(json!(null)).step("Dig", async |cx| cx.once("deep", async { Ok(deep()) }).await);
    let story = Play::new([]).run(&kept, ()).await;
    let Settled::Failed(failure) = story.settled() else { panic!("{:?}", story.settled()) };
    assert!(failure.message.contains("64 levels"), "{failure}");

    let returned = brain("Returned").state(json!(null)).step("Dig", async |_| Ok(deep()));
    let story = Play::new([]).run(&returned, ()).await;
    let Settled::Failed(failure) = story.settled() else { panic!("{:?}", story.settled()) };
    assert!(failure.message.contains("64 levels"), "{failure}");
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_nests_too_deep_for_the_log_is_refused_and_not_kept() {
    let play = Play::new([]);
    let control = play.test.runner().control();

    let sent = control.deliver("one".into(), "any", "a", deep(), Actor::default()).await;

    let Err(SignalError::Refused(Refusal::Misfit { reason, .. })) = &sent else { panic!("{sent:?}") };
    assert!(reason.contains("64 levels"), "{reason}");
    assert!(control.store().mailbox().await.unwrap().is_empty());
}
