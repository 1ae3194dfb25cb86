//! Tests of the scripted model.

use serde_json::json;

use super::*;
use crate::model::{NoDeltas, Piece};
use crate::record::{Settings, ToolSet, Transcript};

fn request(path: &str) -> ModelRequest {
    ModelRequest {
        path: Path::parse(path).unwrap(),
        attempt: 0,
        system: "".into(),
        context: [].into(),
        tools: std::sync::Arc::new(ToolSet::default()),
        messages: Transcript::default(),
        settings: std::sync::Arc::new(Settings::default()),
    }
}

fn ask(model: &ScriptedModel, path: &str) -> Result<ModelResponse, ModelError> {
    futures::executor::block_on(model.call(&request(path), &NoDeltas))
}

#[test]
fn replies_of_a_loop_and_the_others_are_given_in_order() {
    let model = ScriptedModel::new([Reply::text("one"), Reply::text("two")]).on("Chat/0.1/Ask", [Reply::text("own")]);

    let said: Vec<_> =
        ["Chat/0", "Chat/0.1/Ask/0", "Chat/1"].iter().map(|path| ask(&model, path).unwrap().text()).collect();

    assert_eq!(said, ["one", "own", "two"]);
    assert_eq!(model.requests()[1].path.as_str(), "Chat/0.1/Ask/0");
    model.assert_used();
}

#[test]
fn text_is_streamed_word_by_word() {
    #[derive(Default)]
    struct Collected(Mutex<Vec<Piece>>);
    impl DeltaSink for Collected {
        fn piece(&self, piece: Piece) {
            self.0.lock().push(piece);
        }

        fn restart(&self) {}
    }
    let model = ScriptedModel::new([Reply::call("search", json!({"q": 1})).and_text("Let me see.")]);
    let collected = Collected::default();

    let response = futures::executor::block_on(model.call(&request("Chat/0"), &collected)).unwrap();

    let pieces = collected.0.into_inner();
    let shown: Vec<_> = pieces.iter().map(|piece| (piece.part, piece.text.as_str())).collect();
    assert_eq!(shown, [(0, "Let "), (0, "me "), (0, "see."), (1, "{\"q\":1}")]);
    assert_eq!(pieces[3].tool.as_deref(), Some("search"));
    assert_eq!(response.metadata.finish, Finish::Calls);
}

#[test]
fn request_beyond_the_script_is_an_error() {
    let error = ask(&ScriptedModel::new([]), "Chat/0").unwrap_err();

    assert_eq!(error.kind, ModelErrorKind::Unscripted);
    insta::assert_snapshot!(error, @"the script has no reply for request 1 (at `Chat/0`); add one to the scripted model");
}

#[test]
#[should_panic(
    expected = "2 replies left, the next is the text \"a\"; 1 reply for `Ask` left, the next is a call of f"
)]
fn unused_reply_fails_the_test() {
    drop(ScriptedModel::new([Reply::text("a"), Reply::text("b")]).on("Ask", [Reply::call("f", json!({}))]));
}

#[tokio::test(start_paused = true)]
async fn delayed_reply_waits() {
    let model = ScriptedModel::new([Reply::text("late").after(Duration::from_hours(1))]);

    assert_eq!(model.call(&request("Chat/0"), &NoDeltas).await.unwrap().text(), "late");
}

#[test]
fn function_answers_without_end() {
    let model = ScriptedModel::from_fn(|request| Reply::text(request.path.as_str()));

    assert_eq!(ask(&model, "Chat/7").unwrap().text(), "Chat/7");
    assert!(model.requests().is_empty());
}
