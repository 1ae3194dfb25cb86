use positronic_core::record::EventKind;
use positronic_core::testing::Test;
use positronic_examples::rover::{CASSETTE, rover};

#[tokio::test(start_paused = true)]
async fn cassette_plays_to_the_end() {
    let story = Test::play(CASSETTE, rover(), ()).await;

    insta::assert_snapshot!("transcript", story.transcript());
    insta::assert_json_snapshot!("state", story.state());
}

#[tokio::test(start_paused = true)]
async fn actions_outside_the_space_are_requested_again_and_failures_are_read() {
    let story = Test::play(CASSETTE, rover(), ()).await;

    let refused: Vec<_> = story
        .log()
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::LoopAnswerRefused { message, .. } => Some(message.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(refused.len(), 1);
    assert!(refused[0].contains("right") && refused[0].contains("east"), "{}", refused[0]);
    assert!(
        story.transcript().contains("Error: 30 steps are too many: there is power for 6"),
        "{}",
        story.transcript()
    );
}
