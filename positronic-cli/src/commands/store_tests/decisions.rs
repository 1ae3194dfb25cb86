//! Waiting runs: their output, and decisions by other processes.

use std::sync::Arc;
use std::time::Duration;

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::Tier;
use serde_json::{Value, json};

use super::desk::{Desk, begun, begun_batch, refund, scripted};
use crate::app::Project;

#[test]
fn waiting_run_is_stored_and_prints_how_to_continue() {
    let desk = Desk::new();

    let outcome = desk.call(&scripted([refund(70)]), &["run", "help desk", "-o", "customer=ada", "--id", "ticket-1"]);

    assert_eq!((outcome.code, outcome.out.as_str()), (3, ""));
    insta::assert_snapshot!("waits_err", outcome.err);
    assert_eq!(desk.json(&["runs", "brain:help-desk", "user:ada"]), Value::Null);
    assert_eq!(desk.json(&["runs", "brain:help-desk", "A REFUND OF"])["run"], "ticket-1");
    insta::assert_snapshot!(desk.call(&Project::new(), &["runs"]).out, @r"
    RUN       BRAIN      STATUS   SINCE  AGE  TOKENS  ABOUT                  HOW IT STANDS
    ticket-1  Help Desk  waiting  0s     0s   0       customer ada, limit 0  for a person's decision about `refund` at `Chat/0.0` (a refund of 70).
    ");
}

#[cfg(feature = "sqlite")]
#[test]
fn decision_beside_the_worker_that_continues_the_run_asks_for_no_other() {
    let desk = Desk::new();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let ask = brain("Ask").r#loop("Chat", |cx| {
        cx.system("Pay.")
            .input("Pay.")
            .tool("pay", |t| t.requires_approval("it costs money").execute(async |_: NoArgs, _| Ok("paid")))
    });
    let (worker, run) = runtime.block_on(async {
        let store = positronic_sqlite::SqliteStore::open(desk.path("runs.db")).unwrap();
        let model = ScriptedModel::new([Reply::call("pay", json!({})), Reply::text("Paid.")]);
        let worker = positronic_core::runner::Runner::new(model).store(store).linger(Duration::ZERO);
        let run = worker.start(ask, ()).await.unwrap();
        run.settled().await;
        (worker, run)
    });

    let approved = desk.call(&Project::new(), &["approve", run.id().as_str()]);
    runtime.block_on(run.result()).unwrap();
    drop(worker);

    assert_eq!(approved.code, 0, "{}", approved.err);
    assert!(!approved.err.contains("desk work"), "the worker continues the run: {}", approved.err);
    assert!(approved.err.is_empty() || approved.err.contains("is alive and continues it"), "{}", approved.err);
}

