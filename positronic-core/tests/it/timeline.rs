//! The timeline of a run: what it has of answers, calls, people, and what came of them.

use std::time::Duration;

use positronic_core::dsl::{Options, Plugin, PluginState, Preparation, Services, State};
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::prices::PriceTable;
use positronic_core::projection::Prompts;
use positronic_core::projection::timeline::{
    AnswerNode, AnswerOutcome, Ending, NodeId, NodeKind, NodeStatus, Timeline,
};
use positronic_core::record::{
    Actor, ApprovalOutcome, CallState, Delta, DeltaKind, EndReason, EventKind, LimitKind, LimitReached, OutputKind,
    Part, Path, Seq, SignalKind, ToolResult, Usage,
};
use positronic_core::testing::Story;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::support::{Board, Job, Journal, Play, ShopBuilder, ShopLoop, ShopTool, path, worker, workshop};

fn timeline(story: &Story) -> Timeline {
    let table =
        json!({"as_of": "2026-01-01", "currency": "EUR", "prices": {"scripted/*": {"input": 1000, "output": 2000}}});
    let prices: PriceTable = serde_json::from_value(table).unwrap();
    let mut timeline = Timeline::new().priced(prices.into());
    story.log().iter().for_each(|event| timeline.apply(event));
    timeline
}

/// Writes a line per node: its depth as indentation, its status, and its relevant fields.
fn outline(timeline: &Timeline) -> String {
    let mut text = String::new();
    walk(timeline, NodeId::ROOT, 0, &mut text);
    text
}

fn walk(timeline: &Timeline, id: NodeId, depth: usize, text: &mut String) {
    let node = timeline.node(id).unwrap();
    let mut kind = serde_json::to_value(&node.kind).unwrap();
    strip(&mut kind);
    let name = kind.as_object_mut().unwrap().remove("type").unwrap();
    let status = serde_json::to_value(node.status).unwrap();
    let line = format!("{}{} {} {kind}", "  ".repeat(depth), name.as_str().unwrap(), status.as_str().unwrap());
    text.push_str(&line.chars().take(200).collect::<String>());
    text.push('\n');
    for child in node.children() {
        walk(timeline, *child, depth + 1, text);
    }
}

/// Removes fields that do not belong to the structure of the tree.
fn strip(value: &mut serde_json::Value) {
    if let Some(fields) = value.as_object_mut() {
        let noise = [
            "metadata",
            "duration",
            "flags",
            "policy",
            "model",
            "proposed",
            "requested",
            "at",
            "signal",
            "public_id",
            "attempt",
            "attempts",
            "sha256",
            "uri",
            "due",
            "settings",
            "version",
            "max_iterations",
            "iteration",
        ];
        fields.retain(|name, value| {
            !noise.contains(&name.as_str()) && *value != json!({}) && *value != json!(false) && !value.is_null()
        });
        fields.values_mut().for_each(strip);
    }
}

/// Walks the requests to models below a loop, with what became of them.
fn answers<'t>(timeline: &'t Timeline, at: &'t str) -> impl Iterator<Item = &'t AnswerNode> {
    timeline.nodes().filter(move |node| node.path.parent() == Some(path(at))).filter_map(|node| match &node.kind {
        NodeKind::Answer(answer) => Some(&**answer),
        _ => None,
    })
}

