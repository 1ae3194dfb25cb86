//! `positronic run`: messages, and loops that a limit ended.

use std::sync::Arc;

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{Message, Tier};
use serde_json::json;

use super::tests::{Outcome, call_given};
use crate::app::{Project, Settings};

fn talker() -> Brain<(), ()> {
    brain("Talker").r#loop("Talk", |cx| cx.system("You help.")).build()
}

fn asker() -> Brain<(), ()> {
    brain("Asker").r#loop("Ask", |cx| cx.system("You help.").input("What is there?")).build()
}

fn worker() -> Brain<(), ()> {
    brain("Worker")
        .r#loop("Work", |cx| {
            let config = cx.system("You work.").max_iterations(3);
            config.tool("finish", |t| t.exit().execute(async |_: NoArgs, _| Ok("done")))
        })
        .step("Close", async |_| Ok(()))
        .build()
}

fn idle() -> Brain<(), ()> {
    brain("Idle").step("Do", async |_| Ok(())).build()
}

fn run(model: &Arc<ScriptedModel>, arguments: &[&str], terminal: bool) -> Outcome {
    let brains = Project::new().brain(talker()).brain(asker()).brain(worker()).brain(idle());
    let project = brains.model(Tier::Normal, Arc::clone(model) as Arc<dyn positronic_core::model::Model>);
    let settings = Settings { stderr_is_terminal: terminal, ..Settings::default() };
    let arguments = [&["run"], arguments, &["--memory", "--plain"]].concat();
    call_given(&project, &arguments, "", settings)
}

fn says(text: &'static str) -> Arc<ScriptedModel> {
    Arc::new(ScriptedModel::from_fn(move |_| Reply::text(text)))
}

#[test]
fn message_opens_the_first_loop() {
    let model = Arc::new(ScriptedModel::new([Reply::text("Good day.")]));

    let answered = run(&model, &["talker", "--message", "Hello"], true);

    assert_eq!(answered.code, 0, "{}", answered.err);
    let messages = model.requests().remove(0).messages.messages();
    assert!(matches!(messages.as_slice(), [Message::User { text, .. }] if text == "Hello"), "{messages:?}");
    assert!(!answered.err.contains("got no message"), "{}", answered.err);
}

#[test]
fn message_without_a_loop_is_refused_and_opens_a_loop_in_place_of_its_input() {
    let model = Arc::new(ScriptedModel::new([Reply::text("There is a tree.")]));

    let refused = run(&model, &["idle", "--message", "Hello"], false);
    let own = run(&model, &["asker", "--message", "Hello"], false);

    insta::assert_snapshot!(refused.err, @r"
    error: `Idle` accepts no message: it has no loop of its own
      remove --message
    ");
    assert_eq!((refused.code, own.code), (2, 0), "{}", own.err);
    let messages = model.requests().remove(0).messages.messages();
    assert!(matches!(messages.as_slice(), [Message::User { text, .. }] if text == "Hello"), "{messages:?}");
}

#[test]
fn run_without_a_message_suggests_chat() {
    let hint = "`Talker` got no message; send one with --message TEXT, or chat with it: desk chat Talker";

    let silent = run(&says("How can I help?"), &["talker", "--color", "never"], true);

    let err = silent.err.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(silent.code == 0 && err.ends_with(hint), "{}", silent.err);
    assert!(
        !run(&says("How can I help?"), &["talker"], false).err.contains("got no message"),
        "the brain reads no message"
    );
    assert!(!run(&says("A tree."), &["asker"], true).err.contains("got no message"));
    let refused = Arc::new(ScriptedModel::new([]));
    assert!(run(&refused, &["talker"], true).err.contains("got no message"), "some providers want a message");
    let works = Arc::new(ScriptedModel::new([Reply::call("finish", json!({}))]));
    assert!(!run(&works, &["worker"], true).err.contains("got no message"), "its instructions say what to do");
}

#[test]
fn loop_ended_by_its_limit_is_reported() {
    let stopped = run(&says("I will."), &["worker"], false);

    assert_eq!(stopped.code, 8, "its brain goes on: {}", stopped.err);
    let why = "the loop `Work` was stopped by its limit of 3 iterations before it was complete\n";
    assert!(stopped.err.ends_with(why), "{}", stopped.err);
    let works = Arc::new(ScriptedModel::new([Reply::text("Soon."), Reply::call("finish", json!({}))]));
    assert!(!run(&works, &["worker"], false).err.contains("stopped"));
    let budget = run(&says("I will."), &["worker", "--max-iterations", "2", "--at-limit", "end"], false);
    let why = "the loop `Work` was stopped by the run's limit of 2 iterations before it was complete\n";
    assert!(budget.code == 8 && budget.err.ends_with(why), "{}", budget.err);
}

#[test]
fn start_that_does_not_fit_is_a_usage_error_and_no_failed_run() {
    let model = Arc::new(ScriptedModel::new([]));
    let long = "x".repeat(65);
    for tag in ["", &long, "a\u{7}b"] {
        let outcome = run(&model, &["idle", "--tag", tag], false);
        assert_eq!(outcome.code, 2, "{}", outcome.err);
        assert!(outcome.err.contains("the tag"), "{}", outcome.err);
    }
}
