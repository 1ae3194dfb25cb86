//! Tests of recording and replaying.

use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::model::scripted::{Reply, ScriptedModel};
use crate::model::wrap::Concurrency;
use crate::model::{Model, NoDeltas};
use crate::prices::PriceTable;
use crate::record::{
    Message, ModelError, ModelErrorKind, ModelRequest, ModelResponse, Path, Settings, SignalKind, ToolSet, Transcript,
};

fn request(path: &str, messages: &Transcript) -> ModelRequest {
    ModelRequest {
        path: Path::parse(path).unwrap(),
        attempt: 0,
        system: "You help.".into(),
        context: [].into(),
        tools: Arc::new(ToolSet::default()),
        messages: messages.clone(),
        settings: Arc::new(Settings::default()),
    }
}

fn user(text: &str) -> Message {
    Message::user(text)
}

fn ask(model: &dyn Model, request: &ModelRequest) -> Result<ModelResponse, ModelError> {
    futures::executor::block_on(model.call(request, &NoDeltas))
}

/// Sends three requests of two loops, one of which fails at first.
fn run(model: &dyn Model) -> Vec<Result<ModelResponse, ModelError>> {
    let (mut chat, inner) = (Transcript::new([user("one")]), Transcript::new([user("inner")]));
    let mut outcomes = vec![ask(model, &request("Chat/0", &chat)), ask(model, &request("Chat/0.0/Ask/0", &inner))];
    outcomes.push(ask(model, &ModelRequest { attempt: 1, ..request("Chat/0", &chat) }));
    chat.push(user("two"));
    outcomes.push(ask(model, &request("Chat/1", &chat)));
    outcomes
}

fn recorded() -> Cassette {
    let cassette = Cassette::record(Arc::new(ScriptedModel::new([
        Reply::error(ModelError::new(ModelErrorKind::Server, "busy")),
        Reply::text("inner answer"),
        Reply::call("search", json!({"q": "x", "api_key": "k"})),
        Reply::text("done"),
    ])));
    run(&cassette);
    cassette
        .record_signal("Chat/0.0", &SignalKind::Approve { call: Path::parse("Chat/0.0").unwrap(), arguments: None });
    cassette
}

#[test]
fn recording_is_linear_and_readable() {
    insta::assert_snapshot!(recorded().to_text());
}

#[test]
fn replay_returns_the_recorded_answers_in_any_order() {
    let replay = Cassette::replay(&recorded().to_text()).unwrap();
    let outcomes = run(&replay);

    assert_eq!(outcomes[0].as_ref().unwrap_err().message, "busy");
    assert_eq!(outcomes[1].as_ref().unwrap().text(), "inner answer");
    assert_eq!(outcomes[2].as_ref().unwrap().calls[0].arguments, "{\"api_key\":\"[hidden]\",\"q\":\"x\"}");
    assert_eq!(outcomes[3].as_ref().unwrap().text(), "done");
    assert_eq!(replay.unused(), ["a signal after `Chat/0.0`"]);
    assert_eq!(replay.name(), "scripted/scripted");
}

#[test]
fn only_replays_are_answered_by_other_models_than_requests_name() {
    let replay = Arc::new(Cassette::replay(&recorded().to_text()).unwrap());

    assert!(!recorded().is_replay());
    assert!(replay.is_replay());
    assert!(Concurrency::new(replay, 1).is_replay(), "a wrapper answers as the wrapped model does");
}