#[test]
fn work_continues_a_run_that_another_process_decided() {
    let desk = Desk::new();
    begun(&desk, "ticket-1");

    let approved = desk.call(&Project::new(), &["approve", "tick", "--args", r#"{"amount": 60}"#]);
    assert_eq!((approved.code, approved.out.as_str()), (0, "approved Chat/0.0 (event 10 of ticket-1)\n"));
    assert!(approved.err.contains("is open for it, continue it with: desk work ticket-1"), "{}", approved.err);

    let listed = desk.call(&Project::new(), &["runs"]).out;
    assert!(listed.contains("running (no worker)"), "{listed}");
    assert_eq!(desk.json(&["runs"])["unclaimed"], true);

    let waits = scripted([Reply::call("write", json!({"text": "Done."}))]);
    let worked = desk.call(&waits, &["work", "ticket-1"]);
    assert_eq!(worked.code, 3);
    let command = "desk send ticket-1 --webhook post --identifier ada --payload";
    assert!(worked.err.contains(command), "{}", worked.err);

    let payload = ["--webhook", "post", "--identifier", "ada", "--payload"];
    let misfit = desk.refused(&[&["send", "ticket-1"][..], &payload, &[r#"{"stars": "many"}"#]].concat());
    assert!(misfit.starts_with("7\nerror: the payload for `Chat/1.0` is invalid"), "{misfit}");
    let delivered = desk.json(&[&["send"][..], &payload, &[r#"{"stars": 5}"#]].concat());
    assert_eq!(delivered["delivered"]["run"], "ticket-1");

    let done = desk.call(&scripted([Reply::text("All is well.")]), &["work", "ticket-1"]);
    assert_eq!(done.code, 0, "{}", done.err);
    assert_eq!(serde_json::from_str::<Value>(&done.out).unwrap(), json!({"customer": "ada", "refunds": [60]}));
    assert_eq!(desk.json(&["runs", "status:completed"])["run"], "ticket-1");
    insta::assert_snapshot!(desk.refused(&["approve", "ticket-1", "Chat/0.0"]), @"
    7
    error: the call `Chat/0.0` is already decided: it was approved by ann at the command line
      nothing was changed; `desk show ticket-1` shows the run
    ");
    let last = "the last decision is about `Chat/0.0`: it was approved by ann at the command line\n";
    let unnamed = desk.refused(&["approve", "ticket-1"]);
    assert!(unnamed.contains("waits for a decision; it is completed") && unnamed.contains(last), "{unnamed}");
}

#[test]
fn several_decisions_are_accepted_together_or_not_at_all() {
    let desk = Desk::new();
    begun_batch(&desk, "both");

    insta::assert_snapshot!(desk.refused(&["approve", "both"]), @"
    2
    error: several calls of the run wait for a decision; name the calls, or use --all
      Work/0.0  note needs approval: to note a
      Work/0.1  note needs approval: to note b
    ");
    let wrong = desk.refused(&["approve", "both", "Work/0.0", "Work/0.7"]);
    assert!(wrong.starts_with("7\nerror: the run has no open call `Work/0.7`"), "{wrong}");
    assert_eq!(desk.call(&Project::new(), &["inbox"]).out.matches("needs approval").count(), 2, "none was decided");

    let rejected = desk.json(&["reject", "both", "--all", "--reason", "not today"]);
    assert_eq!(rejected["accepted"].as_array().unwrap().len(), 2);
    let done = desk.call(&scripted([Reply::text("Nothing was noted.")]), &["work", "both"]);
    assert_eq!((done.code, done.out.as_str()), (0, "[]\n"), "{}", done.err);
    assert!(done.err.contains("rejected by ann: not today"), "{}", done.err);
}

#[test]
fn repeated_call_is_decided_once_and_an_empty_name_is_refused() {
    let desk = Desk::new();
    begun_batch(&desk, "both");

    insta::assert_snapshot!(desk.refused(&["approve", "both", ""]), @"
    2
    error: the name of a call is empty
      name a call such as Chat/0.1, . for the run itself, or nothing if only one waits
    ");
    assert_eq!(desk.refused(&["approve", "", "Work/0.0"]).lines().nth(1), Some("error: the id of the run is empty"));
    for nothing in [&["approve", "both", "--all", "--by", ""][..], &["send", "both", "--message", " "]] {
        assert_eq!(desk.call(&Project::new(), nothing).code, 2, "{nothing:?}");
    }
    let approved = desk.json(&["approve", "both", "Work/0.0", "Work/0.0"]);

    assert_eq!(approved["accepted"].as_array().unwrap().len(), 1);
}

#[test]
fn blank_reason_is_dropped() {
    let desk = Desk::new();
    begun_batch(&desk, "one");

    desk.json(&["reject", "one", "Work/0.0", "--reason", ""]);
    desk.json(&["reject", "one", "Work/0.1", "--reason", " "]);
    desk.json(&["cancel", "one", "--reason", ""]);

    let log = desk.call(&Project::new(), &["events", "one", "--json"]).out;
    assert!(log.contains("\"rejected\"") && log.contains("BRAIN_CANCELLED"), "{log}");
    assert!(!log.contains("\"reason\":\"\"") && !log.contains("\"reason\":\" \""), "{log}");
}

/// Creates a store with a run whose question has expired.
fn overdue() -> Desk {
    let hasty = brain("Hasty").r#loop("Work", |cx| {
        cx.system("You hurry.").input("Hurry!").tool("ship", |t| {
            t.description("Ships something")
                .requires_approval("it leaves the house")
                .approval_expires(Duration::from_hours(1))
                .execute(async |_: NoArgs, _| Ok("shipped"))
        })
    });
    let model = ScriptedModel::new([Reply::call("ship", json!({}))]);
    let (before, desk) = (Desk::new(), Desk::new());
    let project = Project::new().brain(hasty).model(Tier::Normal, Arc::new(model));
    assert_eq!(before.call(&project, &["run", "hasty", "--id", "one"]).code, 3);
    let log = before.call(&Project::new(), &["export", "one"]).out;
    let (head, rest) = log.split_once("\"expires\":").unwrap();
    let rest = rest.trim_start_matches(|digit: char| digit.is_ascii_digit());
    let asked = before.json(&["runs"])["at"].as_u64().unwrap();
    std::fs::write(desk.path("one.jsonl"), format!("{head}\"expires\":{}{rest}", asked + 1)).unwrap();
    desk.json(&["import", &desk.path("one.jsonl")]);
    desk
}

#[test]
fn expired_question_is_not_offered() {
    let desk = overdue();

    let inbox = desk.call(&Project::new(), &["inbox"]).out;
    assert!(inbox.contains("expired: the run continues without an answer\n    desk work one\n"), "{inbox}");
    assert!(!inbox.contains("desk approve"), "{inbox}");
    assert_eq!(desk.json(&["inbox"])["answers"], json!(["desk work one"]));
    insta::assert_snapshot!(desk.refused(&["approve", "one"]), @"
    7
    error: the request of the call `Work/0.0` has expired
      nothing was changed; `desk show one` shows the run
      to continue the run without an answer: desk work one
    ");
}

#[test]
fn run_with_an_expired_question_is_listed_as_unclaimed() {
    let desk = overdue();

    let listed = desk.call(&Project::new(), &["runs"]).out;

    assert!(listed.contains("waiting (no worker)") && listed.contains("due; waited for "), "{listed}");
    assert_eq!(desk.json(&["runs"])["unclaimed"], true);
}

#[test]
fn watch_until_waiting_ends_at_an_expired_question() {
    let desk = overdue();

    let watched = desk.call(&Project::new(), &["watch", "one", "--until-waiting"]);

    assert_eq!(watched.code, 3, "{}", watched.err);
    assert!(watched.err.ends_with("    desk work one\nthen continue with: desk work one\n"), "{}", watched.err);
}

#[test]
fn paused_run_continues_after_the_pause() {
    let desk = Desk::new();
    begun_batch(&desk, "one");
    let done = |arguments: &[&str]| desk.call(&Project::new(), arguments).out;

    assert_eq!(done(&["pause", "one"]), "paused (event 10 of one)\n");
    assert!(desk.refused(&["pause", "one"]).starts_with("7\nerror: the run is paused already"));
    let held = desk.call(&scripted([]), &["work", "one"]);
    assert_eq!(held.code, 3);
    let why = "The run is paused since event 10, until a person resumes it.";
    let stays = format!("{why} Lift the pause with: desk resume one\nthen continue with: desk work one\n");
    assert!(held.err.ends_with(&stays), "{}", held.err);
    let shown = done(&["show", "one"]);
    assert!(shown.contains(&format!("{why}\nlift the pause with: desk resume one\n")));
    assert!(!shown.contains(|sign: char| ('\u{2800}'..='\u{28ff}').contains(&sign)), "nothing turns: {shown}");
    assert!(done(&["events", "one"]).contains("RUN_CLAIMED"), "a claim names its worker");
    assert_eq!(done(&["resume", "one"]), "lifted the pause (event 11 of one)\n");
    assert_eq!(done(&["cancel", "one", "--reason", "enough"]), "cancelled (event 12 of one)\n");
    assert_eq!(desk.call(&scripted([]), &["work", "one"]).code, 7);
    assert_eq!(desk.json(&["show", "one"])["run"]["status"], "cancelled");
    insta::assert_snapshot!(desk.refused(&["resume", "one"]), @"
    7
    error: the run has ended and accepts no more signals
      the run is cancelled; nothing was changed; `desk show one` shows how it ended
    ");
}
