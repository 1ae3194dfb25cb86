use positronic_core::testing::Test;
use positronic_examples::nested::{CASSETTE, Newsroom, Topic, newsletter};

#[tokio::test(start_paused = true)]
async fn cassette_plays_to_the_end() {
    let story = Test::play(CASSETTE, newsletter().bind(Newsroom::example()), Topic::default()).await;

    insta::assert_snapshot!("transcript", story.transcript());
    insta::assert_snapshot!("events", story.events());
    insta::assert_json_snapshot!("state", story.state());
}
