use positronic_core::record::EventKind;
use positronic_core::testing::Test;
use positronic_examples::rover::{CASSETTE, rover};

#[tokio::test(start_paused = true)]
async fn the_cassette_plays_to_the_end() {
    let story = Test::play(CASSETTE, rover(), ()).await;

    insta::assert_snapshot!("transcript", story.transcript());
    insta::assert_json_snapshot!("state", story.state());
}

#[tokio::test(start_paused = true)]
async fn what_is_not_in_the_space_of_actions_is_asked_for_again_and_what_fails_is_read() {
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
