use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::runner::Settled;
use positronic_core::testing::{Story, Test};
use positronic_examples::modes::{CASSETTE, Problem, helpdesk};
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn cassette_plays_to_the_end() {
    let story = Test::play(CASSETTE, helpdesk(), Problem::default()).await;

    insta::assert_snapshot!("transcript", story.transcript());
    insta::assert_snapshot!("events", story.events());
    insta::assert_json_snapshot!("state", story.state());
}

#[tokio::test(start_paused = true)]
async fn loop_waits_for_the_customer_after_it_enters_that_mode() {
    let enter = |mode: &str| Reply::call("mode_enter", json!({ "mode": mode }));
    let model = ScriptedModel::new([enter("solving"), enter("awaiting_response")]);

    let run = Test::new(model).start(helpdesk(), Problem::default()).await;

    let Settled::Waiting(pending) = run.settled().await else { panic!("it does not wait") };
    assert_eq!(pending[0].call.as_str(), "Chat/1.0");
    insta::assert_snapshot!(Story::of(&run).await.transcript());
}
