//! Tool sets: what the model reads of them, when their tools are offered, and what is stored.

use std::sync::Arc;

use positronic_core::dsl::{IntoBrain as _, plugin};
use positronic_core::model::scripted::Reply;
use positronic_core::prelude::*;
use positronic_core::record::{ModelRequest, SignalKind, ToolResult};
use positronic_core::runner::Settled;
use positronic_plugins::{ActiveToolsets, Toolsets};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::boundaries::crash_everywhere;
use crate::support::boundaries::{Ledger, Tale};
use crate::support::contexts;
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

fn toolsets() -> Toolsets<(), Vec<String>> {
    Toolsets::new().set("email", "Write and read mail", [doing("mail.send"), doing("search")]).set(
        "calendar",
        "Plan appointments",
        [doing("search"), doing("book")],
    )
}

fn assistant(toolsets: Toolsets<(), Vec<String>>) -> Brain<(), Vec<String>> {
    brain("Assistant")
        .state(Vec::new())
        .r#loop("Help", move |cx| {
            cx.system("Help.").input("Invite Ann.").plugin(toolsets.clone()).tools([doing("think")])
        })
        .build()
}

fn activate(toolset: &str) -> Reply {
    Reply::call("toolset_activate", json!({ "toolset": toolset }))
}

fn deactivate(toolset: &str) -> Reply {
    Reply::call("toolset_deactivate", json!({ "toolset": toolset }))
}

fn tools(request: &ModelRequest) -> Vec<String> {
    request.tools.tools().iter().map(|tool| tool.id.to_string()).collect()
}

