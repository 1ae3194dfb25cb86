//! `plan`: sub-goals run as nested brains, in order or at once, within limits, and return their results.

use std::sync::Arc;

use positronic_core::dsl::IntoBrain as _;
use positronic_core::model::scripted::Reply;
use positronic_core::prelude::*;
use positronic_core::record::{EventKind, ModelRequest};
use positronic_core::testing::Story;
use positronic_toolbox::{self as toolbox, OnFailure, PlanOptions, PlanOrder, PlanPart, SubGoal};
use serde_json::{Value, json};

use crate::support::boundaries::{Ledger, Tale};
use crate::support::{Journal, Play, done, error_of, path, results, waits};

/// Records its goal; `fails` fails, `asks` waits for a person.
fn worker() -> Brain<String, String, Journal> {
    brain("Worker")
        .options::<String>()
        .services::<Journal>()
        .step("Work", async |cx| {
            cx.services.note(cx.options.as_str());
            // A concurrent worker can begin before it ends.
            tokio::task::yield_now().await;
            if cx.options.contains("fails") { Err(Error::new("no milk")) } else { Ok(format!("{} done", cx.options)) }
        })
        .build()
}

/// Tells a worker its goal and the earlier results.
fn goal_text(part: &SubGoal, before: &[PlanPart]) -> String {
    let before: Vec<_> = before.iter().map(|part| format!("{} {:?}", part.title, part.status)).collect();
    if before.is_empty() { part.goal.clone() } else { format!("{} after {}", part.goal, before.join(", ")) }
}

fn desk(options: PlanOptions, journal: &Journal) -> Brain<(), ()> {
    brain("Desk")
        .services::<Journal>()
        .r#loop("Work", move |cx| cx.system("Plan.").tools([toolbox::plan(worker(), options.clone(), goal_text)]))
        .bind(journal.clone())
}

fn split(goals: &[&str]) -> Reply {
    let parts: Vec<_> = (1..).zip(goals).map(|(n, goal)| json!({"title": format!("t{n}"), "goal": goal})).collect();
    Reply::call("plan", json!({"goal": "tea for all", "parts": parts}))
}

async fn played(options: PlanOptions, goals: &[&str]) -> (Vec<String>, Value, Story) {
    let journal = Journal::default();
    let play = Play::new([split(goals), done()]);
    let story = play.run(&desk(options, &journal), ()).await;
    let result = results(&story, "Work").remove(0);
    let positronic_core::record::ToolResult::Success { output, .. } = result else { panic!("{result:?}") };
    (journal.take(), output, story)
}

