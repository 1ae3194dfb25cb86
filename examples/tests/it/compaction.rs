use positronic_core::projection::request_at;
use positronic_core::record::EventKind;
use positronic_core::testing::Test;
use positronic_examples::compaction::{CASSETTE, proofreader};

#[tokio::test(start_paused = true)]
async fn cassette_plays_to_the_end() {
    let story = Test::play(CASSETTE, proofreader(), ()).await;

    insta::assert_snapshot!("transcript", story.transcript());
    insta::assert_snapshot!("events", story.events());
    insta::assert_json_snapshot!("state", story.state());
}

#[tokio::test(start_paused = true)]
async fn request_shrinks_and_grows_back_to_full_size() {
    let story = Test::play(CASSETTE, proofreader(), ()).await;

    let asked = story.log().iter().filter(|event| matches!(event.kind, EventKind::LoopModelCall { .. }));
    let lengths: Vec<_> = asked
        .map(|event| request_at(story.log().iter().map(|event| &**event), event.seq).unwrap().messages.len())
        .collect();
    assert_eq!(lengths, [1, 3, 5, 7, 1, 5, 7, 13]);
}
