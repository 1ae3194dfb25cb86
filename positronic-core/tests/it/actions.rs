//! Actions of a project, selected by name.

use positronic_core::definition::UnknownAction;
use positronic_core::dsl::Action;
use positronic_core::model::scripted::Reply;
use positronic_core::prelude::*;
use positronic_core::record::{EndReason, ToolResult};
use positronic_core::runner::{Settled, StartError};
use positronic_core::testing::Story;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::{Play, results, waits};

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Notes {
    notes: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Note {
    text: String,
}

/// Services of the brain, unknown to the action.
struct Desk;

/// Stores a note; reads the state as JSON.
fn note() -> Action {
    Action::new("note.take", |t| {
        t.description("Takes a note")
            .approval(|note: &Note, cx| {
                let many = cx.state["notes"].as_array().map_or(0, Vec::len) > 0;
                many.then(|| format!("another note: {}", note.text))
            })
            .execute(async |Note { text }, cx| {
                let count = cx.state["notes"].as_array().map_or(0, Vec::len);
                Ok(cx.result(count + 1).update(move |state: &mut Value| {
                    if let Some(notes) = state["notes"].as_array_mut() {
                        notes.push(text.into());
                    }
                }))
            })
    })
}

fn finish() -> Action {
    Action::new("finish", |t| t.description("Ends the work").exit().execute(async |_: NoArgs, _| Ok("done")))
}

fn agent(names: &'static [&'static str]) -> Brain<(), Notes> {
    brain("Agent")
        .services::<Desk>()
        .state(Notes::default())
        .actions(["note.take", "finish"])
        .r#loop("Act", move |cx| cx.system("Act.").input("begin").structured_actions().actions(names.iter().copied()))
        .bind(Desk)
}

fn with_actions(play: Play) -> Play {
    play.map(|runner| runner.action(note()).action(finish()))
}

fn failure(story: &Story) -> (EndReason, String) {
    match story.settled() {
        Settled::Failed(failure) => (failure.code, failure.message.clone()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn loop_selects_actions_by_name_and_they_read_and_change_its_state_as_json() {
    let take = |text: &str| Reply::action("So it is kept.", "note.take", json!({ "text": text }));
    let play = with_actions(Play::new([take("a"), take("b"), Reply::action("Done.", "finish", json!({}))]));
    let run = play.start(&agent(&["note.take", "finish"]), ()).await;
    assert_eq!(waits(&run).await, ["Act/1.0"], "its approval sees the state, too");

    run.approve(&crate::support::path("Act/1.0"), "ann").await.unwrap();
    let story = play.story(&run).await;

    assert_eq!(*story.settled(), Settled::Completed(json!({ "notes": ["a", "b"] })));
    assert_eq!(results(&story, "Act")[..2], [ToolResult::success(1), ToolResult::success(2)]);
}

#[tokio::test(start_paused = true)]
async fn run_of_a_brain_with_an_unknown_action_does_not_start() {
    let play = Play::new([]);
    let outer = brain("Outer").step("Begin", async |_| Ok(())).brain("Inner", agent(&[])).map_output(|state, _| state);

    let started = play.test.runner().clone().action(finish()).start(&outer, ()).await;

    let Err(StartError::Action(unknown)) = started else { panic!("it has started") };
    assert_eq!(
        unknown,
        UnknownAction { brain: "Agent".to_owned(), action: "note.take".to_owned(), known: vec!["finish".to_owned()] }
    );
    assert_eq!(unknown.to_string(), "the brain `Agent` uses the unknown action `note.take`; the project has `finish`");
}

#[tokio::test(start_paused = true)]
async fn loop_selects_only_actions_that_its_brain_names() {
    let play = with_actions(Play::new([]));

    let story = play.run(&agent(&["note.take", "fly"]), ()).await;

    assert_eq!(
        failure(&story),
        (
            EndReason::Config,
            "the loop `Act` cannot be configured: `actions` names `fly`, which the brain does not declare; add it to the brain's `.actions([…])`, before its loops"
                .to_owned()
        )
    );
    let twice = play.run(&agent(&["finish", "finish"]), ()).await;
    assert!(failure(&twice).1.ends_with("the loop has two tools named `finish`; choose one of them"));
}

#[tokio::test(start_paused = true)]
async fn waiting_run_finds_its_actions_in_another_process() {
    use positronic_core::model::scripted::ScriptedModel;
    use positronic_core::store::MemoryStore;
    let store = MemoryStore::new();
    let runner = || {
        let model = ScriptedModel::from_fn(|request| match request.path.as_str() {
            "Act/0" | "Act/1" => Reply::action("So.", "note.take", json!({ "text": request.path.as_str() })),
            _ => Reply::action("Done.", "finish", json!({})),
        });
        Runner::new(model)
            .store(store.clone())
            .linger(std::time::Duration::ZERO)
            .action(note())
            .action(finish())
            .brain(agent(&["note.take", "finish"]))
    };
    let first = runner();
    let run = first.start(&agent(&["note.take", "finish"]), ()).await.unwrap();
    assert_eq!(waits(&run).await, ["Act/1.0"]);
    first.release().await;

    let second = runner().resume(run.id()).await.unwrap();
    second.approve(&crate::support::path("Act/1.0"), "ann").await.unwrap();

    assert_eq!(second.result().await.unwrap(), json!({ "notes": ["Act/0", "Act/1"] }));
}
