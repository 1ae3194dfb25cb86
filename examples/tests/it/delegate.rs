use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::testing::Test;
use positronic_examples::delegate::{CASSETTE, Wish, trip};
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn cassette_plays_to_the_end() {
    let story = Test::play(CASSETTE, trip(), Wish::default()).await;

    insta::assert_snapshot!("transcript", story.transcript());
    insta::assert_snapshot!("events", story.events());
    insta::assert_json_snapshot!("state", story.state());
}

#[tokio::test(start_paused = true)]
async fn failed_brain_is_a_result_that_the_model_reads() {
    let model = ScriptedModel::new([
        Reply::calls([("find_train", json!({"town": "Atlantis"})), ("find_train", json!({"village": "Ghent"}))]),
        Reply::text("No train goes there."),
    ]);

    let story = Test::new(model).run(trip(), Wish { wish: "Atlantis!".into() }).await;

    insta::assert_snapshot!(story.transcript());
}
