use std::sync::Arc;

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::record::{Attachment, FileRef, Message, Start, UserMessage};
use positronic_core::runner::Runner;
use positronic_core::testing::{Lockstep as _, Test};
use positronic_examples::flags::{CASSETTE, FLAG, flags};
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn cassette_plays_to_the_end() {
    let story = Test::play(CASSETTE, flags(), ()).await;

    insta::assert_snapshot!(story.transcript(), @r#"
    # Look
    user: Whose flag is this?
    user: [file flag.png, image/png, 100 bytes]
    country({"name":"Ireland"}) -> capital: Dublin; the flag is 1:2, with green at the hoist
    assistant: Green at the hoist, then white and orange: this is the flag of Ireland. Its capital is Dublin.
    = {"type":"answered"}
    "#);
}

/// Runs the brain, and returns the files of the last request with their loaded bytes.
async fn seen(message: Option<UserMessage>) -> Vec<(String, Option<Vec<u8>>)> {
    let replies = [Reply::call("country", json!({"name": "Ireland"})), Reply::text("Ireland.")];
    let model = Arc::new(ScriptedModel::new(replies));
    let runner = Runner::new(Arc::clone(&model)).lockstep(true);
    let run = runner.start_with(flags(), (), Start { message, ..Start::default() }).await.unwrap();
    run.result().await.unwrap();
    let messages = model.requests().last().unwrap().messages.messages();
    let files = messages.iter().flat_map(Message::files);
    files.map(|file: &Attachment| (file.file().name.clone(), file.bytes().map(<[u8]>::to_vec))).collect()
}

#[tokio::test(start_paused = true)]
async fn model_gets_the_bytes_of_the_picture_in_each_request() {
    assert_eq!(seen(None).await, [("flag.png".to_owned(), Some(FLAG.to_vec()))]);
}

#[tokio::test(start_paused = true)]
async fn picture_of_a_message_takes_the_place_of_the_bundled_one() {
    let photo = FileRef::url("https://example.org/photo.jpg", "image/jpeg");

    let seen = seen(Some(UserMessage::new("And this?").file(photo))).await;

    assert_eq!(seen, [("photo.jpg".to_owned(), None)]);
}
