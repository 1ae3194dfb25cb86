//! `Actions`: the tools of an enum, and a loop over them.

use positronic_core::Actions;
use positronic_core::dsl::{Act, Actions as _};
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{CallFlags, EventKind};
use positronic_core::runner::Settled;
use positronic_core::testing::Test;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What the robot has to report.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Report {
    /// The report in a sentence.
    text: String,
}

#[derive(Debug, Actions)]
enum Robot {
    /// Moves by some steps.
    ///
    /// Walls stop it.
    Move {
        /// Steps to the right.
        dx: i32,
        #[serde(default)]
        dy: i32,
        #[schemars(range(min = 1, max = 3))]
        #[serde(rename = "speed", default = "slow")]
        pace: u8,
    },
    /// Looks around.
    #[action(read_only, title = "Look")]
    LookAround,
    /// Opens a door.
    #[action(approval = "a door is not ours", destructive, name = "door.open")]
    Open {},
    /// Reports, which ends the work.
    #[action(exit)]
    Finish(Report),
}

fn slow() -> u8 {
    1
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Place {
    at: (i32, i32),
    opened: bool,
    report: Option<String>,
}

fn walk() -> Brain<(), Place> {
    brain("Walk")
        .state(Place::default())
        .r#loop("Walk", |cx| {
            cx.system("Find the door.").structured_actions().act(async |action: Robot, cx| match action {
                Robot::Move { dx, dy, pace } => {
                    let pace = i32::from(pace);
                    let moved = move |place: &mut Place| place.at = (place.at.0 + dx * pace, place.at.1 + dy * pace);
                    Ok(cx.result(pace).update(moved))
                }
                Robot::LookAround => Ok(cx.result(format!("a door behind {:?}", cx.state.at))),
                Robot::Open {} => Ok(cx.result("open").update(|place| place.opened = true)),
                Robot::Finish(Report { text }) if text.is_empty() => Err(Error::new("a report says something")),
                Robot::Finish(Report { text }) => Ok(cx.result("noted").update(|place| place.report = Some(text))),
            })
        })
        .build()
}

fn tools() -> Vec<Tool> {
    let nothing: Act<Robot, (), (), (), ()> = std::sync::Arc::new(|_, _| Box::pin(async { Ok(()) }));
    Robot::tools(nothing)
}

#[test]
fn each_variant_is_a_tool_with_its_docs_fields_and_flags() {
    let tools = tools();
    let about: Vec<_> = tools.iter().map(|tool| (tool.decl().id.as_str(), tool.decl().description.as_str())).collect();

    assert_eq!(
        about,
        [
            ("move", "Moves by some steps.\n\nWalls stop it."),
            ("look_around", "Looks around."),
            ("door.open", "Opens a door."),
            ("finish", "Reports, which ends the work.")
        ]
    );
    let schema = &tools[0].decl().parameters;
    assert_eq!(schema["properties"]["dx"]["description"], "Steps to the right.");
    assert_eq!(schema["properties"]["speed"]["maximum"], 3);
    assert_eq!((&schema["required"], &schema["additionalProperties"]), (&json!(["dx"]), &json!(false)));
    assert_eq!(tools[1].decl().parameters["type"], "object");
    assert_eq!(tools[3].decl().parameters["required"], json!(["text"]));
    let plain = CallFlags::default();
    let flags: Vec<_> = tools.iter().map(|tool| tool.decl().flags).collect();
    let looks = CallFlags { read_only: true, ..plain };
    assert_eq!(flags, [plain, looks, CallFlags { destructive: true, ..plain }, CallFlags { exit: true, ..plain }]);
    assert_eq!(tools[1].decl().title.as_deref(), Some("Look"));
}

#[tokio::test]
async fn one_function_executes_the_models_action() {
    let model = ScriptedModel::new([
        Reply::action("Where?", "look_around", json!({})),
        Reply::action("There.", "move", json!({ "dx": 2, "speed": 3 })),
        Reply::action("Faster.", "move", json!({ "dx": 2, "speed": 9 })),
        Reply::action("Back.", "move", json!({ "dx": -1 })),
        Reply::action("Done.", "finish", json!({ "text": "" })),
        Reply::action("Done.", "finish", json!({ "text": "I am here." })),
    ]);

    let story = Test::new(model).run(&walk(), ()).await;

    let state: Place = serde_json::from_value(story.state().clone()).unwrap();
    assert_eq!(state, Place { at: (5, 0), opened: false, report: Some("I am here.".to_owned()) });
    let refused = story.log().iter().find_map(|event| match &event.kind {
        EventKind::LoopAnswerRefused { message, .. } => Some(message.clone()),
        _ => None,
    });
    assert_eq!(
        refused.as_deref(),
        Some("the input of `move` does not match its schema: at `/speed`: 9 is greater than the maximum of 3")
    );
}

#[tokio::test]
async fn approval_is_asked_for_the_action_that_declares_it() {
    let model = ScriptedModel::new([
        Reply::action("It is closed.", "door.open", json!({})),
        Reply::action("Done.", "finish", json!({ "text": "open" })),
    ]);
    let test = Test::new(model);
    let run = test.start(&walk(), ()).await;
    let Settled::Waiting(pending) = run.settled().await else { panic!("it does not wait") };

    run.approve(&pending[0].call, "ann").await.unwrap();

    assert!(run.result().await.unwrap().opened);
}

/// Names of the author that the macro must not change.
mod named_alike {
    use super::*;

    #[derive(Debug, Deserialize, JsonSchema)]
    struct WaitInput {
        seconds: u32,
    }

    #[derive(Actions)]
    enum Act {
        /// Waits.
        Wait { input: WaitInput },
        /// Says a word.
        r#Say { r#type: String },
    }

    #[tokio::test]
    async fn actions_of_two_enums_stay_separate() {
        let wait = brain("Wait").state(Value::Null).r#loop("Wait", |cx| {
            cx.system("").act(async |act: Act, cx| {
                let said = match act {
                    Act::Wait { input } => json!(input.seconds),
                    Act::Say { r#type } => json!(r#type),
                };
                Ok(cx.result(&said).update(move |state| *state = said))
            })
        });
        let model = ScriptedModel::new([
            Reply::calls([("wait", json!({ "input": { "seconds": 3 } })), ("say", json!({ "type": "hi" }))]),
            Reply::text("Done."),
        ]);

        let story = Test::new(model).run(&wait, ()).await;

        assert_eq!(*story.state(), json!("hi"));
    }
}
