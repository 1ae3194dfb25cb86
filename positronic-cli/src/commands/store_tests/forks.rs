//! Forks, and differences between two runs.

use positronic_core::model::scripted::Reply;
use positronic_core::prelude::*;
use serde_json::{Value, json};

use super::desk::{Desk, begun, refund, scripted};
use crate::app::Project;
use crate::commands::tests::project;

#[test]
fn fork_continues_a_run_and_diff_compares_it() {
    let desk = Desk::new();
    begun(&desk, "ticket-1");

    let fork = scripted([]);
    let forked = desk.call(&fork, &["fork", "ticket-1", "--at", "5", "-o", "limit=100", "--json"]);
    assert_eq!(forked.code, 0, "{}", forked.err);
    let id = serde_json::from_str::<Value>(&forked.out).unwrap()["run"].as_str().unwrap().to_owned();
    let worked = desk.call(&scripted([refund(70), Reply::text("Refunded.")]), &["work", &id]);

    assert_eq!(worked.code, 0, "{}", worked.err);
    let diff = desk.json(&["diff", "ticket-1", &id]);
    assert_eq!(diff["status"], json!(["waiting", "completed"]));
    for command in ["fork", "state"] {
        let beyond = desk.call(&fork, &[command, "ticket-1", "--at", "99"]);
        assert!(beyond.code == 2 && beyond.err.contains("its last event is 9"), "{}", beyond.err);
    }
    assert_eq!(desk.call(&fork, &["fork", "ticket-1", "--at", "7", "-o", "limit=x"]).code, 2);
    assert_eq!(desk.json(&["show", "ticket-1"])["run"]["status"], "waiting", "the original is as it was");
}

#[test]
fn fork_starts_now_and_is_over_if_the_original_is() {
    let desk = Desk::new();
    assert_eq!(desk.call(&project(), &["run", "survey", "--id", "over"]).code, 0);
    begun(&desk, "later");
    let last = desk.json(&["show", "over"])["run"]["next"].as_u64().unwrap() - 1;

    let forked = desk.call(&Project::new(), &["fork", "over", "--at", &last.to_string(), "--json"]);
    let id = serde_json::from_str::<Value>(&forked.out).unwrap()["run"].as_str().unwrap().to_owned();
    let told = desk.call(&Project::new(), &["fork", "over", "--at", &last.to_string()]);
    assert!(told.err.starts_with("the fork is over, as the original is") && !told.err.contains("work"), "{}", told.err);

    let started = |run: &str| desk.json(&["show", run])["run"]["started"].as_i64().unwrap();
    assert!(started(&id) > started("later"), "lists have it where it was made");
}

