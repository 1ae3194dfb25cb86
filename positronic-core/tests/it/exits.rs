//! Exit tools: calls before and after one, and its failure or rejection.

use std::sync::Arc;

use positronic_core::dsl::{Action, IntoBrain as _};
use positronic_core::model::scripted::Reply;
use positronic_core::prelude::*;
use positronic_core::record::{Actor, EndReason, LoopOutcome, ModelRequest, SignalKind, ToolResult};
use positronic_core::runner::Settled;
use positronic_plugins::Toolsets;
use serde_json::json;

use crate::support::boundaries::{Ledger, Tale};
use crate::support::disturbances;
use crate::support::{
    Job, Journal, Play, ShopBuilder, ShopLoop, batch, done, events_named, path, prompt, results, slow_batch, success,
    tools, waits, work, worker, workshop,
};

fn with_exit(flags: fn(ShopBuilder) -> ShopBuilder) -> impl Fn(crate::support::ShopLoop) -> crate::support::ShopLoop {
    move |config| tools(config).tools([worker("finish", move |t| flags(t.exit()))])
}

#[tokio::test(start_paused = true)]
async fn exit_tool_waits_for_earlier_calls_and_starts_no_later_one() {
    let journal = Journal::default();
    let jobs = [("safe", "a", 50), ("finish", "x", 0), ("gated", "g", 0), ("safe", "c", 0), ("read", "r", 0)];
    let play = Play::free([slow_batch(jobs)]);

    let story = play.run(&workshop(&journal, with_exit(|t| t)), ()).await;

    assert_eq!(journal.take(), ["a", "a-", "x"]);
    assert_eq!(events_named(&story, "LOOP_APPROVAL_REQUESTED"), ["Work/0.2"]);
    assert_eq!(events_named(&story, "LOOP_APPROVAL_WITHDRAWN"), ["Work/0.2"]);
    let results = results(&story, "Work");
    for skipped in &results[2..] {
        assert_eq!(*skipped, ToolResult::Skipped { reason: "it came after the exit tool `finish`".to_owned() });
    }
    assert_eq!(prompt(&story, "Work").outcome, Some(LoopOutcome::Exited { tool: "finish".to_owned() }));
}

#[tokio::test(start_paused = true)]
async fn exit_tool_waits_for_an_undecided_call_before_it() {
    let journal = Journal::default();
    let play = Play::new([batch([("gated", "a"), ("finish", "x")])]);
    let run = play.start(&workshop(&journal, with_exit(|t| t)), ()).await;
    waits(&run).await;
    assert_eq!(journal.take(), Vec::<String>::new());

    run.reject(&path("Work/0.0"), "no", "ann").await.unwrap();

    play.story(&run).await;
    assert_eq!(journal.take(), ["x"], "a denied call is done, too");
}

#[tokio::test(start_paused = true)]
async fn failed_exit_tool_continues_the_loop() {
    let journal = Journal::default();
    let failing = Reply::calls([("finish", json!({"id": "x", "fails": true})), ("safe", json!({"id": "c"}))]);
    let play = Play::new([failing, batch([("finish", "y")])]);

    let story = play.run(&workshop(&journal, with_exit(|t| t)), ()).await;

    assert_eq!(journal.take(), ["x", "y"]);
    assert_eq!(play.last_results(), ["Error: x broke", "Skipped: it came after the exit tool `finish`"]);
    assert_eq!(events_named(&story, "LOOP_EXIT"), ["Work"]);
}

#[tokio::test(start_paused = true)]
async fn rejected_exit_tool_continues_the_loop() {
    let journal = Journal::default();
    let play = Play::new([batch([("finish", "x"), ("safe", "c")]), batch([("finish", "y")])]);
    let run = play.start(&workshop(&journal, with_exit(|t| t.requires_approval("really?"))), ()).await;

    assert_eq!(waits(&run).await, ["Work/0.0"]);
    run.reject(&path("Work/0.0"), "not yet", "ann").await.unwrap();
    assert_eq!(waits(&run).await, ["Work/1.0"]);
    run.approve(&path("Work/1.0"), "ann").await.unwrap();

    play.story(&run).await;
    assert_eq!(journal.take(), ["y"]);
}

