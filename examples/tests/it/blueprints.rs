use positronic_core::projection::request_at;
use positronic_core::record::EventKind;
use positronic_core::testing::Test;
use positronic_examples::blueprints::{CASSETTE, planner};

#[tokio::test(start_paused = true)]
async fn cassette_plays_to_the_end() {
    let story = Test::play(CASSETTE, planner(), ()).await;

    insta::assert_snapshot!("transcript", story.transcript());
    insta::assert_snapshot!("events", story.events());
    insta::assert_json_snapshot!("state", story.state());
}

#[tokio::test(start_paused = true)]
async fn template_follows_the_user_message() {
    let story = Test::play(CASSETTE, planner(), ()).await;

    let asked = story.log().iter().filter(|event| matches!(event.kind, EventKind::LoopModelCall { .. }));
    let templates: Vec<_> = asked
        .map(|event| request_at(story.log().iter().map(|event| &**event), event.seq).unwrap())
        .map(|request| request.context.last().unwrap().name.clone())
        .collect();
    assert_eq!(templates, ["blueprint/Workshop", "blueprint/Workshop", "blueprint/Dinner", "blueprint/Dinner"]);
}
