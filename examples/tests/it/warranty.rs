use positronic_core::model::scripted::ScriptedModel;
use positronic_core::testing::Test;
use positronic_examples::warranty::{CASSETTE, Claim, Declined, warranty};

#[tokio::test(start_paused = true)]
async fn cassette_plays_to_the_end() {
    let story = Test::play(CASSETTE, warranty(), Claim::default()).await;

    insta::assert_snapshot!("transcript", story.transcript());
    insta::assert_snapshot!("events", story.events());
}

#[tokio::test(start_paused = true)]
async fn claim_after_the_warranty_is_declined_without_a_model() {
    let claim = Claim { months: 25, ..Claim::default() };
    let run = Test::new(ScriptedModel::new([])).start(warranty(), claim).await;
    assert_eq!(run.result().await.unwrap(), Err(Declined::TooOld { months: 25 }));
}