#[tokio::test(start_paused = true)]
async fn rejected_exit_tool_leaves_earlier_calls_unchanged() {
    let journal = Journal::default();
    let play = Play::free([
        slow_batch([("gated", "a", 0), ("safe", "b", 10), ("finish", "x", 0), ("safe", "c", 0)]),
        slow_batch([("safe", "d", 10), ("finish", "x", 0)]),
        batch([("finish", "y")]),
    ]);
    let run = play.start(&workshop(&journal, with_exit(|t| t.requires_approval("really?"))), ()).await;

    assert_eq!(waits(&run).await, ["Work/0.0", "Work/0.2"]);
    run.reject(&path("Work/0.2"), "not yet", "ann").await.unwrap();
    assert_eq!(waits(&run).await, ["Work/0.0"], "the other question stays pending");
    run.approve(&path("Work/0.0"), "ann").await.unwrap();

    // The identical call of the next iteration is denied on arrival, while the earlier one runs.
    assert_eq!(waits(&run).await, ["Work/2.0"]);
    run.approve(&path("Work/2.0"), "ann").await.unwrap();
    let story = play.story(&run).await;
    assert_eq!(journal.take(), ["a", "b", "b-", "d", "d-", "y"]);
    let results = results(&story, "Work");
    assert_eq!(results[1], success("b done"));
    assert_eq!(results[4], success("d done"));
    assert!(matches!(results[3], ToolResult::Skipped { .. }));
}

#[tokio::test(start_paused = true)]
async fn edit_that_changes_the_exit_flag_of_a_call_is_refused() {
    for (proposed, edited) in [("end", "go on"), ("go on", "end")] {
        let journal = Journal::default();
        let leave = || {
            positronic_core::dsl::Tool::new("leave", |t: ShopBuilder| {
                t.requires_approval("really?").exit_if(|job: &Job| job.id == "end").execute(work)
            })
        };
        let play = Play::new([batch([("leave", proposed)]), batch([("leave", "end")])]);
        let run = play.start(&workshop(&journal, move |config| config.tools([leave()])), ()).await;
        assert_eq!(waits(&run).await, ["Work/0.0"]);
        let kind = SignalKind::Approve { call: path("Work/0.0"), arguments: Some(json!({"id": edited})) };
        run.signal(kind, Actor::default()).await.unwrap();
        assert_eq!(waits(&run).await, ["Work/1.0"]);
        assert_eq!(journal.take(), [""; 0], "the tool did not run");
        run.approve(&path("Work/1.0"), "ann").await.unwrap();

        let story = play.story(&run).await;

        let result = &results(&story, "Work")[0];
        assert!(
            matches!(result, ToolResult::Error { message } if message.contains("the tool did not run")),
            "{result:?}"
        );
        assert_eq!(prompt(&story, "Work").outcome, Some(LoopOutcome::Exited { tool: "leave".to_owned() }));
    }
}

/// Offers the tools, and an exit tool once something is done.
fn late_exit(config: ShopLoop, done: bool) -> ShopLoop {
    tools(config).tools(done.then(|| worker("finish", |t| t.exit())))
}

fn late(journal: &Journal, require: bool) -> Brain<(), crate::support::Board> {
    let board = crate::support::Board::default();
    let brain = brain("Workshop").services::<Journal>().state(board).r#loop("Work", move |cx| {
        let config = late_exit(cx.system("Work."), !cx.state.done.is_empty());
        if require { config.require_exit() } else { config }
    });
    brain.bind(journal.clone())
}

#[tokio::test(start_paused = true)]
async fn required_exit_ignores_text_while_no_exit_tool_is_offered() {
    let journal = Journal::default();
    let play = Play::new([Reply::text("Done!"), batch([("safe", "a")]), done(), batch([("finish", "x")])]);

    let story = play.run(&late(&journal, true), ()).await;

    assert_eq!(journal.take(), ["a", "x"]);
    assert_eq!(prompt(&story, "Work").outcome, Some(LoopOutcome::Exited { tool: "finish".to_owned() }));
    assert!(play.model_read("Call a tool. Text alone does not finish this task."));
    assert!(play.model_read("when it is done, call `finish`."));
    let first = story.log().iter().find(|event| event.kind.name() == "LOOP_ITERATION").unwrap();
    assert!(first.to_json().unwrap().contains(r#""exits":true"#), "the log says that a text ends nothing");
}

#[tokio::test(start_paused = true)]
async fn text_ends_a_loop_without_exit_tools_or_a_required_exit() {
    let journal = Journal::default();
    let play = Play::new([Reply::text("Done!")]);

    let story = play.run(&late(&journal, false), ()).await;

    assert_eq!(prompt(&story, "Work").outcome, Some(LoopOutcome::Answered));
}

#[tokio::test(start_paused = true)]
async fn text_does_not_end_a_loop_that_has_had_an_exit_tool_unless_it_may() {
    for (may, outcome) in [(false, LoopOutcome::Exited { tool: "finish".to_owned() }), (true, LoopOutcome::Answered)] {
        let journal = Journal::default();
        let board = crate::support::Board::default();
        // The exit tool is there until something is done, and again afterwards.
        let brain = brain("Workshop").services::<Journal>().state(board).r#loop("Work", move |cx| {
            let config = late_exit(cx.system("Work."), cx.state.done.len() != 1);
            if may { config.text_exits() } else { config }
        });
        let mut script = vec![batch([("safe", "a")]), Reply::text("Done!")];
        if !may {
            script.extend([batch([("safe", "b")]), batch([("finish", "x")])]);
        }
        let play = Play::new(script);
        let story = play.run(&brain.bind(journal.clone()), ()).await;
        assert_eq!(prompt(&story, "Work").outcome, Some(outcome), "text may end it: {may}");
    }
}

