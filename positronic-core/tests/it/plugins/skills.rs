//! Tool sets: what the model reads of them, when their tools are offered, and what is stored.

use std::sync::Arc;

use positronic_core::dsl::Runnable as _;
use positronic_core::model::scripted::Reply;
use positronic_core::plugins::{ActiveSkills, Skills};
use positronic_core::prelude::*;
use positronic_core::record::{ModelRequest, SignalKind, ToolResult};
use positronic_core::runner::Settled;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{contexts, crash_everywhere};
use crate::support::boundaries::{Ledger, Tale};
use crate::support::{Play, done, results, success};

#[derive(Deserialize, JsonSchema)]
struct To {
    to: String,
}

/// A tool that records its work in the brain's state.
fn doing(name: &'static str) -> Tool<(), Vec<String>> {
    Tool::new(name, |t| {
        t.description(format!("Does {name}")).idempotent().execute(move |To { to }, cx| async move {
            Ok(cx.result("done").update(move |done: &mut Vec<String>| done.push(format!("{name} {to}"))))
        })
    })
}

fn skills() -> Skills<(), Vec<String>> {
    Skills::new().skill("email", "Write and read mail", [doing("mail.send"), doing("search")]).skill(
        "calendar",
        "Plan appointments",
        [doing("search"), doing("book")],
    )
}

fn assistant(skills: Skills<(), Vec<String>>) -> Brain<(), Vec<String>> {
    brain("Assistant").state(Vec::new()).r#loop("Help", move |cx| {
        cx.system("Help.").input("Invite Ann.").plugin(skills.clone()).tools([doing("think")])
    })
}

fn activate(skill: &str) -> Reply {
    Reply::call("skill_activate", json!({ "skill": skill }))
}

fn deactivate(skill: &str) -> Reply {
    Reply::call("skill_deactivate", json!({ "skill": skill }))
}

fn tools(request: &ModelRequest) -> Vec<String> {
    request.tools.tools().iter().map(|tool| tool.id.to_string()).collect()
}

#[tokio::test(start_paused = true)]
async fn tools_of_a_tool_set_are_offered_while_it_is_active() {
    let play = Play::new([
        activate("calendar"),
        Reply::calls([("book", json!({"to": "ann"})), ("skill_activate", json!({"skill": "email"}))]),
        Reply::calls([("mail_send", json!({"to": "ann"})), ("skill_deactivate", json!({"skill": "calendar"}))]),
        done(),
    ]);

    let story = play.run(&assistant(skills()), ()).await;

    let seen: Vec<_> = play.requests().iter().map(|request| tools(request).join(" ")).collect();
    assert_eq!(
        seen,
        [
            "think skill.activate skill.deactivate",
            "think skill.activate skill.deactivate search book",
            "think skill.activate skill.deactivate search book mail.send",
            "think skill.activate skill.deactivate mail.send search",
        ]
    );
    assert_eq!(*story.state(), json!(["book ann", "mail.send ann"]));
    insta::assert_snapshot!(contexts(&play.requests()[1]).join("\n"), @r"
    skills: You have skills. The tools of a skill are there from your next answer on after `skill_activate`, until `skill_deactivate`. Activate what your task needs.
    - `email`: Write and read mail. Tools: `mail_send`, `search`
    - `calendar` (active): Plan appointments. Tools: `search`, `book`
    ");
    insta::assert_snapshot!(story.transcript(), @r#"
    # Help
    user: Invite Ann.
    skill.activate({"skill":"calendar"}) -> `calendar` is active; its tools are `search`, `book`
    book({"to":"ann"}) -> done
    skill.activate({"skill":"email"}) -> `email` is active; its tools are `mail_send`, `search`
    mail.send({"to":"ann"}) -> done
    skill.deactivate({"skill":"calendar"}) -> `calendar` is not active any more
    assistant: Done.
    = {"type":"answered"}
    "#);
}

#[tokio::test(start_paused = true)]
async fn unknown_names_and_unchanged_sets_are_reported() {
    let play = Play::new([
        activate("mail"),
        activate("email"),
        deactivate("calendar"),
        deactivate("mail"),
        Reply::call("book", json!({"to": "ann"})),
        done(),
    ]);

    let story = play.run(&assistant(skills().active(["email"])), ()).await;

    let unknown = ToolResult::error("there is no skill `mail`; the skills are `email`, `calendar`");
    let tools = "`think`, `skill_activate`, `skill_deactivate`, `mail_send`, `search`";
    assert_eq!(
        results(&story, "Help"),
        [
            unknown.clone(),
            success("`email` is active already"),
            success("`calendar` is not active"),
            unknown,
            ToolResult::error(format!("there is no tool `book`; the tools are {tools}")),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn active_sets_are_stored_for_the_next_loop_and_for_tools() {
    let (first, then) = (skills(), skills());
    let two = brain("Two")
        .state(Vec::new())
        .r#loop("First", move |cx| cx.system("Begin.").plugin(first.clone()))
        .r#loop("Then", move |cx| cx.system("Go on.").plugin(then.clone()))
        .step("Look", async |cx| Ok(cx.plugin_state::<ActiveSkills>()?.active));
    let play = Play::new([activate("email"), done(), done()]);

    let story = play.run(&two, ()).await;

    assert_eq!(tools(&play.last_request()), ["skill.activate", "skill.deactivate", "mail.send", "search"]);
    assert_eq!(*story.state(), json!(["email"]));
}

#[tokio::test(start_paused = true)]
async fn tool_with_a_taken_name_fails_the_loop_before_its_set_is_active() {
    let taken = brain("Taken")
        .state(Vec::new())
        .r#loop("Help", |cx| cx.system("Help.").plugin(skills()).tools([doing("book")]));

    let story = Play::new([]).run(&taken, ()).await;

    let Settled::Failed(failure) = story.settled() else { panic!("{:?}", story.settled()) };
    assert_eq!(
        failure.message,
        "the loop `Help` cannot be configured: the plugin `skills` refused the request: the tool `book` of the skill \
         `calendar` has the name of another tool of the loop; rename one of them"
    );
}

#[test]
#[should_panic(expected = "there is no skill `mail`; the skills are `email`, `calendar`")]
fn unknown_set_cannot_be_active_from_the_start() {
    _ = skills().active(["mail"]);
}

#[test]
#[should_panic(expected = "the skills `email` and `shop` have two tools named `search`; rename one of them")]
fn two_sets_cannot_have_different_tools_of_one_name() {
    let search = Tool::new("search", |t| t.description("Searches the shop").execute(async |_: NoArgs, _| Ok(())));
    _ = skills().skill("shop", "Buy", [search]);
}

#[tokio::test(start_paused = true)]
async fn active_sets_survive_every_crash() {
    let tale = Tale {
        definition: assistant(skills().active(["calendar"])).definition(),
        options: Value::Null,
        ledger: Ledger::default(),
        says: Arc::new(|request| match request.path.as_str() {
            "Help/0" => activate("email"),
            "Help/1" => {
                Reply::calls([("mail_send", json!({"to": "ann"})), ("skill_deactivate", json!({"skill": "calendar"}))])
            }
            "Help/2" => Reply::call("search", json!({"to": "bob"})),
            _ => done(),
        }),
        answers: Arc::new(|_| Vec::<SignalKind>::new()),
    };
    let baseline = crash_everywhere(&tale, "skills", &json!({"active": ["email"]})).await;
    assert_eq!(baseline.end.state, json!(["mail.send ann", "search bob"]));
}
