//! Nested brains: as stages, tools and skills; their options, results and approvals.

use positronic_core::dsl::{BrainBuilder, NoServices, Unstaged};
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::PendingKind;
use positronic_core::record::{EndReason, ToolResult};
use positronic_core::runner::Settled;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::{
    Board, Job, Journal, Play, Shop, batch, calls, done, error_of, events_named, path, results, success, tools, waits,
};

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
struct Topic {
    topic: String,
    #[serde(default = "three")]
    depth: u32,
}

const fn three() -> u32 {
    3
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Report {
    text: String,
    secret: u32,
}

/// A brain of one step whose callers get only its text.
fn research() -> Brain<Topic, String> {
    brain("Research")
        .description("Researches a topic")
        .options::<Topic>()
        .step("Read", async |cx| {
            if cx.options.topic == "nothing" {
                return Err(Error::new("there is nothing to read"));
            }
            Ok(Report { text: format!("{} in depth {}", cx.options.topic, cx.options.depth), secret: 7 })
        })
        .result(|report: &Report| report.text.clone())
}

fn board() -> BrainBuilder<(), Board, NoServices, Unstaged> {
    brain("Outer").state(Board { done: vec!["tea".to_owned()] })
}

#[tokio::test(start_paused = true)]
async fn stage_maps_state_to_options_and_result_to_state() {
    let outer = board()
        .brain("Research", research())
        .map_input(|board| Topic { topic: board.done.join("+"), depth: 1 })
        .map_output(|board, text| (board.done.len(), text))
        .step("End", async |cx| Ok(format!("{} {}", cx.state.0, cx.state.1)));

    let story = Play::new([]).run(&outer, ()).await;

    assert_eq!(*story.settled(), Settled::Completed(json!("1 tea in depth 1")));
    assert!(story.events().contains("BRAIN_COMPLETE {\"result\":\"tea in depth 1\"}"), "callers get the `.result`");
}

#[tokio::test(start_paused = true)]
async fn failed_nested_brain_fails_the_outer_brain() {
    let topic = |_: &Board| Topic { topic: "nothing".to_owned(), depth: 0 };
    let outer = board().brain("Research", research()).map_input(topic).map_output(|board, _| board);

    let story = Play::new([]).run(&outer, ()).await;

    let Settled::Failed(failure) = story.settled() else { panic!("{:?}", story.settled()) };
    assert_eq!(failure.code, EndReason::Brain);
    assert_eq!(
        failure.message,
        "the brain `Research` failed: the step `Research/Read` failed: there is nothing to read"
    );
}

#[tokio::test(start_paused = true)]
async fn panicking_maps_fail_with_their_message() {
    let into = board().brain("Research", research()).map_input(|_| panic!("no way in")).map_output(|board, _| board);
    let story = Play::new([]).run(&into, ()).await;
    let Settled::Failed(failure) = story.settled() else { panic!("{:?}", story.settled()) };
    assert!(failure.message.ends_with("failed to start: the code panicked: no way in"), "{failure}");

    let topic = |_: &Board| Topic { topic: "tea".to_owned(), depth: 0 };
    let out =
        board().brain("Research", research()).map_input(topic).map_output(|_, _| -> Board { panic!("no way out") });
    let story = Play::new([]).run(&out, ()).await;
    let Settled::Failed(failure) = story.settled() else { panic!("{:?}", story.settled()) };
    assert_eq!(failure.message, "cannot apply the result of the brain `Research`: the code panicked: no way out");
}

#[tokio::test(start_paused = true)]
async fn model_fills_the_options_of_a_brain_as_a_tool() {
    let outer = board().r#loop("Work", |cx| {
        cx.system("").tool("research", |t| t.brain(research()).map_output(|board, text| board.done.push(text)))
    });
    let asks = [json!({"topic": "milk"}), json!({"depth": 1}), json!({"topic": "nothing", "depth": 9})];
    let play = Play::new([Reply::calls(asks.map(|ask| ("research", ask))), done()]);

    let story = play.run(&outer, ()).await;

    let decl = &play.last_request().tools.tools()[0].clone();
    assert_eq!((decl.title.as_deref(), decl.description.as_str()), (Some("Research"), "Researches a topic"));
    assert_eq!(decl.parameters["required"], json!(["topic"]));
    let results = results(&story, "Work");
    assert_eq!(results[0], success("milk in depth 3"), "defaults are filled in");
    assert!(error_of(&results[1]).contains("\"topic\" is a required property"), "{:?}", results[1]);
    assert_eq!(error_of(&results[2]), "the step `Work/0.2/Read` failed: there is nothing to read");
    assert_eq!(*story.state(), json!({"done": ["tea", "milk in depth 3"]}));
    let mut complete = events_named(&story, "LOOP_BRAIN_COMPLETE");
    complete.sort();
    assert_eq!(complete, ["Work/0.0", "Work/0.2"], "also in failure");
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Ask {
    about: String,
}