#[tokio::test(start_paused = true)]
async fn required_exit_without_tools_fails_before_the_model_call() {
    let brain = brain("Nothing").r#loop("Work", |cx| cx.system("Work.").require_exit());
    let play = Play::free([]);

    let story = play.run(&brain, ()).await;

    let Settled::Failed(failure) = story.settled() else { panic!("{:?}", story.settled()) };
    assert_eq!(failure.code, EndReason::Config);
    let expected = "`require_exit` lets only an exit tool end it, and this iteration offers no tool";
    assert!(failure.message.contains(expected), "{}", failure.message);
}

fn desk(active: bool) -> impl Fn(ShopLoop) -> ShopLoop {
    move |config| {
        let desk = Toolsets::new().set("desk", "Desk work", [worker("desk.leave", |t| t)]);
        tools(config).plugin(if active { desk.active(["desk"]) } else { desk })
    }
}

#[tokio::test(start_paused = true)]
async fn exit_on_marks_the_tools_of_plugins() {
    let journal = Journal::default();
    let play = Play::new([batch([("desk_leave", "x")])]);

    let story = play.run(&workshop(&journal, |config| desk(true)(config).exit_on(["desk.leave"])), ()).await;

    assert_eq!(prompt(&story, "Work").outcome, Some(LoopOutcome::Exited { tool: "desk.leave".to_owned() }));
}

#[tokio::test(start_paused = true)]
async fn exit_on_names_a_tool_of_a_toolset_that_is_not_active_yet() {
    let journal = Journal::default();
    let activate = Reply::call("toolset_activate", json!({"toolset": "desk"}));
    let play = Play::new([activate, batch([("desk_leave", "x")])]);

    let story = play.run(&workshop(&journal, |config| desk(false)(config).exit_on(["desk.leave"])), ()).await;

    assert_eq!(prompt(&story, "Work").outcome, Some(LoopOutcome::Exited { tool: "desk.leave".to_owned() }));
}

#[tokio::test(start_paused = true)]
async fn exit_on_name_that_no_tool_will_have_fails_a_loop_with_plugins_before_the_model_call() {
    let journal = Journal::default();
    let play = Play::new([]);

    let story = play.run(&workshop(&journal, |config| desk(false)(config).exit_on(["desk.left"])), ()).await;

    let Settled::Failed(failure) = story.settled() else { panic!("{:?}", story.settled()) };
    let message = &failure.message;
    assert!(message.contains("`exit_on` names `desk.left`, but the loop's tools are"), "{message}");
    assert!(message.ends_with("`desk.leave`"), "the tools that come later are named: {message}");
}

#[tokio::test(start_paused = true)]
async fn exit_on_star_matches_tools_by_prefix() {
    let journal = Journal::default();
    let activate = Reply::call("toolset_activate", json!({"toolset": "desk"}));
    let play = Play::new([activate, batch([("desk_leave", "x")])]);
    let brain = workshop(&journal, |config| desk(false)(config).exit_on(["desk.*"]).require_exit());

    let story = play.run(&brain, ()).await;

    assert_eq!(prompt(&story, "Work").outcome, Some(LoopOutcome::Exited { tool: "desk.leave".to_owned() }));
}

fn leave() -> Tool {
    Tool::new("leave", |t| t.description("Leaves").execute(async |_: NoArgs, _| Ok("left")))
}

fn sets() -> Toolsets {
    Toolsets::new().set(
        "desk",
        "Desk work",
        [Tool::new("desk.close", |t| t.execute(async |_: NoArgs, _| Ok("closed")))],
    )
}

