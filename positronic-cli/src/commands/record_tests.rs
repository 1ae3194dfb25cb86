//! `record` and `work --record`: cassettes made from a run's log.

use positronic_core::model::scripted::Reply;
use positronic_core::record::{ModelError, ModelErrorKind};
use serde_json::json;

use super::store_tests::{Desk, scripted};
use crate::app::Project;
use crate::commands::tests::project;

/// Plays a cassette in memory, with its own options.
fn played(desk: &Desk, file: &str) -> (u8, String, String) {
    let outcome = desk.call(&project(), &["run", "help desk", "--cassette", file, "--memory"]);
    (outcome.code, outcome.out, outcome.err)
}

#[test]
fn run_answered_by_another_process_is_recorded_from_its_beginning() {
    let desk = Desk::new();
    let replies = [Reply::call("refund", json!({"amount": 70}))];
    let begun = desk.call(&scripted(replies), &["run", "help desk", "-o", "customer=ada", "--id", "r1"]);
    assert_eq!(begun.code, 3, "{}", begun.err);
    assert_eq!(desk.call(&Project::new(), &["approve", "r1", "--args", "{\"amount\": 60}"]).code, 0);
    let file = desk.path("run.jsonl");

    let worked = desk.call(&scripted([Reply::text("Paid.")]), &["work", "r1", "--record", &file]);

    assert_eq!(worked.code, 0, "{}", worked.err);
    assert!(worked.err.contains("play it with: desk run 'Help Desk' --cassette "), "{}", worked.err);
    let (code, out, err) = played(&desk, &file);
    assert_eq!((code, out), (0, worked.out), "{err}");
    assert!(err.contains("approved by the cassette with other arguments: amount=60"), "{err}");
    let again = desk.path("again.jsonl");
    assert_eq!(desk.call(&Project::new(), &["record", "r1", &again]).code, 0);
    assert_eq!(std::fs::read_to_string(&again).unwrap(), std::fs::read_to_string(&file).unwrap());
    let shown = desk.call(&Project::new(), &["record", "r1"]).out;
    assert_eq!(shown, std::fs::read_to_string(&file).unwrap());
}

#[test]
fn record_explains_why_it_is_refused() {
    let desk = Desk::new();
    let replies = [Reply::call("refund", json!({"amount": 70}))];
    desk.call(&scripted(replies), &["run", "help desk", "-o", "customer=ada", "--id", "r1"]);
    let survey = desk.call(&project(), &["run", "survey", "--id", "s1"]);
    assert_eq!(survey.code, 0, "{}", survey.err);
    let file = desk.path("there.jsonl");
    std::fs::write(&file, "mine").unwrap();

    assert!(desk.refused(&["record", "s1"]).contains("the run s1 asked no model; there is nothing to record"));
    assert!(desk.refused(&["record", "r1", &file]).contains("already exists"));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
    let outcome = desk.call(&Project::new(), &["record", "r1", &file, "--force"]);
    assert_eq!(outcome.code, 0, "a run that waits can be recorded, too: {}", outcome.err);
}

#[test]
fn cassette_of_a_failed_run_fails_again() {
    let desk = Desk::new();
    let failed = ModelError::new(ModelErrorKind::Auth, "wrong key");
    let first = desk.call(&scripted([Reply::error(failed)]), &["run", "help desk", "-o", "customer=ada", "--id", "r1"]);
    let file = desk.path("run.jsonl");
    assert_eq!(desk.call(&Project::new(), &["record", "r1", &file]).code, 0);

    let (code, _, err) = played(&desk, &file);

    assert_eq!((first.code, code), (1, 1), "{err}");
    assert!(err.contains("wrong key"), "{err}");
}

#[test]
fn mismatching_cassette_reports_where_and_how_to_record_again() {
    let desk = Desk::new();
    let replies = [Reply::call("refund", json!({"amount": 0})), Reply::text("Done.")];
    let run = desk.call(&scripted(replies), &["run", "help desk", "-o", "customer=ada", "--id", "r1"]);
    let file = desk.path("run.jsonl");
    assert_eq!(desk.call(&Project::new(), &["record", "r1", &file]).code, 0, "{}", run.err);
    let changed = std::fs::read_to_string(&file).unwrap().replace("You help ada.", "You help bob.");
    std::fs::write(&file, changed).unwrap();

    let (code, _, err) = played(&desk, &file);

    assert_eq!(code, 1, "{err}");
    assert!(err.contains("the request at `Chat/0` differs from the recorded one: /system differs"), "{err}");
    assert!(err.contains(r#""You help bob.""#) && err.contains(r#""You help ada.""#), "{err}");
    assert!(err.contains("record the cassette again: `run 'Help Desk' --record FILE` with a model"), "{err}");
}

#[test]
fn cassette_contains_no_key_and_a_short_key_does_not_break_it() {
    let desk = Desk::new();
    let replies = [Reply::text("Your key is sk-live-42, said x.")];
    let flags = ["run", "help desk", "-o", "customer=ada", "--id", "r1"];
    assert_eq!(desk.call(&scripted(replies), &flags).code, 0);
    let recorded = |key: &str| {
        let outcome = desk.with_key(&Project::new(), key, &["record", "r1"]);
        (outcome.out, outcome.err)
    };

    let (text, warning) = recorded("sk-live-42");
    assert_eq!(warning, "");
    assert!(text.contains("Your key is [hidden], said x.") && !text.contains("sk-live-42"), "{text}");
    let (text, warning) = recorded("x");
    assert_eq!(warning, "a key or password shorter than 4 characters is not redacted in a cassette\n");
    assert!(text.contains(r#""type":"text""#) && text.contains("said x."), "{text}");
}

#[test]
fn work_with_record_requires_a_run() {
    let error = <crate::cli::Cli as clap::Parser>::try_parse_from(["desk", "work", "--record", "x"]).unwrap_err();

    assert!(error.to_string().contains("<RUN>") || error.to_string().contains("[RUN]"), "{error}");
}