#[tokio::test(start_paused = true)]
async fn maps_replace_the_options_that_the_model_fills() {
    let outer = board().r#loop("Work", |cx| {
        cx.system("")
            .tool("first", |t| t.brain(research()).map_input(|board| Topic { topic: board.done[0].clone(), depth: 1 }))
            .tool("other", |t| {
                t.brain(research()).map_input_with(|board, ask: Ask| Topic {
                    topic: ask.about,
                    depth: u32::try_from(board.done.len()).unwrap(),
                })
            })
            .tool("broken", |t| t.brain(research()).map_output(|_, _| panic!("torn")))
    });
    let play = Play::new([
        Reply::calls([
            ("first", json!({})),
            ("other", json!({"about": "milk"})),
            ("other", json!({"topic": "milk"})),
            ("broken", json!({"topic": "rum"})),
        ]),
        done(),
    ]);

    let story = play.run(&outer, ()).await;

    let request = play.last_request();
    let parameters: Vec<_> =
        request.tools.tools().iter().map(|tool| tool.parameters.get("required").cloned().unwrap_or_default()).collect();
    assert_eq!(parameters, [Value::Null, json!(["about"]), json!(["topic"])]);
    let results = results(&story, "Work");
    assert_eq!((&results[0], &results[1]), (&success("tea in depth 1"), &success("milk in depth 1")));
    assert!(error_of(&results[2]).contains("\"about\" is a required property"), "{:?}", results[2]);
    assert_eq!(
        error_of(&results[3]),
        "the brain returned \"rum in depth 3\", but its change of the state failed, so the state is as before: the code \
         panicked: torn"
    );
}

struct Acme {
    name: String,
}

#[tokio::test(start_paused = true)]
async fn services_are_provided_bound_or_none() {
    let shouting = || brain("Shout").services::<String>().step("Shout", async |cx| Ok(cx.services.to_uppercase()));
    let quiet = || brain("Quiet").step("Whisper", async |_| Ok("psst".to_owned()));
    let outer = brain("Outer")
        .services::<Acme>()
        .state(String::new())
        .brain("Provided", shouting().provide(|acme: &Acme| acme.name.clone()))
        .map_output(|_, text| text)
        .brain("Bound", shouting().bind("bound".to_owned()))
        .map_output(|state, text| state + &text)
        .brain("None", quiet())
        .map_output(|state, text| state + &text)
        .bind(Acme { name: "acme".to_owned() });

    let story = Play::new([]).run(&outer, ()).await;

    assert_eq!(*story.settled(), Settled::Completed(json!("ACMEBOUNDpsst")));
}

#[tokio::test(start_paused = true)]
async fn brains_of_several_types_share_one_list() {
    let count = brain("Count it").options::<Topic>().step("Count", async |cx| Ok(cx.options.topic.len()));
    let outer = board().r#loop("Work", move |cx| cx.system("").brains([research().erased(), count.clone().erased()]));
    let play = Play::new([
        Reply::calls([
            ("research", json!({"topic": "a"})),
            ("count_it", json!({"topic": "four"})),
            ("count_it", json!({})),
        ]),
        done(),
    ]);

    let story = play.run(&outer, ()).await;

    let results = results(&story, "Work");
    assert_eq!((&results[0], &results[1]), (&success("a in depth 3"), &success(4)));
    assert!(error_of(&results[2]).contains("required property"));
}

#[tokio::test(start_paused = true)]
async fn brain_that_is_not_found_names_how_to_register_one() {
    let outer = brain("Outer").r#loop("Work", |cx| cx.brains().find("Search").map(|_| cx.system("")));
    let play = Play::new([]);

    let story = play.run(outer, ()).await;

    let Settled::Failed(failure) = story.settled() else { panic!("{:?}", story.settled()) };
    let says = "the project has no brain `Search`; it has none; register them with `Runner::brain`";
    assert!(failure.message.ends_with(says), "{failure}");
}

#[tokio::test(start_paused = true)]
async fn registered_brain_is_found_by_title_with_any_services() {
    let bound = brain("Bound").services::<Journal>().step("Say", async |cx| {
        cx.services.note("said");
        Ok("bound".to_owned())
    });
    let journal = Journal::default();
    let outer = brain("Outer")
        .services::<Acme>()
        .r#loop("Work", |cx| {
            assert_eq!(cx.brains().titles(), ["Research", "Bound"]);
            let unknown = cx.brains().find("Search").unwrap_err().to_string();
            assert_eq!(unknown, "the project has no brain `Search`; it has `Research`, `Bound`");
            cx.system("")
                .brain("find", cx.brains().find("Research").unwrap())
                .brain("bound", cx.brains().find("Bound").unwrap())
        })
        .bind(Acme { name: String::new() });
    let play = Play::new([Reply::calls([("find", json!({"topic": "x"})), ("bound", json!({}))]), done()])
        .map(|runner| runner.brain(research()).brain(bound.bind(journal.clone())));

    let story = play.run(&outer, ()).await;

    assert_eq!(results(&story, "Work"), [success("x in depth 3"), success("bound")]);
    assert_eq!(journal.take(), ["said"]);
}

