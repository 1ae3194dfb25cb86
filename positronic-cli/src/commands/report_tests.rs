//! `positronic report`.

use std::sync::Arc;

use positronic_core::dsl::Verdict;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{Tier, Usage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::store_tests::Desk;
use crate::app::Project;

#[derive(Serialize, Deserialize, JsonSchema)]
struct Wish {
    /// What is wanted
    goal: String,
}

#[derive(Deserialize, JsonSchema)]
struct Say {
    text: String,
}

/// A brain whose texts contain Markdown and terminal controls.
const ODD: &str = "# Not a heading\n- no item <script>alert(1)</script> [no](link) `code` ```\n| a | b |\u{1b}[2J";

fn odd() -> Brain<Wish, Vec<String>> {
    brain("Odd *brain*")
        .options::<Wish>()
        .state(Vec::new())
        .r#loop("Work", |cx| {
            cx.system("Work.")
                .input(&cx.options.goal)
                .max_iterations(4)
                .tool("echo", |t| t.execute(async |Say { text }, _| Ok(text)))
                .tool("fail", |t| t.execute(async |Say { text }, _| Err::<(), _>(Error::new(text))))
                .tool("pay", |t| t.requires_approval("it costs `money`").execute(async |Say { text }, _| Ok(text)))
        })
        .build()
}

fn project(replies: impl IntoIterator<Item = Reply>) -> Project {
    Project::new().brain(odd()).model(Tier::Normal, Arc::new(ScriptedModel::new(replies)))
}

/// Removes times and durations.
fn timeless(report: &str) -> String {
    let line = |line: &str| match line.split_once("- Began: ") {
        Some(_) => "- Began: [then]".to_owned(),
        None => line.replace(", 0 ms", "").replace(", 1 ms", ""),
    };
    report.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn report_shows_the_texts_of_a_run_literally() {
    let desk = Desk::new();
    let usage = Usage { input: 1_200, output: 30, ..Usage::default() };
    let project = project([
        Reply::calls([("echo", json!({ "text": ODD })), ("fail", json!({ "text": ODD }))]).usage(usage),
        Reply::call("echo", json!({ "text": "x".repeat(6_000) })),
        Reply::call("no such\ntool `at` all", json!({})),
        Reply::text(ODD),
    ]);
    let goal = format!("goal={ODD}");
    desk.call(&project, &["run", "odd", "--id", "odd", "-o", &goal]);

    let report = desk.call(&Project::new(), &["report", "odd"]);

    assert_eq!((report.code, report.err.as_str()), (0, ""));
    assert!(!report.out.contains('\u{1b}'), "{}", report.out);
    insta::assert_snapshot!(
        "odd",
        timeless(&report.out.replace(&"x".repeat(6_000), "[6,000 x]").replace(&"x".repeat(4_000), "[4,000 x]"))
    );
}

#[test]
fn waiting_failed_and_cancelled_runs_have_reports() {
    let desk = Desk::new();
    let pays = || project([Reply::call("pay", json!({ "text": "ann" }))]);
    desk.call(&pays(), &["run", "odd", "--id", "waits", "-o", "goal=Pay"]);
    let waiting = desk.call(&Project::new(), &["report", "waits"]).out;
    desk.call(&Project::new(), &["cancel", "waits", "--reason", "too *late*"]);
    let cancelled = desk.call(&Project::new(), &["report", "waits"]).out;
    desk.call(&project([]), &["run", "odd", "--id", "fails", "-o", "goal=Fail"]);
    let failed = desk.call(&Project::new(), &["report", "fails"]).out;

    let outcome = |report: &str| report.lines().find(|line| line.starts_with("- Outcome")).unwrap().to_owned();
    assert!(outcome(&waiting).starts_with("- Outcome: **not over**, waiting: "), "{waiting}");
    assert!(waiting.contains("- needs approval: it costs \\`money\\`\n- not over\n"), "{waiting}");
    assert_eq!(outcome(&cancelled), "- Outcome: **cancelled** by ann: too \\*late\\*");
    assert!(outcome(&failed).starts_with("- Outcome: **failed**: the model of the loop"), "{failed}");
    assert!(failed.contains("#### 1. no answer yet"), "{failed}");
}

#[test]
fn report_is_written_to_a_file_and_replaces_one_only_with_force() {
    let desk = Desk::new();
    let priced =
        json!({"as_of": "2026-01-01", "currency": "EUR", "prices": {"scripted/*": {"input": 1000, "output": 0}}});
    let prices = desk.path("prices.json");
    std::fs::write(&prices, priced.to_string()).unwrap();
    let usage = Usage { input: 1_200, output: 30, ..Usage::default() };
    desk.call(&project([Reply::text("Done.").usage(usage)]), &["run", "odd", "--id", "done", "-o", "goal=Do"]);

    let file = desk.path("run.md");
    let written = desk.call(&Project::new(), &["report", "done", "--out", &file, "--prices", &prices]);
    let again = desk.call(&Project::new(), &["report", "done", "--out", &file]);
    let forced = desk.call(&Project::new(), &["report", "done", "--out", &file, "--force", "--json"]);

    assert_eq!((written.code, written.out.as_str()), (0, "wrote the report of the run done to desk/run.md\n"));
    assert_eq!(
        (again.code, again.err.as_str()),
        (2, "error: desk/run.md already exists\n  name another file, or use --force to replace it\n")
    );
    assert_eq!(forced.code, 0);
    std::fs::create_dir(desk.path("folder")).unwrap();
    for force in [None, Some("--force")] {
        let folder = desk.path("folder");
        let arguments = ["report", "done", "--out", &folder].into_iter().chain(force);
        assert_eq!(
            desk.refused(&arguments.collect::<Vec<_>>()),
            "2\nerror: desk/folder is a folder and not a file\n  name a file\n"
        );
    }
    let document: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let timeline = &document["timeline"];
    assert_eq!(
        (&timeline["answers"], &timeline["nodes"][0]["kind"]["ending"]["type"]),
        (&json!(1), &json!("completed"))
    );
    let text = desk.call(&Project::new(), &["report", "done", "--prices", &prices]).out;
    assert!(text.contains("- Used: 1,200 tokens in, 30 out\n- Cost: 1.2 EUR, by the prices of 2026-01-01\n"), "{text}");
    assert!(text.contains("- 1,200 tokens in, 30 out; cost 1.2 EUR\n"), "{text}");
    let unknown = desk.refused(&["report", "nobody"]);
    assert!(unknown.starts_with("2\nerror: unknown run `nobody`"), "{unknown}");
}

/// A loop with a guard that asks a model about a message, and guards that replace a message and an answer, or stop the loop.
fn guarded(stops: bool) -> Project {
    let brain = brain("Guarded").r#loop("Chat", move |cx| {
        cx.system("Help.")
            .input("My card is 4111.")
            .guard_input("Polite", async |cx, message| match &*cx.model().system("Judge.").ask(&message.text).await? {
                "yes" => Ok(Verdict::Pass),
                _ => Ok(Verdict::Refuse("it is not polite".to_owned())),
            })
            .guard_input("Cards", async |_, message| Verdict::Replace(json!(message.text.replace("4111", "[card]"))))
            .guard_answer("Short", move |_, _| {
                std::future::ready(if stops { Verdict::Stop("no".to_owned()) } else { Verdict::Replace(json!("Hi.")) })
            })
    });
    let model = ScriptedModel::from_fn(|request| match &*request.system {
        "Judge." => Reply::text("yes"),
        _ => Reply::text("A long answer."),
    });
    let brain = brain.build();
    let outer = outer_of(&brain);
    Project::new().brain(brain).brain(outer).model(Tier::Normal, Arc::new(model))
}

