//! The report of a run: its actions, calls, people, and outcomes.

use std::time::Duration;

use positronic_core::dsl::{Options, Plugin, PluginState, Preparation, Services, State};
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::projection::{Ending, RunReport};
use positronic_core::record::{Actor, EndReason, PriceTable, SignalKind, ToolResult, Usage};
use positronic_core::testing::Story;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::support::{Board, Job, Journal, Play, ShopBuilder, ShopLoop, ShopTool, path, worker, workshop};

fn report(story: &Story) -> RunReport {
    let table =
        json!({"as_of": "2026-01-01", "currency": "EUR", "prices": {"scripted/*": {"input": 1000, "output": 2000}}});
    let prices: PriceTable = serde_json::from_value(table).unwrap();
    RunReport::of(story.log().iter().map(|event| &**event), &prices).unwrap()
}

fn spent(reply: Reply) -> Reply {
    reply.usage(Usage { input: 100, output: 20, ..Usage::default() })
}

fn clerk() -> Brain<(), String, Journal> {
    brain("Clerk")
        .services::<Journal>()
        .state(String::new())
        .r#loop("Look", |cx| cx.system("Look.").input("Is it there?"))
}

/// Counts with a model, then selects actions; its tools fail transiently, ask a person, show outputs and run a brain.
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
            .brain("clerk", clerk(), |b| b.description("Looks"))
    };
    brain("Office")
        .services::<Journal>()
        .step("Count", async |cx| {
            cx.model().ask("How many?").await?;
            Ok(Board::default())
        })
        .r#loop("Work", move |cx| tools(cx.system("Do the jobs.").input("begin")))
        .brain("Check", clerk(), |_| (), |board, _| board)
        .bind(journal.clone())
}