#[test]
fn request_that_differs_is_rejected_with_the_difference() {
    let replay = Cassette::replay(&recorded().to_text()).unwrap();
    let chat = Transcript::new([user("one"), user("three")]);

    let error = ask(&replay, &request("Chat/1", &chat)).unwrap_err();
    insta::assert_snapshot!(error, @r#"
    the request at `Chat/1` differs from the recorded one: /messages/1/text differs
      recorded:  "two"
      attempted: "three"
    "#);
    let error = ask(&replay, &request("Chat/1", &Transcript::new([user("one")]))).unwrap_err();
    insta::assert_snapshot!(error, @r#"
    the request at `Chat/1` differs from the recorded one: /messages/1 differs
      recorded:  {"role":"user","text":"two"}
      attempted: nothing
    "#);
    let error = ask(&replay, &request("Chat/2", &chat)).unwrap_err();
    insta::assert_snapshot!(error, @"the cassette has no answer for the request at `Chat/2`; its next unused answer is at `Chat/0`");
    assert_eq!(error.kind, ModelErrorKind::Unscripted);
}

#[test]
fn hidden_secret_does_not_count_as_a_difference() {
    let messages = Transcript::new([user("my pin is 4711")]);
    let inner = Arc::new(ScriptedModel::new([Reply::text("I know 4711")]));
    let recording = Cassette::record(inner).hide(["4711"]);
    assert_eq!(ask(&recording, &request("Chat/0", &messages)).unwrap().text(), "I know 4711");

    let text = recording.to_text();
    assert!(!text.contains("4711"), "{text}");
    let replay = Cassette::replay(&text).unwrap().hide(["4711"]);
    assert_eq!(ask(&replay, &request("Chat/0", &messages)).unwrap().text(), "I know [hidden]");
}

#[test]
fn hand_written_usage_is_priced_by_the_headers_model() {
    let replay = Cassette::replay(
        r#"
        {"cassette": 1, "model": "openai/gpt-5"}
        {"at": "Chat", "reply": {"text": "one", "usage": {"input": 1000000, "output": 100000}}}
        {"at": "Chat", "reply": {"text": "two"}}
        "#,
    )
    .unwrap();

    let prices = PriceTable::bundled();
    let costs: Vec<_> =
        replay.metadata().iter().map(|metadata| prices.charge(metadata).map(|one| one.amount)).collect();

    assert_eq!(costs, [Some("2.25".parse().unwrap()), None], "a reply without usage has no price");
    let one = ask(&replay, &request("Chat/0", &Transcript::default())).unwrap();
    assert_eq!(
        (&*one.metadata.provider, &*one.metadata.model, one.metadata.usage.output),
        ("openai", "gpt-5", 100_000)
    );
    assert_eq!(replay.metadata().len(), 1, "an answer that is given in order is used once");
    replay.restart();
    assert_eq!(ask(&replay, &request("Chat/0", &Transcript::default())).unwrap().text(), "one");
}

#[test]
fn cassette_can_be_written_by_hand() {
    let replay = Cassette::replay(
        r#"
        // a refund
        {"cassette": 1, "note": "written by hand", "goal": "Refund order 7"}
        {"at": "Chat", "reply": {"text": "Let me see.", "calls": [{"name": "order", "arguments": {"id": 7}}, {"name": "list"}]}}
        {"reply": {"text": "for any request"}}
        {"at": "Chat", "error": {"kind": "server", "message": "busy"}}
        {"at": "Chat/9", "reply": {"text": "at its path", "usage": {"input": 5}}}
        {"after": "Chat/0.0", "signal": {"type": "webhook", "name": "slack", "identifier": "t1", "payload": {"ok": true}}}
        "#,
    )
    .unwrap();
    let none = Transcript::default();

    assert_eq!(ask(&replay, &request("Other/0", &none)).unwrap().text(), "for any request");
    let nine = ask(&replay, &request("Chat/9", &none)).unwrap();
    assert_eq!((nine.text().as_str(), nine.metadata.usage.input), ("at its path", 5));
    let first = ask(&replay, &request("Chat/0", &none)).unwrap();
    assert_eq!((first.parts.len(), first.calls[0].arguments.as_str()), (3, "{\"id\":7}"));
    assert_eq!(first.calls[1].arguments, "{}");
    assert_eq!(ask(&replay, &request("Chat/1", &none)).unwrap_err().message, "busy");
    assert_eq!(replay.header().goal, Some(json!("Refund order 7")));
    let asked = [AwaitedSignal::Webhook { name: "slack", identifier: "t1" }];
    assert!(matches!(replay.next_signal(&asked), Some(SignalKind::Webhook { .. })));
    assert_eq!(replay.next_signal(&asked), None);
}

#[test]
fn signal_is_replayed_when_its_wait_is_pending() {
    let replay = Cassette::replay(&recorded().to_text()).unwrap();
    let (call, other) = (Path::parse("Chat/0.0").unwrap(), Path::parse("Chat/0.1").unwrap());

    assert_eq!(replay.next_signal(&[AwaitedSignal::Approval(&other), AwaitedSignal::Reply(&call)]), None);
    let approve = SignalKind::Approve { call: call.clone(), arguments: None };
    assert_eq!(replay.next_signal(&[AwaitedSignal::Approval(&other), AwaitedSignal::Approval(&call)]), Some(approve));
}

#[test]
fn invalid_cassette_names_the_line() {
    let sentence = |text: &str| Cassette::replay(text).unwrap_err().to_string();

    insta::assert_snapshot!(sentence(""), @r#"the first line is not a cassette header such as {"cassette": 1}"#);
    insta::assert_snapshot!(sentence("{\"cassette\":2}"), @"unsupported cassette format 2; this version reads format 1");
    let line = |line: &str| sentence(&format!("{{\"cassette\":1}}\n\n{line}"));
    insta::assert_snapshot!(line("{}"), @"invalid line 3 of the cassette: it requires either a `reply` or an `error`");
    assert!(line("{\"at\":\"Chat/0\",\"reply\":{\"txt\":\"\"}}").contains("unknown field `txt`"));
    assert!(line("{\"at\":\"Chat//0\",\"reply\":{}}").contains("is not a valid path"));
    assert!(line("{\"at\":\"Chat/0\",\"request\":{\"from\":3},\"reply\":{}}").contains("only 0 messages are known"));
}

#[test]
fn long_recording_grows_linearly() {
    let cassette = Cassette::record(Arc::new(ScriptedModel::from_fn(|_| Reply::text("ok"))));
    let mut messages = Transcript::default();
    let mut sizes = Vec::new();
    for iteration in 0..200 {
        messages.push(user("again"));
        ask(&cassette, &request(&format!("Chat/{iteration}"), &messages)).unwrap();
        sizes.push(cassette.to_text().len());
    }

    let line = sizes[199] - sizes[198];
    assert!(line < 2 * (sizes[11] - sizes[10]), "{line}");
    let replay = Cassette::replay(&cassette.to_text()).unwrap();
    assert!(ask(&replay, &request("Chat/199", &messages)).is_ok());
}

#[test]
fn structured_action_is_written_as_a_document() {
    let cassette = "{\"cassette\": 1}\n{\"reply\": {\"structured\": {\"reasoning\": \"It is due.\", \"action\": \"safe\", \"input\": {\"id\": \"a\"}}, \"usage\": {\"input\": 7}}}";

    let answer = ask(&Cassette::replay(cassette).unwrap(), &request("Chat/0", &Transcript::default())).unwrap();

    let decided = Reply::action("It is due.", "safe", json!({"id": "a"}));
    let scripted = ask(&ScriptedModel::new([decided]), &request("Chat/0", &Transcript::default())).unwrap();
    assert_eq!(answer.text(), scripted.text());
    assert_eq!(answer.metadata.usage.input, 7);
}

#[test]
fn exact_cassette_covers_only_its_options() {
    let exact = Header { exact: true, options: Some(json!({"goal": "a", "search": "bundled"})), ..Header::default() };
    let others = Header { exact: false, ..exact.clone() };

    assert_eq!(exact.unanswered(&json!({"goal": "a", "search": "bundled", "folder": "x"})), None);
    assert_eq!(exact.unanswered(&json!({"goal": "b", "search": "bundled"})), Some(("goal", &json!("a"))));
    assert_eq!(exact.unanswered(&json!({"goal": "a"})), Some(("search", &json!("bundled"))));
    assert_eq!(others.unanswered(&json!({"goal": "b"})), None);
    let parsed = Cassette::replay("{\"cassette\": 1, \"exact\": true, \"options\": {\"goal\": \"a\"}}").unwrap();
    assert!(Cassette::replay(&parsed.to_text()).unwrap().header().exact);
}
