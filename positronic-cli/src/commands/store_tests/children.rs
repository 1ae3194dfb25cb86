//! Child runs on the command line.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use positronic_core::dsl::Child;
use positronic_core::model::scripted::ScriptedModel;
use positronic_core::prelude::*;
use positronic_core::record::{Status, Tier};
use positronic_core::store::RunFilter;
use positronic_sqlite::SqliteStore;
use serde_json::json;

use super::Desk;
use crate::app::Project;

/// A child that waits for the webhook `post`.
fn letter() -> Brain<(), String> {
    brain("Letter")
        .state("letter".to_owned())
        .wait("Post", |w| w.on(webhook::<String>("post"), String::clone), |_, text| text)
        .build()
}

fn parent() -> Brain<(), String> {
    brain("Parent")
        .step("Begin", async |cx| cx.start("letter", letter(), ()).await)
        .join("Letter", Child::clone, |_, text| text.unwrap_or_default())
        .build()
}

fn project() -> Project {
    Project::new().brain(parent()).brain(letter()).model(Tier::Normal, Arc::new(ScriptedModel::new([])))
}

/// Runs a parent until it and its child wait, and returns the child's id.
fn waiting_parent(desk: &Desk) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = SqliteStore::open(desk.path("runs.db")).unwrap();
        let runner = Runner::new(ScriptedModel::new([])).store(store);
        runner.start(parent(), ()).await.unwrap().settled().await;
        let client = runner.client();
        let row = loop {
            let filter = RunFilter::builder().brain("Letter").status(vec![Status::Waiting]).build();
            match client.store().runs(&filter).await.unwrap().pop() {
                Some(row) => break row,
                None => tokio::task::yield_now().await,
            }
        };
        runner.release().await;
        row.run.to_string()
    })
}

#[test]
fn last_run_is_the_one_that_a_person_has_started() {
    let desk = Desk::new();
    waiting_parent(&desk);
    let shown = desk.call(&Project::new(), &["show", "@"]).out;
    assert!(shown.contains("\nParent\n"), "{shown}");
}

#[test]
fn wait_for_a_child_suggests_no_answer() {
    let desk = Desk::new();
    let child = waiting_parent(&desk);
    let shown = desk.call(&Project::new(), &["show", "@"]).out;
    assert!(shown.contains(&format!("\n    desk show {child}\n")), "{shown}");
    assert!(!shown.contains("--webhook run"), "{shown}");
}

#[test]
fn run_of_an_unknown_brain_says_how_the_project_gets_it() {
    let desk = Desk::new();
    let child = waiting_parent(&desk);
    let refused = desk.call(&Project::new().brain(parent()), &["work", &child]);
    assert_eq!(refused.code, 2);
    assert_eq!(
        refused.err,
        "error: unknown brain `Letter`\n  the project has the brains `Parent`\n  a run continues if the project has its brain, also a run that \
         another one has started: add it with `Project::brain`\n"
    );
}

#[test]
fn work_on_a_run_works_on_its_children() {
    let desk = Desk::new();
    let child = waiting_parent(&desk);
    let project = Project::new()
        .brain(parent())
        .brain(letter())
        .model(positronic_core::record::Tier::Normal, std::sync::Arc::new(ScriptedModel::new([])));
    let payload = json!("Dear Ann").to_string();
    let sent =
        desk.call(&project, &["send", &child, "--webhook", "post", "--identifier", "letter", "--payload", &payload]);
    assert_eq!(sent.code, 0, "{}", sent.err);
    let worked = desk.call(&project, &["work", "@"]);
    assert_eq!((worked.code, worked.out.as_str()), (0, "\"Dear Ann\"\n"), "{}", worked.err);
}

#[test]
fn run_ends_with_the_code_of_a_wait_when_its_child_waits() {
    let desk = Desk::new();
    let project = project();
    let outcome = desk.call(&project, &["run", "parent"]);
    assert_eq!(outcome.code, 3, "{}", outcome.err);
    assert!(outcome.err.contains("desk show child-"), "{}", outcome.err);
}

