use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::testing::Test;
use positronic_examples::minimal::{CASSETTE, minimal};
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn cassette_plays_to_the_end() {
    let story = Test::play(CASSETTE, minimal(), ()).await;

    insta::assert_snapshot!("transcript", story.transcript());
    insta::assert_snapshot!("events", story.events());
}

#[tokio::test(start_paused = true)]
async fn text_without_a_call_gets_a_reminder_to_call_a_tool() {
    let model = ScriptedModel::new([Reply::text("116 metres."), Reply::call("done", json!({}))]);

    let story = Test::new(model).run(minimal(), ()).await;

    insta::assert_snapshot!(story.transcript());
}