#[test]
fn fork_and_its_difference_are_readable() {
    let desk = Desk::new();
    begun(&desk, "ticket-1");

    let forked = desk.call(&scripted([]), &["fork", "ticket-1", "--at", "5", "-o", "limit=100"]);
    let id = forked.out.trim_end().rsplit(' ').next().unwrap().to_owned();
    let readable = |text: &str| text.replace(&id, "FORK").replace(&id[id.len() - 6..], "FORK");
    insta::assert_snapshot!(readable(&forked.out), @"forked ticket-1 after event 5 into FORK");
    insta::assert_snapshot!(readable(&forked.err), @r"
    continue it with: desk work FORK
    tools run for real in the fork, also those that the original ran after that event
    then compare: desk diff ticket-1 FORK
    ");
    desk.call(&scripted([refund(70), Reply::text("Refunded.")]), &["work", &id]);
    let diff = |one: &str, other: &str| desk.call(&Project::new(), &["diff", one, other]).out;
    insta::assert_snapshot!("diff_other_options", readable(&diff("ticket-1", &id)));
    insta::assert_snapshot!(diff("ticket-1", "ticket-1"), @r"
    - ticket-1 Help Desk, waiting, 0 tokens in, 0 out
    + ticket-1 Help Desk, waiting, 0 tokens in, 0 out
      identical: 9 events
    ");

    let other = ["--model", "small", "--system", "You help nobody."];
    let forked = desk.json(&[&["fork", "ticket-1", "--at", "9"][..], &other].concat());
    let other = forked["run"].as_str().unwrap();
    let said = "given the model small and another system prompt: You help nobody.";
    assert!(
        diff("ticket-1", other).contains(&format!("- given nothing else\n+ {said}\n")),
        "{}",
        diff("ticket-1", other)
    );
    let shown = desk.call(&Project::new(), &["show", other]).out;
    assert!(shown.contains("after event 9, with the model small and another system prompt: You help"), "{shown}");
    assert_eq!(desk.call(&Project::new(), &["fork", "ticket-1", "--at", "9", "--model", ""]).code, 2);

    let staged = desk.call(&Project::new(), &["fork", "ticket-1", "--stage", "Chat"]);
    let id = staged.out.trim_end().rsplit(' ').next().unwrap().to_owned();
    insta::assert_snapshot!(
        staged.out.replace(&id, "FORK"),
        @"forked ticket-1 after event 3, before `Chat`, into FORK"
    );
    desk.call(&scripted([Reply::text("There is nothing to refund.")]), &["work", &id]);
    insta::assert_snapshot!("diff_other_answer", diff("ticket-1", &id).replace(&id, "FORK"));
}

#[test]
fn work_on_a_fork_with_another_model_reports_that_a_cassette_answers() {
    let desk = Desk::new();
    assert_eq!(desk.call(&project(), &["run", "help desk", "--ask", "--id", "ticket-1", "-o", "customer=ada"]).code, 3);
    let forked = desk.json(&["fork", "ticket-1", "--at", "5", "--model", "small"]);

    let [own, other] =
        ["ticket-1", forked["run"].as_str().unwrap()].map(|run| desk.call(&project(), &["work", run]).err);

    let told = "the fork is set to the model small, but a cassette answers in its place\n";
    assert!(other.contains(told) && !own.contains(told), "{other}");
}

#[test]
fn fork_reruns_a_stage() {
    let desk = Desk::new();
    begun(&desk, "ticket-1");

    let forked = desk.json(&["fork", "ticket-1", "--stage", "Chat"]);

    let id = forked["run"].as_str().unwrap();
    assert_eq!(forked["forked_from"], json!(["ticket-1", 3]));
    let log = desk.call(&Project::new(), &["events", id]).out;
    assert!(log.contains("STEP_COMPLETE") && !log.contains("LOOP_START"), "{log}");
    let worked = desk.call(&scripted([Reply::text("Nothing to refund.")]), &["work", id]);
    assert_eq!(worked.code, 0, "{}", worked.err);

    insta::assert_snapshot!(desk.refused(&["fork", "ticket-1", "--stage", "chat"]), @r"
    2
    error: the brain of ticket-1 has no stage `chat`
      did you mean `Chat`?
      its stages are `Open`, `Chat`, `Survey`
    ");
    insta::assert_snapshot!(desk.refused(&["fork", "ticket-1", "--stage", "Survey"]), @r"
    7
    error: the run ticket-1 has not entered the stage `Survey`
      it has entered `Open`, `Chat`
    ");
    for wrong in [&["fork", "ticket-1"][..], &["fork", "ticket-1", "--at", "3", "--stage", "Chat"]] {
        assert_eq!(desk.call(&Project::new(), wrong).code, 2, "{wrong:?}");
    }
    // A stage of a nested brain is named by its path.
    let nested = desk.json(&["fork", id, "--stage", "Survey/Ask"]);
    assert_eq!(nested["forked_from"][0], *id);
}

#[test]
fn failed_run_is_retried_from_the_failed_place() {
    let desk = Desk::new();

    let failed = desk.call(&project(), &["run", "broken", "--id", "one"]);
    assert_eq!(failed.code, 1);
    assert!(failed.err.ends_with("retry it from the failed place with: desk retry one\n"), "{}", failed.err);
    let shown = desk.call(&Project::new(), &["show", "one"]).out;
    assert!(shown.contains("retry it from the failed place with: desk retry one\n"), "{shown}");

    let retried = desk.call(&Project::new(), &["retry", "one"]);
    let id = retried.out.trim_end().rsplit(' ').next().unwrap().to_owned();
    assert_eq!(retried.out, format!("retried one after event 2 as {id}\n"));
    assert!(retried.err.contains("continue it with: desk work "), "{}", retried.err);
    let again = desk.call(&Project::new(), &["retry", "one", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&again.out).unwrap(), json!({"run": id, "forked_from": ["one", 2]}));
    let worked = desk.call(&project(), &["work", &id]);
    assert_eq!(worked.code, 1, "it fails again: {}", worked.err);

    assert_eq!(desk.call(&project(), &["run", "survey", "--id", "over"]).code, 0);
    let refused = desk.refused(&["retry", "over"]);
    assert!(refused.starts_with("7\nerror: the run is completed; only a run that has failed"), "{refused}");
}

#[test]
fn failed_run_is_not_retried_with_changed_code() {
    let desk = Desk::new();
    assert_eq!(desk.call(&project(), &["run", "broken", "--id", "one"]).code, 1);
    let renamed = Project::new().brain(brain("Broken").step("Other", async |_| Ok(())));

    let refused = desk.call(&renamed, &["retry", "one"]);

    assert_eq!((refused.code, refused.out.as_str()), (7, ""), "{}", refused.err);
    assert!(
        refused.err.starts_with("error: the code has changed since the start of the run: stage 1 of `Broken` was"),
        "{}",
        refused.err
    );
    assert_eq!(desk.call(&Project::new(), &["runs"]).out.lines().count(), 2, "there is no fork");
}

#[test]
fn completed_run_is_undone_in_a_run_of_its_own() {
    let desk = Desk::new();
    let trip = || {
        let trip = brain("Trip")
            .step("Flight", async |_| Ok("F-7".to_owned()))
            .compensate(async |_| Ok(()))
            .step("Hotel", async |cx| Ok(cx.state.clone()))
            .compensate(async |_| Err(Error::new("the hotel does not answer")));
        Project::new().brain(trip)
    };
    assert_eq!(desk.call(&trip(), &["run", "trip", "--id", "one"]).code, 0);

    let undone = desk.call(&Project::new(), &["undo", "one"]);

    assert_eq!(undone.out, "one~undo undoes one\n");
    assert!(undone.err.contains("its stages are undone by a worker: desk work "), "{}", undone.err);
    let again = desk.call(&Project::new(), &["undo", "one", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&again.out).unwrap(), json!({"run": "one~undo", "forked_from": "one"}));
    let worked = desk.call(&trip(), &["work", "one~undo"]);
    assert!(worked.err.contains("Undo Hotel") && worked.err.contains("the hotel does not answer"), "{}", worked.err);
    assert!(worked.err.contains("undoes what it has done: a person undoes it"), "{}", worked.err);
    let shown = desk.call(&Project::new(), &["show", "one~undo"]).out;
    assert!(shown.contains("✓ Undo Flight") && shown.contains("cancelled"), "{shown}");
    let refused = desk.refused(&["undo", "one~undo"]);
    assert!(refused.contains("the run is cancelled; only a completed run is undone by hand"), "{refused}");
}