/// A brain that runs another one as a stage, and one of several at the same time.
fn outer_of(inner: &Brain<(), ()>) -> Brain<(), ()> {
    let middle = brain("Middle").state(()).brain("Inner", inner).map_output(|(), ()| ()).build();
    brain("Outer").state(()).all("Both", |g| (g.run("Middle", middle, |_| ()),), |(), ((),)| ()).build()
}

#[test]
fn what_guards_have_done_is_in_the_lines_of_a_run_and_in_its_report() {
    let desk = Desk::new();
    let run = desk.call(&guarded(false), &["run", "guarded", "--id", "guarded"]);
    assert_eq!(run.code, 0, "{}", run.err);
    let said = [
        "the model of a guard or a plugin answered in ",
        "the guard Cards replaced the message",
        "the guard Short replaced the answer",
    ];
    for said in said {
        assert!(run.err.contains(said), "{said}: {}", run.err);
    }

    let show = desk.call(&Project::new(), &["show", "guarded"]).out;
    assert!(show.contains("› My card is 4111.\n  → the guard Cards replaced the message\n"), "{show}");
    assert!(show.contains("  Hi.\n  → the guard Short replaced the answer\n") && !show.contains("yes"), "{show}");

    let report = desk.call(&Project::new(), &["report", "guarded"]).out;
    assert!(report.contains("Answer:\n\n> Hi.\n"), "{report}");
    assert!(report.contains("- a guard or a plugin asked a model, which answered: yes\n"), "{report}");
}

#[test]
fn answer_to_a_prompt_or_a_step_is_that_of_the_model() {
    let asks = brain("Asks")
        .prompt("Sort", |cx| cx.system("Sort.").ask::<String>("What is it?"), |(), kind| kind)
        .step("Write", async |cx| cx.model().ask("Write.").await);
    let model = ScriptedModel::new([Reply::text(json!({ "value": "a bill" }).to_string()), Reply::text("A letter.")]);
    let desk = Desk::new();
    let run =
        desk.call(&Project::new().brain(asks).model(Tier::Normal, Arc::new(model)), &["run", "asks", "--id", "asks"]);
    assert!(
        run.err.contains("Sort: the model answered in ") && run.err.contains("Write: the model answered in "),
        "{}",
        run.err
    );

    let show = desk.call(&Project::new(), &["show", "asks"]).out;
    assert!(show.contains("a bill") && show.contains("A letter."), "{show}");
}

#[test]
fn guard_that_stops_a_loop_has_an_exit_code() {
    let desk = Desk::new();
    assert_eq!(desk.call(&guarded(true), &["run", "guarded", "--id", "stopped"]).code, 9);
    assert_eq!(desk.call(&Project::new(), &["result", "stopped"]).code, 9);
    assert_eq!(desk.call(&guarded(true), &["run", "outer"]).code, 9, "a brain in another one");
}