#[tokio::test(start_paused = true)]
async fn tools_of_a_toolset_are_offered_while_it_is_active() {
    let play = Play::new([
        activate("calendar"),
        Reply::calls([("book", json!({"to": "ann"})), ("toolset_activate", json!({"toolset": "email"}))]),
        Reply::calls([("mail_send", json!({"to": "ann"})), ("toolset_deactivate", json!({"toolset": "calendar"}))]),
        done(),
    ]);

    let story = play.run(&assistant(toolsets()), ()).await;

    let seen: Vec<_> = play.requests().iter().map(|request| tools(request).join(" ")).collect();
    assert_eq!(
        seen,
        [
            "think toolset.activate toolset.deactivate",
            "think toolset.activate toolset.deactivate search book",
            "think toolset.activate toolset.deactivate search book mail.send",
            "think toolset.activate toolset.deactivate mail.send search",
        ]
    );
    assert_eq!(*story.state(), json!(["book ann", "mail.send ann"]));
    insta::assert_snapshot!(contexts(&play.requests()[1]).join("\n"), @r"
    toolsets: Tools come in toolsets. The tools of a toolset are available from your next answer on after `toolset_activate`, until `toolset_deactivate`. Activate the toolsets that your task needs.
    - `email`: Write and read mail. Tools: `mail_send`, `search`
    - `calendar` (active): Plan appointments. Tools: `search`, `book`
    ");
    insta::assert_snapshot!(story.transcript(), @r#"
    # Help
    user: Invite Ann.
    toolset.activate({"toolset":"calendar"}) -> `calendar` is active; its tools are `search`, `book`
    book({"to":"ann"}) -> done
    toolset.activate({"toolset":"email"}) -> `email` is active; its tools are `mail_send`, `search`
    mail.send({"to":"ann"}) -> done
    toolset.deactivate({"toolset":"calendar"}) -> `calendar` is no longer active
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

    let story = play.run(&assistant(toolsets().active(["email"])), ()).await;

    let unknown = ToolResult::error("there is no toolset `mail`; the toolsets are `email`, `calendar`");
    let tools = "`think`, `toolset_activate`, `toolset_deactivate`, `mail_send`, `search`";
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
    let (first, then) = (toolsets(), toolsets());
    let two = brain("Two")
        .state(Vec::new())
        .r#loop("First", move |cx| cx.system("Begin.").plugin(first.clone()))
        .r#loop("Then", move |cx| cx.system("Go on.").plugin(then.clone()))
        .step("Look", async |cx| Ok(cx.plugin_state::<ActiveToolsets>()?.active));
    let play = Play::new([activate("email"), done(), done()]);

    let story = play.run(&two, ()).await;

    assert_eq!(tools(&play.last_request()), ["toolset.activate", "toolset.deactivate", "mail.send", "search"]);
    assert_eq!(*story.state(), json!(["email"]));
}

#[tokio::test(start_paused = true)]
async fn tool_with_a_taken_name_fails_the_loop_before_its_set_is_active() {
    let taken = brain("Taken")
        .state(Vec::new())
        .r#loop("Help", |cx| cx.system("Help.").plugin(toolsets()).tools([doing("book")]));

    let story = Play::new([]).run(&taken, ()).await;

    let Settled::Failed(failure) = story.settled() else { panic!("{:?}", story.settled()) };
    assert_eq!(
        failure.message,
        "the loop `Help` was stopped: the plugin `toolsets` refused the request: the tool `book` of the toolset \
         `calendar` has the name of another tool of the loop; rename one of them"
    );
}

#[test]
#[should_panic(expected = "there is no toolset `mail`; the toolsets are `email`, `calendar`")]
fn unknown_set_cannot_be_active_from_the_start() {
    _ = toolsets().active(["mail"]);
}

#[test]
#[should_panic(expected = "the toolsets `email` and `shop` have two tools named `search`; rename one of them")]
fn two_sets_cannot_have_different_tools_of_one_name() {
    let search = Tool::new("search", |t| t.description("Searches the shop").execute(async |_: NoArgs, _| Ok(())));
    _ = toolsets().set("shop", "Buy", [search]);
}

#[tokio::test(start_paused = true)]
async fn active_sets_survive_every_crash() {
    let tale = Tale {
        definition: assistant(toolsets().active(["calendar"])).definition(),
        options: Value::Null,
        ledger: Ledger::default(),
        says: Arc::new(|request| match request.path.as_str() {
            "Help/0" => activate("email"),
            "Help/1" => Reply::calls([
                ("mail_send", json!({"to": "ann"})),
                ("toolset_deactivate", json!({"toolset": "calendar"})),
            ]),
            "Help/2" => Reply::call("search", json!({"to": "bob"})),
            _ => done(),
        }),
        answers: Arc::new(|_| Vec::<SignalKind>::new()),
    };
    let baseline = crash_everywhere(&tale, "toolsets", &json!({"active": ["email"]})).await;
    assert_eq!(baseline.end.state, json!(["mail.send ann", "search bob"]));
}

#[tokio::test(start_paused = true)]
async fn two_instances_activate_their_own_toolsets() {
    let office = Toolsets::new().set("email", "Write mail", [doing("mail.send")]);
    let garden = Toolsets::new().set("beds", "Water the beds", [doing("water")]);
    let helper = brain("Helper").state(Vec::new()).r#loop("Help", move |cx| {
        cx.system("Help.").plugins([plugin(office.clone()).named("office"), plugin(garden.clone()).named("garden")])
    });
    let play = Play::new([
        Reply::call("garden_toolset_activate", json!({"toolset": "beds"})),
        Reply::call("water", json!({"to": "roses"})),
        done(),
    ]);

    let story = play.run(&helper, ()).await;

    assert_eq!(
        tools(&play.last_request()),
        [
            "office.toolset.activate",
            "office.toolset.deactivate",
            "garden.toolset.activate",
            "garden.toolset.deactivate",
            "water"
        ]
    );
    let texts = contexts(&play.last_request());
    let [office, garden] = &texts[..] else { panic!("{texts:?}") };
    assert!(office.starts_with("office.toolsets: ") && office.contains("`office_toolset_activate`"), "{office}");
    assert!(garden.contains("`beds` (active)"), "{garden}");
    assert_eq!(story.settled(), &Settled::Completed(json!(["water roses"])));
}