#[test]
fn work_on_a_run_ends_with_the_code_of_a_wait_when_its_child_is_paused() {
    let desk = Desk::new();
    let child = waiting_parent(&desk);
    let paused = desk.call(&project(), &["pause", &child]);
    assert_eq!(paused.code, 0, "{}", paused.err);
    let worked = desk.call(&project(), &["work", "@"]);
    assert_eq!(worked.code, 3, "{}", worked.err);
}

#[test]
fn run_ends_when_its_child_is_of_a_brain_that_the_project_lacks() {
    let desk = Desk::new();
    let child = waiting_parent(&desk);
    let payload = json!("Dear Ann").to_string();
    desk.json(&["send", &child, "--webhook", "post", "--identifier", "letter", "--payload", &payload]);
    let project = Project::new().brain(parent()).model(Tier::Normal, Arc::new(ScriptedModel::new([])));
    let lacks =
        format!("the run {child} is not continued: this project lacks its brain `Letter`, and no worker has it");

    let worked = desk.call(&project, &["work", "@"]);

    assert_eq!(worked.code, 3, "{}", worked.err);
    assert!(worked.err.contains(&lacks), "{}", worked.err);
}

#[test]
fn run_with_the_id_of_an_existing_run_continues_its_children() {
    let desk = Desk::new();
    let begin = |project: &Project| desk.call(project, &["run", "parent", "--id", "one"]);
    assert_eq!(begin(&project()).code, 3);
    let rows = desk.call(&Project::new(), &["runs", "brain:Letter", "--json"]).out;
    let row: serde_json::Value = serde_json::from_str(rows.lines().next().unwrap()).unwrap();
    let child = row["run"].as_str().unwrap();
    let payload = json!("Dear Ann").to_string();
    desk.json(&["send", child, "--webhook", "post", "--identifier", "letter", "--payload", &payload]);

    let continued = begin(&project());

    assert_eq!((continued.code, continued.out.as_str()), (0, "\"Dear Ann\"\n"), "{}", continued.err);
}

#[test]
fn cancelled_run_ends_after_its_child_has_undone_what_it_did() {
    static BEGUN: AtomicU32 = AtomicU32::new(0);
    static UNDONE: AtomicU32 = AtomicU32::new(0);
    fn kid() -> Brain<(), String> {
        brain("Kid")
            .state(String::new())
            .step("Open", async |cx| Ok(cx.state.clone()))
            .compensate(async |_| {
                BEGUN.fetch_add(1, Ordering::Relaxed);
                // Longer than the end of the parent takes.
                for _ in 0..10_000 {
                    tokio::task::yield_now().await;
                }
                UNDONE.fetch_add(1, Ordering::Relaxed);
                Ok(())
            })
            .wait("Post", |w| w.on(webhook::<String>("post"), |_| "kid".to_owned()), |_, text| text)
            .build()
    }
    let parent = brain("Parent")
        .step("Begin", async |cx| cx.start("kid", kid(), ()).await)
        .compensate(async |_| Ok(()))
        .join("Kid", Child::clone, |_, text| text.unwrap_or_default());
    let project = Project::new().brain(parent).brain(kid()).model(Tier::Normal, Arc::new(ScriptedModel::new([])));
    let desk = Desk::new();
    assert_eq!(desk.call(&project, &["run", "parent", "--id", "one"]).code, 3);
    desk.json(&["cancel", "one"]);

    let worked = desk.call(&project, &["work", "one"]);

    assert_eq!(worked.code, 4, "{}", worked.err);
    let rows = desk.call(&Project::new(), &["runs", "status:cancelled", "--json"]).out;
    assert_eq!(rows.lines().count(), 2, "{}\n{rows}", worked.err);
    let [begun, undone] = [&BEGUN, &UNDONE].map(|count| count.load(Ordering::Relaxed));
    assert_eq!((begun, undone), (1, 1), "{}", worked.err);
}