#[tokio::test(start_paused = true)]
async fn tools_of_every_iteration_are_in_the_structure_and_can_end_the_loop() {
    let inner = brain("Inner").step("Look", async |_| Ok(())).wait(
        "Payment",
        |w| w.on(webhook::<u32>("paid"), |()| "order-7".to_owned()),
        |(), _| (),
    );
    let visit = || {
        brain("Visit")
            .r#loop("Stay", |cx| {
                cx.system("Stay or leave.").tool("look", |t| t.execute(async |_: NoArgs, _| Ok("seen")))
            })
            .tools([leave()])
            .plugin(sets())
    };
    let asks = Tool::new("pay", |t| t.brain(inner).approval(|(), _| Some("money".to_owned())));
    let built = visit().tools([asks]).exit_on(["leave"]).build();

    let structure = built.structure();
    let look = json!({"name": "Look", "kind": "step"});
    let payment = json!({"name": "Payment", "kind": "wait", "webhooks": ["paid"]});
    let inner = json!({"title": "Inner", "version": 0, "stages": [look, payment]});
    let leave = json!({"name": "leave", "description": "Leaves", "exit": true});
    let pay = json!({"name": "pay", "approval": true, "brain": inner});
    assert_eq!(serde_json::to_value(&structure.stages[0].tools).unwrap(), json!([leave, pay]));
    assert_eq!(structure.waits(), [("Stay/Payment".to_owned(), "paid")]);

    let play = Play::new([Reply::text("I stay."), Reply::call("leave", json!({}))]);
    let story = play.run(&visit().exit_on(["leave"]), ()).await;
    let ended = prompt(&story, "Stay").outcome;
    assert_eq!(ended, Some(LoopOutcome::Exited { tool: "leave".to_owned() }), "a text does not end it");
    let last = play.requests().pop().unwrap();
    let names: Vec<_> = last.tools.tools().iter().map(|tool| tool.id.as_str()).collect();
    assert_eq!(names, ["leave", "look", "toolset.activate", "toolset.deactivate"]);
}

#[tokio::test(start_paused = true)]
async fn exit_on_of_a_built_brain_names_a_tool_that_its_plugin_offers_later() {
    let play =
        Play::new([Reply::call("toolset_activate", json!({"toolset": "desk"})), Reply::call("desk_close", json!({}))]);
    let brain = brain("Visit").r#loop("Stay", |cx| cx.system("Stay.")).plugin(sets()).exit_on(["desk.close"]);

    let story = play.run(&brain, ()).await;

    assert_eq!(prompt(&story, "Stay").outcome, Some(LoopOutcome::Exited { tool: "desk.close".to_owned() }));
}

#[test]
#[should_panic(
    expected = "`exit_on` names `desk.closed`, and the tools that follow the loop are `leave`, `toolset.activate`, `toolset.deactivate`, \
                `desk.close`; add it before `exit_on`, with `.tools(…)` or as one that a `.plugin(…)` lists"
)]
fn exit_on_name_that_no_tool_can_have_is_found_when_the_brain_is_built() {
    let stay = brain("Visit").r#loop("Stay", |cx| cx.system("Stay."));
    _ = stay.tools([leave()]).plugin(sets()).exit_on(["leave", "desk.*", "desk.closed"]);
}

#[test]
#[should_panic(expected = "`exit_on` names `leave`, and no tool follows the loop; add it before `exit_on`")]
fn exit_on_does_not_know_what_the_closure_adds() {
    _ = brain("Visit").r#loop("Stay", |cx| cx.system("Stay.").tools([leave()])).exit_on(["leave"]);
}

#[test]
#[should_panic(
    expected = "`visit` would end the loop without its output, which `done` gives; make it a tool that does not end it"
)]
fn handoff_from_a_loop_with_an_output_is_found_when_the_brain_is_built() {
    let visit = Tool::new("visit", |t| t.brain(brain("Visit").step("Look", async |_| Ok(()))).handoff());
    _ = brain("Count").loop_to("Work", |cx| cx.system("Count.").output::<String>(), |(), word| word).tools([visit]);
}

#[test]
#[should_panic(expected = "`leave` would end the loop without its output, which `done` gives")]
fn exit_of_a_loop_with_an_output_is_found_when_the_brain_is_built() {
    let count = brain("Count").loop_to("Work", |cx| cx.system("Count.").output::<String>(), |(), word| word);
    _ = count.tools([leave()]).exit_on(["leave"]);
}

#[test]
#[should_panic(expected = "the tools `a.b` and `a_b` would have the same name for a provider")]
fn tools_that_a_provider_cannot_tell_apart_are_found_when_the_brain_is_built() {
    let named = |name| Tool::new(name, |t| t.execute(async |_: NoArgs, _| Ok("done")));
    _ = brain("Visit").r#loop("Stay", |cx| cx.system("Stay.")).tools([named("a.b"), named("a_b")]);
}

