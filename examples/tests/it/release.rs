use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::runner::Settled;
use positronic_core::testing::{Story, Test};
use positronic_examples::release::{CASSETTE, release};
use serde_json::json;

/// Returns the cassette without its last answer, which is for a refusal.
pub(crate) fn approved() -> &'static str {
    CASSETTE.split("// After a refusal").next().unwrap()
}

#[tokio::test(start_paused = true)]
async fn cassette_plays_to_the_end() {
    let story = Test::play(approved(), release(), ()).await;

    insta::assert_snapshot!("transcript", story.transcript());
    insta::assert_snapshot!("events", story.events());
    insta::assert_json_snapshot!("state", story.state());
}

#[tokio::test(start_paused = true)]
async fn cassette_plays_to_the_end_after_a_refusal() {
    let refused =
        CASSETTE.replace(r#"{"type": "approve", "call": "Ship/3.0"}"#, r#"{"type": "reject", "call": "Ship/3.0"}"#);

    let story = Test::play(&refused, release(), ()).await;

    assert_eq!(story.state()["postponed"], "The deployment was refused.");
    assert_eq!(story.state()["deployed"], json!(null));
}

#[tokio::test(start_paused = true)]
async fn rejected_release_is_not_deployed() {
    let model = ScriptedModel::new([
        Reply::call("run_tests", json!({})),
        Reply::call("run_tests", json!({})),
        Reply::call("deploy", json!({"version": "1.4.0"})),
        Reply::text("It is not for today, then."),
        Reply::call("postpone", json!({"reason": "The release manager said no."})),
    ]);
    let run = Test::new(model).start(release(), ()).await;
    let Settled::Waiting(pending) = run.settled().await else { panic!("no approval was requested") };

    run.reject(&pending[0].call, "not on a Friday", "the release manager").await.unwrap();

    let story = Story::of(&run).await;
    insta::assert_snapshot!(story.transcript());
    let release = run.result().await.unwrap();
    assert_eq!(release.deployed, None);
    assert_eq!(release.postponed.as_deref(), Some("The release manager said no."));
}

#[tokio::test(start_paused = true)]
async fn text_does_not_end_an_untested_release() {
    let model = ScriptedModel::new([Reply::text("Released!"), Reply::call("run_tests", json!({}))]);
    let run = Test::new(model).start(release(), ()).await;

    let Settled::Failed(failure) = run.settled().await else { panic!("{:?}", run.settled().await) };

    assert!(failure.message.contains("script"), "the model is asked until it calls an exit tool: {}", failure.message);
}