#[test]
fn report_table_covers_every_event() {
    let names = include_str!("../../src/record/event_kind.rs").lines().filter_map(|line| line.strip_prefix("/// | `"));
    let names: Vec<_> = names.filter_map(|rest| rest.split(" | ").next()).flat_map(|cell| cell.split(", ")).collect();
    assert!(names.len() > 40, "{names:?}");
    let table = include_str!("../../src/projection/report/mod.rs");
    let groups: Vec<_> = table.split('`').filter_map(|name| name.strip_suffix('*')).collect();

    for name in names.iter().map(|name| name.trim_matches('`')) {
        let known = table.contains(&format!("`{name}`")) || groups.iter().any(|group| name.starts_with(group));
        assert!(known, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn report_lists_every_step_with_its_reason_and_outcome() {
    let journal = Journal::default();
    let play = Play::new(
        [
            Reply::text("Seven."),
            Reply::text("I would rather talk."),
            Reply::decision("It is due.", "flaky", json!({ "id": "a" })),
            Reply::decision("It is needed.", "gated", json!({ "id": "b" })),
            Reply::decision("Somebody has to look.", "clerk", json!({})),
            Reply::text("It is there."),
            Reply::decision("All is done.", "finish", json!({ "id": "end" })),
            Reply::text("It still is."),
        ]
        .map(spent),
    );
    let run = play.start(&office(&journal), ()).await;
    run.settled().await;
    let edited = SignalKind::Approve { call: path("Work/1.0"), arguments: Some(json!({ "id": "c" })) };
    run.signal(edited, Actor::builder().by("ann").build()).await.unwrap();
    let story = play.story(&run).await;

    let report = report(&story);

    assert_eq!(report.iterations().count(), 6);
    assert_eq!(report.costs.total().known.to_string(), "1.12");
    insta::assert_json_snapshot!(json!({ "parts": report.parts, "files": report.files }));
}

#[tokio::test(start_paused = true)]
async fn run_that_failed_without_a_valid_action_is_reported_with_all_answers() {
    let journal = Journal::default();
    let play = Play::new(["no", "No", "NO", "nothing"].map(Reply::text));
    let brain = workshop(&journal, |config| config.structured_actions().tools([worker("finish", ShopBuilder::exit)]));

    let report = report(&play.run(&brain, ()).await);

    let [iteration] = report.parts[0].iterations.as_slice() else { panic!("{report:?}") };
    assert_eq!(
        iteration.refused.iter().map(|one| one.answer.as_str()).collect::<Vec<_>>(),
        ["no", "No", "NO", "nothing"]
    );
    assert!(!iteration.answered && iteration.calls.is_empty());
    assert!(matches!(&report.ending, Some(Ending::Failed(failure)) if failure.code == EndReason::Decision));
    assert_eq!(report.parts[0].notes.len(), 1, "{:?}", report.parts[0].notes);
}

#[tokio::test(start_paused = true)]
async fn waiting_or_cancelled_run_is_reported_up_to_its_last_event() {
    let journal = Journal::default();
    let play = Play::new([Reply::call("gated", json!({ "id": "a" }))]);
    let run = play.start(&workshop(&journal, crate::support::tools), ()).await;
    run.settled().await;

    let waiting = report(&play.story(&run).await);
    run.signal(SignalKind::Cancel { reason: Some("too late".to_owned()) }, Actor::builder().by("ann").build())
        .await
        .unwrap();
    let cancelled = report(&play.story(&run).await);

    let call = waiting.calls().next().unwrap();
    assert_eq!((&waiting.ending, &call.result, waiting.parts[0].over), (&None, &None, false));
    assert_eq!(call.notes, ["a person was asked: it is dangerous"]);
    let ending = Ending::Cancelled { by: Some("ann".to_owned()), reason: Some("too late".to_owned()) };
    assert_eq!((&cancelled.ending, cancelled.parts[0].over), (&Some(ending), true));
    let result = &cancelled.calls().next().unwrap().result;
    assert!(matches!(result, Some(ToolResult::Interrupted { .. } | ToolResult::Skipped { .. })), "{result:?}");
}

#[tokio::test(start_paused = true)]
async fn failed_step_is_finished() {
    let office = brain("Office").step("Open", async |_| Err::<(), _>(Error::new("there is no key")));

    let story = Play::new([]).run(&office, ()).await;

    let step = &report(&story).parts[0];
    assert_eq!((step.over, step.notes.clone()), (true, vec!["it failed".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn limits_and_model_failures_are_noted_in_place() {
    let journal = Journal::default();
    let busy = positronic_core::record::ModelError::new(positronic_core::record::ModelErrorKind::Server, "busy");
    let replies = [Reply::error(busy), Reply::call("safe", json!({ "id": "a" })).after(Duration::from_secs(2))];
    let play = Play::of(ScriptedModel::new(replies), true);

    let story = play.test.run(workshop(&journal, |config| crate::support::tools(config).max_iterations(1)), ()).await;

    let report = report(&story);
    assert_eq!(report.parts[0].notes, ["its limit of 1 iterations was reached"]);
    assert_eq!(report.parts[0].iterations[0].notes, ["try 1 of the model failed: busy"]);
    assert_eq!(report.parts[0].iterations[0].duration, Some(2_000_000));
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
async fn concurrent_plugin_questions_are_noted_in_their_own_iterations() {
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
        config.brain("one", looks(), |b| b.description("Looks")).brain("other", looks(), |b| b.description("Looks"))
    });
    let model = ScriptedModel::from_fn(|request| match request.path.as_str() {
        _ if request.tools.tools().is_empty() => Reply::text("Nothing else."),
        "Work/0" => Reply::calls([("one", json!({})), ("other", json!({}))]),
        look if look.ends_with("Look/0") => Reply::call("look", json!({})),
        _ => Reply::text("It is there."),
    });

    let story = Play::of(model, true).run(&office, ()).await;

    let report = report(&story);
    for looked in ["Work/0.0/Look", "Work/0.1/Look"] {
        let part = report.parts.iter().find(|part| part.path.as_str() == looked).unwrap();
        assert_eq!(part.iterations[1].said, "It is there.");
        assert_eq!(part.iterations[1].notes, ["a plugin asked the model, which answered: Nothing else."]);
    }
}