#[test]
#[should_panic(expected = "the loop has two tools named `leave`")]
fn two_tools_of_one_name_are_found_when_the_brain_is_built() {
    _ = brain("Visit").r#loop("Stay", |cx| cx.system("Stay.")).tools([leave(), leave()]);
}

#[test]
#[should_panic(expected = "the loop has two plugins named `toolsets`; name one of them")]
fn two_plugins_of_one_name_are_found_when_the_brain_is_built() {
    _ = brain("Visit").r#loop("Stay", |cx| cx.system("Stay.")).plugin(sets()).plugin(sets());
}

#[tokio::test(start_paused = true)]
async fn closure_that_adds_a_tool_or_a_plugin_again_fails_the_loop() {
    let tool = brain("Visit").r#loop("Stay", |cx| cx.system("Stay.").tools([leave()])).tools([leave()]);
    let plugin = brain("Visit").r#loop("Stay", |cx| cx.system("Stay.").plugin(sets())).plugin(sets());
    for (brain, named) in [
        (tool, "its closure adds the tool `leave`, which follows the loop already"),
        (plugin, "the loop has two plugins named `toolsets`"),
    ] {
        let story = Play::new([]).run(&brain, ()).await;

        let Settled::Failed(failure) = story.settled() else { panic!("{:?}", story.settled()) };
        assert_eq!(failure.code, EndReason::Config);
        assert!(failure.message.contains(named), "{}", failure.message);
    }
}

/// A loop whose brain and exit tool follow it: the first is a tool, the other one comes with a toolset.
fn tale() -> Tale {
    let ledger = Ledger::default();
    let noted = ledger.clone();
    let visit = brain("Visit").step("Look", move |cx| {
        noted.act_once(cx.idempotency_key(), "looked");
        async { Ok("clean".to_owned()) }
    });
    let visit = Tool::new("visit", |t| t.brain(visit).map_output(|state: &mut String, seen| *state = seen));
    let close = Tool::new("desk.close", |t| t.idempotent().execute(async |_: NoArgs, _| Ok("closed")));
    let desk = brain("Desk")
        .state(String::new())
        .r#loop("Stay", |cx| cx.system("Stay."))
        .tools([visit])
        .plugin(Toolsets::new().set("desk", "Desk work", [close]))
        .exit_on(["desk.close"]);
    let says = |request: &ModelRequest| match request.messages.messages().len() {
        1 => Reply::call("visit", json!({})),
        3 => Reply::call("toolset_activate", json!({"toolset": "desk"})),
        _ => Reply::call("desk_close", json!({})),
    };
    Tale {
        definition: desk.definition(),
        options: json!(null),
        ledger,
        says: Arc::new(says),
        answers: Arc::new(|pending| panic!("{pending:?}")),
    }
}

#[tokio::test(start_paused = true)]
async fn loop_with_tools_of_every_iteration_ends_the_same_after_a_crash_at_every_boundary() {
    let tale = tale();
    let baseline = tale.undisturbed().await;
    assert_eq!(baseline.end.state, json!("clean"));
    disturbances::crash(&tale, &baseline).await;
}

#[tokio::test(start_paused = true)]
async fn loop_with_tools_of_every_iteration_ends_the_same_in_a_fork_at_every_boundary() {
    let tale = tale();
    disturbances::fork(&tale, &tale.undisturbed().await).await;
}

#[tokio::test(start_paused = true)]
async fn tools_of_a_loop_with_an_output_see_the_state_before_it() {
    let count = || Tool::<(), u32>::new("count", |t| t.execute(async |_: NoArgs, cx| Ok(*cx.state)));
    let play = Play::new([Reply::call("count", json!({})), Reply::call("done", json!({"value": "three"}))]);
    let brain = brain("Count")
        .state(3_u32)
        .loop_to("Work", |cx| cx.system("Count.").output::<String>(), |count, word| format!("{count} is {word}"))
        .tools([count()]);

    let story = play.run(&brain, ()).await;

    assert_eq!(*story.settled(), Settled::Completed(json!("3 is three")));
    assert_eq!(results(&story, "Work")[0], success(json!(3)));
}

#[tokio::test]
#[should_panic(expected = "the runner has two actions named `finish`; give one of them another name")]
async fn duplicate_action_names_are_detected_when_added() {
    let finish = || Action::new("finish", |t| t.execute(async |_: NoArgs, _| Ok("done")));
    let play = Play::new([]);

    _ = play.test.runner().clone().action(finish()).action(finish());
}