fn said(answer: &AnswerNode) -> String {
    let Some(AnswerOutcome::Answered(answer) | AnswerOutcome::Refused { answer, .. }) = &answer.outcome else {
        return String::new();
    };
    let texts = answer.parts.iter().filter_map(|part| match part {
        Part::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

fn spent(reply: Reply) -> Reply {
    reply.usage(Usage { input: 100, output: 20, ..Usage::default() })
}

fn clerk() -> Brain<(), String, Journal> {
    brain("Clerk")
        .services::<Journal>()
        .state(String::new())
        .r#loop("Look", |cx| cx.system("Look.").input("Is it there?"))
        .build()
}

/// Counts with a model, then decides; its tools fail in passing, ask a person, show things and run a brain.
fn office(journal: &Journal) -> Brain<(), Board> {
    let tools = |config: ShopLoop| {
        config
            .structured_actions()
            .tools([
                worker("gated", |t| t.requires_approval("it is dangerous")),
                worker("finish", ShopBuilder::exit),
                ShopTool::new("flaky", |t| {
                    t.idempotent().execute(async |Job { id, .. }, cx| match cx.services.count() {
                        1 => Err(Error::transient("the line is busy")),
                        _ => {
                            cx.save_file("note.md", "text/markdown", "# Note\n").await?;
                            cx.display_widget("note", &id, format!("a note on {id}"))?;
                            Ok("through")
                        }
                    })
                }),
            ])
            .tool("clerk", |t| t.brain(clerk()).description("Looks"))
    };
    brain("Office")
        .services::<Journal>()
        .step("Count", async |cx| {
            cx.model().ask("How many?").await?;
            Ok(Board::default())
        })
        .r#loop("Work", move |cx| tools(cx.system("Do the jobs.").input("begin")))
        .brain("Check", clerk())
        .map_output(|board, _| board)
        .bind(journal.clone())
}

#[test]
fn timeline_table_names_every_event() {
    let names =
        include_str!("../../src/record/event/event_kind.rs").lines().filter_map(|line| line.strip_prefix("/// | `"));
    let names: Vec<_> = names.filter_map(|rest| rest.split(" | ").next()).flat_map(|cell| cell.split(", ")).collect();
    assert!(names.len() > 40, "{names:?}");
    let table = include_str!("../../src/projection/timeline/mod.rs");
    let groups: Vec<_> = table.split('`').filter_map(|name| name.strip_suffix('*')).collect();

    for name in names.iter().map(|name| name.trim_matches('`')) {
        let known = table.contains(&format!("`{name}`")) || groups.iter().any(|group| name.starts_with(group));
        assert!(known, "{name}");
    }
}

/// Runs the office: each kind of stage, of answer and of call.
async fn office_day() -> Story {
    let journal = Journal::default();
    let play = Play::new(
        [
            Reply::text("Seven."),
            Reply::text("I would rather talk."),
            Reply::action("It is due.", "flaky", json!({ "id": "a" })),
            Reply::action("It is needed.", "gated", json!({ "id": "b" })),
            Reply::action("The clerk has to look.", "clerk", json!({})),
            Reply::text("It is there."),
            Reply::action("All is done.", "finish", json!({ "id": "end" })),
            Reply::text("It still is."),
        ]
        .map(spent),
    );
    let run = play.start(&office(&journal), ()).await;
    run.settled().await;
    let edited = SignalKind::Approve { call: path("Work/1.0"), arguments: Some(json!({ "id": "c" })) };
    run.signal(edited, "ann").await.unwrap();
    play.story(&run).await
}

#[tokio::test(start_paused = true)]
async fn timeline_contains_every_stage_answer_and_call() {
    let story = office_day().await;

    let timeline = timeline(&story);

    assert_eq!(timeline.spent().known.to_string(), "1.12");
    assert_eq!(timeline.files().len(), 1);
    insta::assert_snapshot!(outline(&timeline));
}

#[tokio::test(start_paused = true)]
async fn answers_that_were_refused_stand_in_the_timeline_with_what_was_wrong() {
    let journal = Journal::default();
    let play = Play::new(["no", "No", "NO", "nothing"].map(Reply::text));
    let brain = workshop(&journal, |config| config.structured_actions().tools([worker("finish", ShopBuilder::exit)]));

    let timeline = timeline(&play.run(&brain, ()).await);

    assert_eq!(answers(&timeline, "Work").map(said).collect::<Vec<_>>(), ["no", "No", "NO", "nothing"]);
    let refused = |answer: &AnswerNode| matches!(&answer.outcome, Some(AnswerOutcome::Refused { .. }));
    assert!(answers(&timeline, "Work").all(refused));
    assert!(matches!(timeline.ending(), Some(Ending::Failed(failure)) if failure.code == EndReason::Action));
}

#[tokio::test(start_paused = true)]
async fn call_reports_its_approval_from_question_to_end() {
    let journal = Journal::default();
    let play = Play::new([Reply::call("gated", json!({ "id": "a" }))]);
    let run = play.start(&workshop(&journal, crate::support::tools), ()).await;
    run.settled().await;

    let waiting = timeline(&play.story(&run).await);
    let ann = Actor::builder().by("ann").channel("slack").build();
    run.signal(SignalKind::Cancel { reason: Some("too late".to_owned()) }, ann.clone()).await.unwrap();
    let cancelled = timeline(&play.story(&run).await);

    let call = waiting.call(&path("Work/0.0")).unwrap();
    let approval = call.approval.as_ref().unwrap();
    assert_eq!((waiting.ending(), call.state, &call.result), (None, CallState::Pending, &None));
    assert_eq!((approval.reason.as_str(), approval.editable, approval.is_pending()), ("it is dangerous", true, true));
    assert_eq!(waiting.at(&path("Work/0.0")).unwrap().status, NodeStatus::Waiting);
    let ending = Ending::Cancelled { actor: ann, reason: Some("too late".to_owned()) };
    assert_eq!(cancelled.ending(), Some(&ending));
    let call = cancelled.call(&path("Work/0.0")).unwrap();
    let outcome = &call.approval.as_ref().unwrap().outcome;
    assert!(matches!(outcome, Some(ApprovalOutcome::Withdrawn { .. })), "{outcome:?}");
    assert!(matches!(call.result, Some(ToolResult::Interrupted { .. } | ToolResult::Skipped { .. })), "{call:?}");
}

#[tokio::test(start_paused = true)]
async fn call_after_an_approval_is_deferred_until_the_decision() {
    let journal = Journal::default();
    let replies =
        [Reply::calls([("gated", json!({ "id": "a" })), ("work", json!({ "id": "b" }))]), Reply::text("Done.")];
    let tools = |config: ShopLoop| {
        config.tools([worker("gated", |t| t.requires_approval("it is dangerous")), worker("work", |t| t)])
    };
    let play = Play::new(replies);
    let run = play.start(&workshop(&journal, tools), ()).await;
    run.settled().await;
    let waiting = timeline(&play.story(&run).await);
    run.approve(&path("Work/0.0"), "ann").await.unwrap();
    let done = timeline(&play.story(&run).await);

    let state = |timeline: &Timeline, at: &str| timeline.call(&path(at)).unwrap().state;
    assert_eq!(["Work/0.0", "Work/0.1"].map(|at| state(&waiting, at)), [CallState::Pending, CallState::Deferred]);
    assert_eq!(["Work/0.0", "Work/0.1"].map(|at| state(&done, at)), [CallState::Done; 2]);
}

#[tokio::test(start_paused = true)]
async fn failed_step_is_closed() {
    let office = brain("Office").step("Open", async |_| Err::<(), _>(Error::new("there is no key")));

    let story = Play::new([]).run(&office, ()).await;

    assert_eq!(timeline(&story).at(&path("Open")).unwrap().status, NodeStatus::Failed);
}

#[tokio::test(start_paused = true)]
async fn limits_and_failures_of_a_model_stand_where_they_happened() {
    let journal = Journal::default();
    let busy = positronic_core::record::ModelError::new(positronic_core::record::ModelErrorKind::Server, "busy");
    let replies = [Reply::error(busy), Reply::call("safe", json!({ "id": "a" })).after(Duration::from_secs(2))];
    let play = Play::of(ScriptedModel::new(replies), true);

    let story = play.test.run(workshop(&journal, |config| crate::support::tools(config).max_iterations(1)), ()).await;

    let timeline = timeline(&story);
    let [failed, answered] = answers(&timeline, "Work").collect::<Vec<_>>()[..] else { panic!("{timeline:?}") };
    assert!(matches!(&failed.outcome, Some(AnswerOutcome::Failed { error, .. }) if error.message == "busy"));
    assert!(
        matches!(&answered.outcome, Some(AnswerOutcome::Answered(answer)) if answer.duration == Duration::from_secs(2))
    );
    let limit = timeline.nodes().find_map(|node| match &node.kind {
        NodeKind::Limit(LimitReached { kind, limit, .. }) => Some((node.path.clone(), *kind, *limit)),
        _ => None,
    });
    assert_eq!(limit, Some((path("Work"), LimitKind::Iterations, 1)));
    assert_eq!(timeline.at(&path("Work")).unwrap().status, NodeStatus::Limited);
}

#[tokio::test(start_paused = true)]
async fn streamed_pieces_of_an_earlier_attempt_generation_or_answer_change_nothing() {
    let play = Play::new([Reply::text("Good morning.")]);
    let story = play.run(&brain("Greeter").r#loop("Greet", |cx| cx.system("Greet.").input("Hello!")), ()).await;
    let asked = story.log().iter().position(|event| matches!(event.kind, EventKind::LoopModelCall { .. })).unwrap();
    let mut timeline = Timeline::of(story.log()[..=asked].iter().map(|event| &**event));
    let piece = |generation, n, text: &str| Delta {
        path: Path::parse("Greet/0").unwrap(),
        attempt: 0,
        generation,
        part: 0,
        kind: DeltaKind::Text,
        call: None,
        tool: None,
        n,
        text: text.to_owned(),
    };
    let seen = |timeline: &Timeline| {
        let answer = answers(timeline, "Greet").next().unwrap();
        answer.stream.as_ref().map(|stream| (stream.parts[0].text.clone(), stream.gap))
    };

    timeline.apply_delta(&piece(0, 0, "Good "));
    timeline.apply_delta(&piece(0, 2, "ng"));
    assert_eq!(seen(&timeline), Some(("Good ng".to_owned(), true)), "a missing piece shows");
    timeline.apply_delta(&piece(1, 0, "Good "));
    timeline.apply_delta(&piece(0, 3, "late"));
    timeline.apply_delta(&piece(1, 0, "Good "));
    assert_eq!(seen(&timeline), Some(("Good ".to_owned(), false)), "another model begins anew; a copy counts once");
    story.log()[asked + 1..].iter().for_each(|event| timeline.apply(event));
    timeline.apply_delta(&piece(1, 1, "late"));
    assert_eq!(timeline, story.timeline());
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Iterations(u32);

impl PluginState for Iterations {
    const NAME: &'static str = "iterations";
}

/// Asks a model before the second iteration.
#[derive(Debug, Clone, Copy)]
struct Curious;

impl<O: Options, S: State, V: Services> Plugin<O, S, V> for Curious {
    type State = Iterations;

    fn initial(&self) -> Iterations {
        Iterations(0)
    }

    async fn prepare(&self, cx: &mut Preparation<'_, O, S, V, Iterations>) -> Result<()> {
        if cx.state.0 == 1 {
            cx.model().ask("Anything else?").await?;
        }
        cx.state.0 += 1;
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn questions_of_plugins_stand_apart_from_the_answers_of_their_loops() {
    let looks = || {
        brain("Clerk").r#loop("Look", |cx| {
            cx.system("Look.")
                .input("Is it there?")
                .plugin(Curious)
                .tool("look", |t| t.description("Looks").execute(async |_: NoArgs, _| Ok("there it is")))
        })
    };
    let office = brain("Office").r#loop("Work", move |cx| {
        let config = cx.system("Work.").input("Look twice.");
        config
            .tool("one", |t| t.brain(looks()).description("Looks"))
            .tool("other", |t| t.brain(looks()).description("Looks"))
    });
    let model = ScriptedModel::from_fn(|request| match request.path.as_str() {
        _ if request.tools.tools().is_empty() => Reply::text("Nothing else."),
        "Work/0" => Reply::calls([("one", json!({})), ("other", json!({}))]),
        look if look.ends_with("Look/0") => Reply::call("look", json!({})),
        _ => Reply::text("It is there."),
    });

    let story = Play::of(model, true).run(&office, ()).await;

    let timeline = timeline(&story);
    for looked in ["Work/0.0/Look", "Work/0.1/Look"] {
        let asked: Vec<_> =
            answers(&timeline, looked).map(|answer| (answer.question.is_some(), said(answer))).collect();
        let expected = [(false, ""), (true, "Nothing else."), (false, "It is there.")];
        assert_eq!(asked, expected.map(|(question, said)| (question, said.to_owned())));
    }
}

#[tokio::test(start_paused = true)]
async fn view_that_replaces_the_changed_nodes_equals_the_timeline() {
    let story = office_day().await;
    let mut timeline = Timeline::new().track_changes();
    let mut view: Vec<serde_json::Value> = Vec::new();

    for event in story.log() {
        timeline.apply(event);
        let changes = timeline.take_changes();
        for id in changes {
            let node = serde_json::to_value(timeline.node(id).unwrap()).unwrap();
            match view.get_mut(id.0 as usize) {
                Some(known) => *known = node,
                None => view.push(node),
            }
        }

        // A view has the root before the first event.
        let whole = serde_json::to_value(&timeline).unwrap();
        assert_eq!(serde_json::to_value(&view).unwrap(), whole["nodes"], "after event {}", event.seq);
    }
    assert_eq!(timeline.take_changes(), []);
}

#[tokio::test(start_paused = true)]
async fn call_after_one_that_handed_back_is_queued_in_timeline_and_record() {
    let billing = brain("Billing").r#loop("Talk", |cx| cx.system("Bills.").hand_back("desk")).build();
    let desk = brain("Desk").r#loop("Chat", move |cx| {
        let billing = billing.clone();
        cx.system("Desk.")
            .tool("billing", |t| t.brain(billing).handoff().stay())
            .tool("note", |t| t.execute(async |_: NoArgs, _| Ok("noted")))
    });
    let model = ScriptedModel::new([
        Reply::calls([("billing", json!({})), ("note", json!({}))]),
        Reply::call("desk", json!({ "reason": "no bill" })),
        Reply::text("Noted."),
    ]);
    let chat = Runner::new(model).conversation("c");
    let run = chat.send(&desk, (), "My bill?").await.unwrap();
    run.result().await.unwrap();
    let log = run.events(Seq(0)).await.unwrap();
    let handed_back = |event: &EventKind| matches!(event, EventKind::LoopBrainComplete { handed_back: true, .. });
    let at = log.iter().position(|event| handed_back(&event.kind)).unwrap();

    for prefix in [&log[..at], &log[..=at], &log[..at + 2]] {
        let events = || prefix.iter().map(AsRef::as_ref);
        let shown = Timeline::of(events()).nodes().find_map(|node| match &node.kind {
            NodeKind::Call(call) if call.tool == "note" => Some(call.state),
            _ => None,
        });
        let recorded = Prompts::of(events()).iter().flat_map(|prompt| &prompt.output).find_map(|output| {
            let OutputKind::Tool(call) = &output.kind else { return None };
            (call.tool == "note").then_some(call.state)
        });
        assert_eq!(shown, recorded, "{:?}", prefix.last());
    }
}