#[tokio::test(start_paused = true)]
async fn skill_is_a_brain_or_function_with_prepare_and_handle_result() {
    let journal = Journal::default();
    let outer = brain("Outer")
        .services::<Journal>()
        .state(Board { done: vec!["tea".to_owned()] })
        .r#loop("Work", |cx| {
            cx.system("")
                .skill("study", |s| {
                    s.description("Studies")
                        .brain(research())
                        .prepare(|board| Topic { topic: board.done[0].clone(), depth: 2 })
                        .handle_result(|board, text| board.done.push(text))
                })
                .skill("double", |s| {
                    s.execute(async |_: NoArgs, cx| {
                        let text = cx.state.done[0].repeat(2);
                        cx.update({
                            let text = text.clone();
                            |board: &mut Board| board.done.push(text)
                        });
                        Ok(text)
                    })
                })
                .skill("plain", |s| s.execute(async |job: Job, _: Shop| Ok(job.id)))
        })
        .bind(journal);
    let play = Play::new([
        Reply::calls([("study", json!({})), ("double", json!({})), ("plain", json!({"id": "asked"}))]),
        done(),
    ]);

    let story = play.run(&outer, ()).await;

    assert_eq!(results(&story, "Work"), [success("tea in depth 2"), success("teatea"), success("asked")]);
    assert_eq!(story.state()["done"].as_array().unwrap().len(), 3);
    assert_eq!(play.last_request().tools.tools()[0].description, "Studies");
}

/// A brain with one loop `Deep` and the tools of the workshop.
fn deep() -> Brain<(), Board, Journal> {
    brain("Deep").services::<Journal>().state(Board::default()).r#loop("Deep", |cx| tools(cx.system(""))).build()
}

#[tokio::test(start_paused = true)]
async fn sub_brains_run_concurrently_and_return_results_in_call_order() {
    let journal = Journal::default();
    let outer = brain("Outer")
        .services::<Journal>()
        .state(Board::default())
        .r#loop("Work", |cx| {
            cx.system("").tool("deep", |t| t.brain(deep()).map_output(|board, inner| board.done.extend(inner.done)))
        })
        .bind(journal.clone());
    let slow = |id: &str, takes: u64| Reply::call("safe", json!({"id": id, "takes": takes}));
    let play = Play::of(
        ScriptedModel::new([Reply::calls(["deep", "deep", "deep"].map(|tool| (tool, json!({})))), done()])
            .on("Work/0.0/Deep", [slow("a", 30), done()])
            .on("Work/0.1/Deep", [slow("b", 10), done()])
            .on("Work/0.2/Deep", [slow("c", 20), done()]),
        false,
    );

    let story = play.run(&outer, ()).await;

    assert_eq!(journal.take(), ["a", "b", "c", "b-", "c-", "a-"], "they overlap");
    assert_eq!(*story.state(), json!({"done": ["b", "c", "a"]}), "taken over as they end");
    assert_eq!(play.last_results(), ["a", "b", "c"].map(|id| format!("{{\"done\":[\"{id}\"]}}")));
}

#[tokio::test(start_paused = true)]
async fn approval_at_depth_three_surfaces_with_its_path_and_blocks_nothing_outside() {
    let journal = Journal::default();
    let middle = || {
        brain("Middle").services::<Journal>().state(Board::default()).r#loop("Middle", |cx| {
            cx.system("").tool("deep", |t| t.brain(deep()).map_output(|board, inner| board.done.extend(inner.done)))
        })
    };
    let outer = brain("Outer")
        .services::<Journal>()
        .state(Board::default())
        .r#loop("Work", move |cx| {
            tools(cx.system(""))
                .tool("middle", |t| t.brain(middle()).map_output(|board, inner| board.done.extend(inner.done)))
        })
        .bind(journal.clone());
    let play = Play::of(
        ScriptedModel::new([Reply::calls([("middle", json!({})), ("safe", json!({"id": "s"}))]), done()])
            .on("Work/0.0/Middle", [Reply::call("deep", json!({})), done()])
            .on("Work/0.0/Middle/0.0/Deep", [batch([("gated", "x"), ("gated", "y")]), done()]),
        true,
    );
    let run = play.start(&outer, ()).await;
    let at = "Work/0.0/Middle/0.0/Deep/0.0";
    let beside = "Work/0.0/Middle/0.0/Deep/0.1";
    assert_eq!(waits(&run).await, [at, beside]);
    assert_eq!(journal.take(), ["s"], "a gate inside defers nothing around it");
    assert!(matches!(run.pending()[0].kind, PendingKind::Approval { .. }));
    let before = play.story(&run).await.log().len();

    run.approve(&path(at), "ann").await.unwrap();
    assert_eq!(waits(&run).await, [beside]);
    let after = play.story(&run).await;
    assert!(after.log()[before..].iter().all(|event| event.path == path(at)), "only the frames on its path");

    run.reject(&path(beside), "no", "ann").await.unwrap();
    let story = play.story(&run).await;
    assert_eq!(*story.state(), json!({"done": ["s", "x"]}));
    assert_eq!(play.requests().len(), 6, "no model was asked twice");
}

