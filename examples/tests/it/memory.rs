use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::record::{ModelRequest, Start};
use positronic_core::runner::Runner;
use positronic_core::testing::{Lockstep as _, Story, Test};
use positronic_examples::memory::{CASSETTE, Visit, baker};
use positronic_plugins::{FactId, MemoryFacts, SqliteFacts};
use serde_json::json;
use std::sync::Arc;

#[tokio::test(start_paused = true)]
async fn cassette_plays_to_the_end() {
    let story = Test::play(CASSETTE, baker(MemoryFacts::default()), Visit::default()).await;

    insta::assert_snapshot!("transcript", story.transcript());
    insta::assert_snapshot!("events", story.events());
    insta::assert_json_snapshot!("state", story.state());
}

/// Simulates a user's visit in a separate process; returns the context of the model's requests.
async fn visit(file: &std::path::Path, user: &str, says: &str, replies: Vec<Reply>) -> (Vec<String>, Story) {
    let model = Arc::new(ScriptedModel::new(replies));
    let runner = Runner::new(Arc::clone(&model)).lockstep(true);
    let start = Start { user: Some(user.to_owned()), ..Start::default() };
    let says = Visit { says: says.to_owned() };
    let run = runner.start_with(baker(SqliteFacts::open(file).unwrap()), says, start).await.unwrap();
    let story = Story::of(&run).await;
    let shown = |request: &ModelRequest| request.context.iter().map(|item| item.text.clone()).collect::<String>();
    let asked = model.requests().iter().map(shown).collect();
    model.assert_used();
    (asked, story)
}

#[tokio::test]
async fn customer_is_remembered_and_not_confused_with_another() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("facts.db");
    let fact = "The customer cannot eat nuts.";
    let store = Reply::call("memory.store", json!({"fact": fact}));
    visit(&file, "ann", "I cannot eat nuts.", vec![store, Reply::text("Noted.")]).await;

    let (shown, story) =
        visit(&file, "ann", "What do you have without nuts?", vec![Reply::text("Apple cake, without nuts.")]).await;
    insta::assert_snapshot!(shown.join("\n---\n"), @r"
    Facts from earlier conversations, each with its id:
    - The customer cannot eat nuts. (96f1afcd60b8)
    ");
    insta::assert_snapshot!(story.transcript(), @r#"
    # Counter
    user: What do you have without nuts?
    assistant: Apple cake, without nuts.
    = {"type":"answered"}
    "#);

    let (shown, _) = visit(&file, "bob", "What has nuts in it?", vec![Reply::text("The carrot cake.")]).await;
    assert_eq!(shown, [""], "facts of one customer are not shown to another");

    let forget = Reply::call("memory.forget", json!({"id": FactId::of(fact)}));
    let (shown, _) =
        visit(&file, "ann", "I can eat nuts again!", vec![forget, Reply::text("Carrot cake, then?")]).await;
    assert_eq!(shown[1], "", "outdated facts are gone in the next iteration");
}