fn statuses(result: &Value) -> Vec<&str> {
    result["parts"].as_array().unwrap().iter().map(|part| part["status"].as_str().unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn parts_run_in_order_and_each_gets_the_earlier_results() {
    let (did, result, story) = played(PlanOptions::default(), &["boil", "brew", "pour"]).await;

    assert_eq!(did, ["boil", "brew after t1 Done", "pour after t1 Done, t2 Done"]);
    assert_eq!((&result["goal"], &result["complete"]), (&json!("tea for all"), &json!(true)));
    assert_eq!(
        result["parts"][2],
        json!({
            "title": "t3", "goal": "pour", "status": "done", "result": "pour after t1 Done, t2 Done done"
        })
    );
    let paths: Vec<_> = story
        .log()
        .iter()
        .filter(|event| matches!(event.kind, EventKind::BrainStart(_)))
        .map(|event| event.path.to_string())
        .collect();
    assert_eq!(paths, ["", "Work/0.0", "Work/0.0/Sub-goals/0.0", "Work/0.0/Sub-goals/1.0", "Work/0.0/Sub-goals/2.0"]);
    let asked: Vec<_> = story
        .log()
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::LoopModelCall { model, .. } => Some(model.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(asked.iter().filter(|model| *model == "code").count(), 4, "the coordinator asks no model: {asked:?}");
}

#[tokio::test(start_paused = true)]
async fn parts_run_at_once_and_the_next_get_the_earlier_results() {
    let options = PlanOptions::builder().order(PlanOrder::InParallel(2)).build();

    let (did, result, story) = played(options, &["boil", "brew", "pour"]).await;

    assert_eq!(did, ["boil", "brew", "pour after t1 Done, t2 Done"]);
    assert_eq!(statuses(&result), ["done"; 3]);
    let begun: Vec<_> = story
        .log()
        .iter()
        .filter(|event| matches!(event.kind, EventKind::StepStart { .. } | EventKind::StepComplete { .. }))
        .map(|event| (event.path.to_string(), event.kind.name()))
        .filter(|(path, _)| path.ends_with("/Work"))
        .collect();
    let first: Vec<_> = begun.iter().take(2).map(|(_, name)| *name).collect();
    assert_eq!(first, ["STEP_START", "STEP_START"], "both have begun before one has ended: {begun:?}");
}

#[tokio::test(start_paused = true)]
async fn author_sets_whether_a_failed_part_ends_the_plan() {
    let goals = ["boil", "fails", "pour"];
    let (did, result, _) = played(PlanOptions::default(), &goals).await;
    assert_eq!(did, ["boil", "fails after t1 Done"], "nothing is begun after it");
    assert_eq!((statuses(&result), &result["complete"]), (vec!["done", "failed", "not_begun"], &json!(false)));
    assert_eq!(result["parts"][0]["result"], "boil done", "existing results are returned");
    assert!(result["parts"][1]["error"].as_str().unwrap().contains("no milk"), "{result}");

    let (did, result, _) = played(PlanOptions::builder().on_failure(OnFailure::GoOn).build(), &goals).await;
    assert_eq!(did[2], "pour after t1 Done, t2 Failed", "it gets the failure");
    assert_eq!((statuses(&result), &result["complete"]), (vec!["done", "failed", "done"], &json!(false)));

    let at_once = PlanOptions::builder().order(PlanOrder::InParallel(2)).build();
    let (did, result, _) = played(at_once, &["fails", "brew", "pour"]).await;
    assert_eq!(did, ["fails", "brew"], "concurrent parts finish");
    assert_eq!(statuses(&result), ["failed", "done", "not_begun"]);
}

#[tokio::test(start_paused = true)]
async fn overlong_empty_or_misspelt_plans_are_refused() {
    let journal = Journal::default();
    let play = Play::new([
        split(&["a", "b", "c"]),
        split(&[]),
        split(&["a", " "]),
        Reply::call("plan", json!({"goal": "g", "steps": []})),
        Reply::call("plan", json!({"goal": "g", "parts": [{"title": "a", "goal": "b", "tool": "c"}]})),
        done(),
    ]);

    let story = play.run(&desk(PlanOptions::builder().max_parts(2).build(), &journal), ()).await;

    let results = results(&story, "Work");
    assert!(
        error_of(&results[0]).contains("the plan has 3 parts, but at most 2 are allowed; merge some"),
        "{results:?}"
    );
    assert!(error_of(&results[1]).contains("the plan has no parts"));
    assert!(error_of(&results[2]).contains("the part `t2` has no title or no goal"));
    assert!(
        error_of(&results[3]).contains("the arguments do not match the schema")
            && error_of(&results[4]).contains("the arguments do not match the schema")
    );
    assert!(journal.take().is_empty());
}

/// Plans recursively until the depth limit.
fn nested() -> Brain<String, ()> {
    brain("Planner")
        .options::<String>()
        .r#loop("Work", |cx| cx.system("Plan.").input(cx.options.as_str()).tools([planning(PlanOptions::default())]))
        .build()
}

fn planning<O: positronic_core::dsl::Options, S: positronic_core::dsl::State>(options: PlanOptions) -> Tool<O, S> {
    toolbox::plan(nested(), options, |part: &SubGoal, _| part.goal.clone())
}

#[tokio::test(start_paused = true)]
async fn nested_plans_have_a_depth_limit() {
    let play = Play::new([split(&["one"]), split(&["two"]), split(&["three"]), done(), done(), done()]);
    let root = brain("Desk").r#loop("Work", |cx| cx.system("Plan.").tools([planning(PlanOptions::default())]));

    let story = play.run(&root, ()).await;

    let inner = "Work/0.0/Sub-goals/0.0/Work/0.0/Sub-goals/0.0/Work";
    let refused = results(&story, inner).remove(0);
    assert!(
        error_of(&refused).contains("plans may nest 2 levels deep, and this call is already at level 2"),
        "{refused:?}"
    );
    assert!(results(&story, "Work")[0].is_success());
}

#[tokio::test(start_paused = true)]
async fn part_can_wait_for_a_person_while_others_continue() {
    let asking = || {
        brain("Worker").options::<String>().state(String::new()).r#loop("Ask", |cx| {
            cx.system("Ask.").input(cx.options.as_str()).tool("buy", |t| {
                t.requires_approval("it costs money").exit().execute(async |_: NoArgs, cx| {
                    Ok(cx.result("bought").update(|state: &mut String| "bought".clone_into(state)))
                })
            })
        })
    };
    let options = PlanOptions::builder().order(PlanOrder::InParallel(2)).build();
    let desk = brain("Desk").r#loop("Work", move |cx| {
        cx.system("Plan.").tools([toolbox::plan(asking(), options.clone(), |part: &SubGoal, _| part.goal.clone())])
    });
    let buy = || Reply::call("buy", json!({}));
    let play = Play::new([split(&["tea", "milk"]), buy(), buy(), done()]);
    let run = play.start(&desk, ()).await;

    let calls = ["Work/0.0/Sub-goals/0.0/Ask/0.0", "Work/0.0/Sub-goals/0.1/Ask/0.0"];
    assert_eq!(waits(&run).await, calls);
    run.approve(&path(calls[1]), "ann").await.unwrap();
    run.approve(&path(calls[0]), "ann").await.unwrap();
    let story = play.story(&run).await;

    let results = results(&story, "Work");
    let positronic_core::record::ToolResult::Success { output, .. } = &results[0] else { panic!("{results:?}") };
    assert_eq!(output["parts"][1]["result"], "bought");
}