#[tokio::test(start_paused = true)]
async fn brain_as_a_tool_can_need_an_approval_and_be_an_exit() {
    let outer = board().r#loop("Work", |cx| {
        cx.system("").tool("research", |t| {
            t.brain(research())
                .requires_approval("it is costly")
                .exit()
                .map_output(|board, text| board.done = vec![text])
        })
    });
    let play = Play::new([Reply::call("research", json!({"topic": "a"}))]);
    let run = play.start(&outer, ()).await;
    assert_eq!(waits(&run).await, ["Work/0.0"]);

    let kind = positronic_core::record::SignalKind::Approve {
        call: path("Work/0.0"),
        arguments: Some(json!({"topic": "b", "depth": 1})),
    };
    run.signal(kind, positronic_core::record::Actor::default()).await.unwrap();

    let story = play.story(&run).await;
    assert_eq!(*story.state(), json!({"done": ["b in depth 1"]}));
    assert_eq!(*calls(&story, "Work")[0].arguments, json!({"topic": "a"}));
}

#[tokio::test(start_paused = true)]
async fn loop_reads_the_records_of_an_earlier_loop_and_its_own() {
    let two = brain("Two").state(0_u32).r#loop("First", |cx| cx.system("").input("hi")).r#loop("Second", |cx| {
        let first = cx.record("First").map_or(0, |prompt| prompt.output.len());
        let own = cx.history().map_or(0, |prompt| prompt.output.len());
        assert!(cx.record("Third").is_none());
        cx.system(format!("{first} {own}"))
            .tool("look", |t| t.execute(async |_: NoArgs, cx| Ok(cx.history().map(|prompt| prompt.output.len()))))
    });
    let play = Play::new([Reply::text("one"), Reply::call("look", json!({})), Reply::text("two")]);

    let story = play.run(&two, ()).await;

    let systems: Vec<_> = play.requests().iter().map(|request| request.system.to_string()).collect();
    assert_eq!(systems, ["", "1 0", "1 2"]);
    assert_eq!(results(&story, "Second"), [success(2)], "the engine's opening and the call");
}

#[tokio::test(start_paused = true)]
async fn nested_brain_with_a_unit_result_reads_back_unchanged() {
    let outer =
        board().r#loop("Work", |cx| cx.system("").brain("nothing", brain("Nothing").step("Do", async |_| Ok(()))));
    let play = Play::new([Reply::call("nothing", json!({})), done()]);

    let story = play.run(&outer, ()).await;

    assert_eq!(results(&story, "Work"), [ToolResult::success(Value::Null)]);
}

/// A brain nested `n` times: each level's only tool is the next one.
fn level(below: u32) -> Brain<(), Board> {
    brain("Level")
        .state(Board::default())
        .r#loop("Go", move |cx| {
            let cx = cx.system("");
            if below > 0 { cx.brain("deeper", level(below - 1)) } else { cx }
        })
        .build()
}

#[tokio::test(start_paused = true)]
async fn brains_nest_sixteen_deep_and_the_seventeenth_is_an_error_result() {
    let model = ScriptedModel::from_fn(|request| {
        let first = request.path.as_str().ends_with("/0") && !request.tools.tools().is_empty();
        if first { Reply::call("deeper", json!({})) } else { done() }
    });

    let story = Play::of(model, true).run(&level(20), ()).await;

    assert!(matches!(story.settled(), Settled::Completed(_)));
    let begun = events_named(&story, "LOOP_BRAIN_START");
    assert_eq!(begun.len(), 15, "with the root that is sixteen: {begun:?}");
    let deepest = format!("{}/Go", begun.last().unwrap());
    let [ToolResult::Error { message }] = &results(&story, &deepest)[..] else { panic!("it begins anyway") };
    assert!(message.contains("the maximum nesting of 16 brains"), "{message}");
}
