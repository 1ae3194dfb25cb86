//! Export and import of runs.

use super::desk::{Desk, begun, scripted};
use crate::app::Project;
use crate::commands::tests::call_given;

#[test]
fn export_and_import_copy_a_run_between_stores() {
    let (desk, other) = (Desk::new(), Desk::new());
    begun(&desk, "ticket-1");
    let file = desk.path("run.jsonl");

    assert_eq!(desk.json(&["export", "ticket-1", &file])["events"], 10);
    assert_eq!(other.json(&["import", &file])["run"], "ticket-1");

    let events = ["events", "ticket-1", "--json"];
    assert_eq!(desk.call(&Project::new(), &events).out, other.call(&Project::new(), &events).out);
    let again = other.refused(&["import", &file]);
    assert!(again.starts_with("7\nerror: desk/runs.db already has the run ticket-1"), "{again}");
    let worked = other.call(&scripted([]), &["work", "ticket-1"]);
    assert_eq!(worked.code, 3, "it waits there, too: {}", worked.err);
}

#[test]
fn import_refuses_a_broken_file_with_its_line() {
    let desk = Desk::new();
    begun(&desk, "ticket-1");
    let text = desk.call(&Project::new(), &["export", "ticket-1"]).out;
    let lines: Vec<&str> = text.lines().collect();
    let broken = |lines: &[&str]| {
        std::fs::write(desk.path("run.jsonl"), lines.join("\n")).unwrap();
        let told = desk.refused(&["import", &desk.path("run.jsonl")]);
        told.lines().take(2).collect::<Vec<_>>().join(" ")
    };

    assert_eq!(broken(&[]), "6 error: desk/run.jsonl, line 1: the file is empty");
    assert_eq!(broken(&lines[..5]), "6 error: desk/run.jsonl, line 5: the file ends after 4 of 10 events");
    let missing: Vec<&str> = lines.iter().enumerate().filter(|(at, _)| *at != 3).map(|(_, line)| *line).collect();
    assert!(broken(&missing).starts_with("6 error: desk/run.jsonl, line 4: "), "{}", broken(&missing));
    let cut = [&lines[..2], &[&lines[2][..20]]].concat();
    assert!(broken(&cut).starts_with("6 error: desk/run.jsonl, line 3: "), "{}", broken(&cut));
    let newer = lines[0].replace(r#""positronic_run":1"#, r#""positronic_run":9"#);
    assert!(broken(&[&newer]).contains("written by a newer release (format 9)"));
    assert!(desk.refused(&["import", &desk.path("run.jsonl")]).ends_with("use a newer release of positronic\n"));
}

#[test]
fn export_replaces_a_file_only_with_force_and_completely() {
    let desk = Desk::new();
    begun(&desk, "ticket-1");
    let file = desk.path("run.jsonl");
    std::fs::write(&file, "mine").unwrap();

    let refused = desk.refused(&["export", "ticket-1", &file]);
    assert!(refused.starts_with("2\nerror: desk/run.jsonl already exists\n"), "{refused}");
    assert_eq!(desk.refused(&["export", "ticket-9", &file, "--force"]).lines().next(), Some("2"));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
    assert_eq!(desk.json(&["export", "ticket-1", &file, "--force"])["events"], 10);

    let out = desk.call(&Project::new(), &["export", "ticket-1", "-"]).out;
    assert_eq!(out, std::fs::read_to_string(&file).unwrap());
    let other = Desk::new();
    let taken = call_given(&Project::new(), &["import", "-"], &out, other.settings());
    assert_eq!(
        (taken.code, taken.out.as_str()),
        (0, "imported the run ticket-1 of Help Desk, 10 events\n"),
        "{}",
        taken.err
    );
}

#[test]
fn inconsistent_export_is_refused() {
    let desk = Desk::new();
    begun(&desk, "ticket-1");
    let text = desk.call(&Project::new(), &["export", "ticket-1"]).out;
    let import = |text: &str| {
        let outcome = call_given(&Project::new(), &["import", "-"], text, Desk::new().settings());
        assert_eq!(outcome.code, 6);
        outcome.err.lines().next().unwrap().to_owned()
    };

    let named = |run: &str| import(&text.replacen("\"run\":\"ticket-1\"", &format!("\"run\":\"{run}\""), 1));
    assert_eq!(named(""), "error: stdin, line 1: the run's id is empty");
    assert_eq!(named(&"x".repeat(5000)), "error: stdin, line 1: the run's id has 5000 characters; the maximum is 200");
    let other = import(&text.replacen("Help Desk", "Help Dusk", 1));
    assert_eq!(other, "error: stdin, line 1: the header names the brain `Help Dusk`, but the events name `Help Desk`");
    let form = import("[]");
    assert!(form.starts_with("error: stdin, line 1: invalid header of an exported run; expected {"), "{form}");
    let event = import(&text.replacen("\"LOOP_START\"", "\"LOOP_DANCE\"", 1));
    assert_eq!(event, "error: stdin, line 6: unknown event type `LOOP_DANCE`");
    let field = import(&text.replacen("\"seq\":3", "\"seq\":-3", 1));
    let expected = "error: stdin, line 5: invalid fields of `STEP_COMPLETE`: invalid value: integer `-3`, expected u64";
    assert_eq!(field, expected);
}