#[tokio::test(start_paused = true)]
async fn plan_that_crashed_anywhere_ends_as_if_uninterrupted() {
    let ledger = Ledger::default();
    let noting = brain("Worker").options::<String>().services::<Ledger>().step("Work", async |cx| {
        cx.services.act_once(cx.idempotency_key(), &cx.options);
        if cx.options.contains("fails") { Err(Error::new("no milk")) } else { Ok(format!("{} done", cx.options)) }
    });
    for order in [PlanOrder::InOrder, PlanOrder::InParallel(2)] {
        let options = PlanOptions::builder().order(order).on_failure(OnFailure::GoOn).build();
        let noting = noting.clone();
        let desk = brain("Desk").services::<Ledger>().r#loop("Work", move |cx| {
            cx.system("Plan.").tools([toolbox::plan(noting.clone(), options.clone(), goal_text)])
        });
        let says = |request: &ModelRequest| match request.messages.messages().len() {
            // The engine's opening message.
            1 => split(&["boil", "fails", "brew", "pour"]),
            _ => done(),
        };
        let tale = Tale {
            definition: desk.bind(ledger.clone()).definition(),
            options: Value::Null,
            ledger: ledger.clone(),
            says: Arc::new(says),
            answers: Arc::new(|_| Vec::new()),
        };
        let baseline = tale.undisturbed().await;
        assert!(baseline.deaths.len() > 30, "{}", baseline.deaths.len());
        for death in &baseline.deaths {
            if let Some((end, _)) = tale.after(&baseline, death).await {
                assert_eq!(end, baseline.end, "{order:?} after {} with {:?}", death.until, death.deeds);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn structured_loop_plans_and_its_sub_goals_select_their_own_actions() {
    let solver = || {
        brain("Solver").options::<String>().state(String::new()).r#loop("Solve", |cx| {
            cx.system("Solve.").input(&**cx.options).structured_actions().tool("finish", |t| {
                t.exit().execute(async |Found { found }, cx| Ok(cx.result("done").update(move |state| *state = found)))
            })
        })
    };
    let goal = |part: &SubGoal, _: &[PlanPart]| part.goal.clone();
    let planner = brain("Planner").r#loop("Work", move |cx| {
        let plan = toolbox::plan(solver(), PlanOptions::default(), goal);
        cx.system("Plan.")
            .tools([plan])
            .structured_actions()
            .tool("finish", |t| t.exit().execute(async |_: Found, _| Ok("told")))
    });
    let parts = json!([{"title": "a", "goal": "boil"}, {"title": "b", "goal": "brew"}]);
    let found = |text: &str| Reply::action("It is found.", "finish", json!({ "found": text }));
    let play = Play::new([
        Reply::action("In two parts.", "plan", json!({"goal": "tea", "parts": parts})),
        found("boiled"),
        found("brewed"),
        found("tea"),
    ]);

    let story = play.run(&planner, ()).await;

    let results = results(&story, "Work");
    let positronic_core::record::ToolResult::Success { output, .. } = &results[0] else { panic!("{results:?}") };
    let answers: Vec<_> = output["parts"].as_array().unwrap().iter().map(|part| &part["result"]).collect();
    assert_eq!(answers, [&json!("boiled"), &json!("brewed")]);
    assert!(results[1].is_success());
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Found {
    found: String,
}
