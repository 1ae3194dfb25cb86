//! The commands about runs, over a store's file.

use std::path::Path;
use std::sync::Arc;

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{Tier, Usage};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::tests::{Outcome, at_desk, call_given, call_unread, call_with, desk, project, without_times};
use crate::project::Project;
use crate::settings::Settings;

/// A folder with a store.
pub(super) struct Desk {
    folder: TempDir,
}

impl Desk {
    pub(super) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(super) fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    fn settings(&self) -> Settings {
        let store = Some(self.folder.path().join("runs.db"));
        Settings { store, user: Some("ann".into()), ..Settings::default() }
    }

    pub(super) fn call(&self, project: &Project, arguments: &[&str]) -> Outcome {
        at_desk(call_with(project, arguments, self.settings()), self.folder.path())
    }

    /// Calls a command that needs no brain, and expects it to succeed.
    pub(super) fn json(&self, arguments: &[&str]) -> Value {
        let outcome = self.call(&Project::new(), &[arguments, &["--json"]].concat());
        assert_eq!(outcome.code, 0, "{arguments:?}: {}", outcome.err);
        serde_json::from_str(if outcome.out.is_empty() { "null" } else { &outcome.out }).unwrap()
    }

    pub(super) fn refused(&self, arguments: &[&str]) -> String {
        let outcome = self.call(&Project::new(), arguments);
        assert_eq!(outcome.out, "");
        format!("{}\n{}", outcome.code, outcome.err)
    }
}

fn scripted(replies: impl IntoIterator<Item = Reply>) -> Project {
    Project::new().brain(desk()).brain(batch()).model(Tier::Normal, Arc::new(ScriptedModel::new(replies)))
}

fn refund(amount: u32) -> Reply {
    Reply::call("refund", json!({"amount": amount}))
}

#[derive(Deserialize, JsonSchema)]
struct Note {
    /// What to note
    text: String,
}

/// A brain that asks about two calls at once.
fn batch() -> Brain<(), Vec<String>> {
    brain("Batch").state(Vec::new()).r#loop("Work", |cx| {
        cx.system("You note.").input("Note it.").tool("note", |t| {
            t.description("Notes something")
                .approval(|args: &Note, _| Some(format!("to note {}", args.text)))
                .execute(async |Note { text }, cx| Ok(cx.result("noted").update(move |notes| notes.push(text))))
        })
    })
}

#[test]
fn a_list_without_a_run_says_so() {
    let desk = Desk::new();
    begun(&desk, "ticket-1");

    let nothing = desk.call(&Project::new(), &["runs", "--status", "failed"]);
    assert_eq!(
        (nothing.code, nothing.err.as_str()),
        (0, "no run in desk/runs.db is like that; `desk runs` lists all\n")
    );
}

fn begun(desk: &Desk, id: &str) {
    let outcome = desk.call(&scripted([refund(70)]), &["run", "help desk", "-o", "customer=ada", "--id", id]);
    assert_eq!(outcome.code, 3, "{}", outcome.err);
}

fn begun_batch(desk: &Desk, id: &str) {
    let calls = Reply::calls([("note", json!({"text": "a"})), ("note", json!({"text": "b"}))]);
    assert_eq!(desk.call(&scripted([calls]), &["run", "batch", "--id", id]).code, 3);
}

#[test]
fn a_run_that_waits_stays_and_says_how_it_goes_on() {
    let desk = Desk::new();

    let outcome = desk.call(&scripted([refund(70)]), &["run", "help desk", "-o", "customer=ada", "--id", "ticket-1"]);

    assert_eq!((outcome.code, outcome.out.as_str()), (3, ""));
    insta::assert_snapshot!("waits_err", outcome.err);
    assert_eq!(desk.json(&["runs", "--brain", "help-desk", "--user", "ada"]), Value::Null);
    assert_eq!(desk.json(&["runs", "--brain", "help-desk", "--search", "A REFUND OF"])["run"], "ticket-1");
    insta::assert_snapshot!(desk.call(&Project::new(), &["runs"]).out, @r"
    RUN       BRAIN      STATUS   SINCE  AGE  TOKENS  WHY
    ticket-1  Help Desk  waiting  0s     0s   0       for a person's decision about `refund` at `Chat/0.0` (a refund of 70).
    ");
}

#[test]
fn what_is_decided_elsewhere_is_gone_on_with() {
    let desk = Desk::new();
    begun(&desk, "ticket-1");

    let approved = desk.call(&Project::new(), &["approve", "tick", "--args", r#"{"amount": 60}"#]);
    assert_eq!((approved.code, approved.out.as_str()), (0, "approved Chat/0.0 (event 10 of ticket-1)\n"));
    assert!(
        approved.err.contains("nobody has the run in hand; where no `work` serves it, go on with: desk work ticket-1"),
        "{}",
        approved.err
    );

    let listed = desk.call(&Project::new(), &["runs"]).out;
    assert!(listed.contains("running (nobody)"), "{listed}");

    let waits = scripted([Reply::call("write", json!({"text": "Done."}))]);
    let worked = desk.call(&waits, &["work", "ticket-1"]);
    assert_eq!(worked.code, 3);
    let command = "desk send ticket-1 --webhook post --identifier ada --payload";
    assert!(worked.err.contains(command), "{}", worked.err);

    let payload = ["--webhook", "post", "--identifier", "ada", "--payload"];
    let misfit = desk.refused(&[&["send", "ticket-1"][..], &payload, &[r#"{"stars": "many"}"#]].concat());
    assert!(misfit.starts_with("7\nerror: the payload for `Chat/1.0` does not fit"), "{misfit}");
    let delivered = desk.json(&[&["send"][..], &payload, &[r#"{"stars": 5}"#]].concat());
    assert_eq!(delivered["delivered"]["run"], "ticket-1");

    let done = desk.call(&scripted([Reply::text("All is well.")]), &["work", "ticket-1"]);
    assert_eq!(done.code, 0, "{}", done.err);
    assert_eq!(serde_json::from_str::<Value>(&done.out).unwrap(), json!({"customer": "ada", "refunds": [60]}));
    assert_eq!(desk.json(&["runs", "--status", "completed"])["run"], "ticket-1");
    insta::assert_snapshot!(desk.refused(&["approve", "ticket-1", "Chat/0.0"]), @"
    7
    error: the call `Chat/0.0` was decided already: it was approved by ann
      nothing was changed; `desk show ticket-1` says how the run stands
    ");
}

#[test]
fn several_decisions_are_taken_together() {
    let desk = Desk::new();
    begun_batch(&desk, "both");

    insta::assert_snapshot!(desk.refused(&["approve", "both"]), @"
    2
    error: several calls of the run wait for a decision; name those that are meant, or say --all
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
fn a_paused_run_goes_on_after_the_pause() {
    let desk = Desk::new();
    begun_batch(&desk, "one");
    let done = |arguments: &[&str]| desk.call(&Project::new(), arguments).out;

    assert_eq!(done(&["pause", "one"]), "paused (event 10 of one)\n");
    assert!(desk.refused(&["pause", "one"]).starts_with("7\nerror: the run is paused already"));
    let held = desk.call(&scripted([]), &["work", "one"]);
    assert_eq!(held.code, 3);
    let why = "The run is paused since event 10, until a person lets it go on.";
    let stays = format!("{why} It stays; lift the pause with: desk resume one\nthen go on with: desk work one\n");
    assert!(held.err.ends_with(&stays), "{}", held.err);
    let shown = done(&["show", "one"]);
    assert!(shown.contains(&format!("{why}\nlift the pause with: desk resume one\n")));
    assert!(!shown.contains(|sign: char| ('\u{2800}'..='\u{28ff}').contains(&sign)), "nothing turns: {shown}");
    assert!(done(&["events", "one"]).contains("RUN_CLAIMED"), "a claim names its worker");
    assert_eq!(done(&["resume", "one"]), "lifted the pause (event 11 of one)\n");
    assert_eq!(done(&["cancel", "one", "--reason", "enough"]), "cancelled (event 12 of one)\n");
    assert_eq!(desk.call(&scripted([]), &["work", "one"]).code, 7);
    assert_eq!(desk.json(&["show", "one"])["run"]["status"], "cancelled");
}

#[test]
fn a_start_with_the_same_id_is_the_same_run() {
    let desk = Desk::new();
    let start = ["run", "help desk", "-o", "customer=ada", "--id", "ticket-1", "--ask"];
    assert_eq!(desk.call(&project(), &start).code, 3);

    let other = desk.call(&project(), &["run", "help desk", "-o", "customer=bob", "--id", "ticket-1"]);
    assert_eq!(other.code, 7);
    assert!(other.err.contains("the same id starts one run"), "{}", other.err);
    // The cassette has answered once: it is wound on, and does not refund again.
    let again = desk.call(&project(), &["run", "help desk", "-o", "customer=ada", "--id", "ticket-1"]);
    assert_eq!(again.code, 0, "{}", again.err);
    assert_eq!(serde_json::from_str::<Value>(&again.out).unwrap()["refunds"], json!([60]));
    assert_eq!(desk.call(&Project::new(), &["runs", "--json"]).out.lines().count(), 1);
}

#[test]
fn a_run_is_named_by_the_beginning_of_its_id_and_a_brain_wins() {
    let desk = Desk::new();
    begun(&desk, "help");
    begun(&desk, "ticket-1");
    begun(&desk, "ticket-2");

    assert!(desk.call(&project(), &["show", "help"]).out.starts_with("Help Desk\n"));
    let shown = without_times(&desk.call(&project(), &["show", "ticket-1"]).out);
    insta::assert_snapshot!("show_run", shown.replace("✓ Open  0 ms", "✓ Open"));
    insta::assert_snapshot!(desk.refused(&["events", "ticket"]), @r"
    2
    error: `ticket` is the beginning of several runs
      ticket-2  Help Desk, waiting
      ticket-1  Help Desk, waiting
    ");
    insta::assert_snapshot!(desk.refused(&["watch", "tickt-1"]), @r"
    2
    error: there is no run `tickt-1` in desk/runs.db
      did you mean `ticket-1` or `ticket-2`?
      `desk runs` lists the runs
    ");
    insta::assert_snapshot!(desk.refused(&["show", "nobody"]), @r"
    2
    error: there is no brain `nobody`, and no run in desk/runs.db
      the project has no brain; add one with Project::brain
    ");
}

#[test]
fn what_only_looks_makes_no_store() {
    let desk = Desk::new();

    for arguments in [&["runs"][..], &["inbox"], &["inbox", "--mail"], &["show", "one"], &["prune", "--before", "1d"]] {
        insta::allow_duplicates! {
            insta::assert_snapshot!(desk.refused(arguments), @r"
            6
            error: there is no store at desk/runs.db
              look at --store and POSITRONIC_STORE; `run` and `import` make a store where there is none
            ");
        }
    }
    assert!(!Path::new(&desk.path("runs.db")).exists());
}

#[test]
fn a_run_is_forked_and_compared() {
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
fn a_fork_is_a_run_of_now_and_over_where_the_original_is() {
    let desk = Desk::new();
    assert_eq!(desk.call(&project(), &["run", "survey", "--id", "over"]).code, 0);
    begun(&desk, "later");
    let last = desk.json(&["show", "over"])["run"]["next"].as_u64().unwrap() - 1;

    let forked = desk.call(&Project::new(), &["fork", "over", "--at", &last.to_string(), "--json"]);
    let id = serde_json::from_str::<Value>(&forked.out).unwrap()["run"].as_str().unwrap().to_owned();
    let told = desk.call(&Project::new(), &["fork", "over", "--at", &last.to_string()]);
    assert!(told.err.starts_with("it is over there, as the original is") && !told.err.contains("work"), "{}", told.err);

    let started = |run: &str| desk.json(&["show", run])["run"]["started"].as_i64().unwrap();
    assert!(started(&id) > started("later"), "lists have it where it was made");
}

#[test]
fn a_fork_and_what_differs_in_it_read_well() {
    let desk = Desk::new();
    begun(&desk, "ticket-1");

    let forked = desk.call(&scripted([]), &["fork", "ticket-1", "--at", "5", "-o", "limit=100"]);
    let id = forked.out.trim_end().rsplit(' ').next().unwrap().to_owned();
    let readable = |text: &str| text.replace(&id, "FORK").replace(&id[..13], "FORK");
    insta::assert_snapshot!(readable(&forked.out), @"forked ticket-1 after event 5 into FORK");
    insta::assert_snapshot!(readable(&forked.err), @r"
    go on with: desk work FORK
    then compare: desk diff ticket-1 FORK
    ");
    desk.call(&scripted([refund(70), Reply::text("Refunded.")]), &["work", &id]);
    let diff = |one: &str, other: &str| desk.call(&Project::new(), &["diff", one, other]).out;
    insta::assert_snapshot!("diff_other_options", readable(&diff("ticket-1", &id)));
    insta::assert_snapshot!(diff("ticket-1", "ticket-1"), @r"
    - ticket-1 Help Desk, waiting, 0 tokens in, 0 out
    + ticket-1 Help Desk, waiting, 0 tokens in, 0 out
      both say the same, in 9 events
    ");

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
fn a_stage_is_run_again_in_a_fork() {
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
    error: the run ticket-1 has not come to the stage `Survey`
      it has entered `Open`, `Chat`
    ");
    for wrong in [&["fork", "ticket-1"][..], &["fork", "ticket-1", "--at", "3", "--stage", "Chat"]] {
        assert_eq!(desk.call(&Project::new(), wrong).code, 2, "{wrong:?}");
    }
    // A stage of a brain that is a stage is named by its path.
    let nested = desk.json(&["fork", id, "--stage", "Survey/Ask"]);
    assert_eq!(nested["forked_from"][0], *id);
}

#[test]
fn a_state_is_shown_as_of_an_event() {
    let desk = Desk::new();
    begun(&desk, "ticket-1");

    insta::assert_snapshot!("state", desk.call(&Project::new(), &["state", "ticket-1"]).out);
    assert_eq!(desk.json(&["state", "ticket-1", "--at", "1"])["state"], Value::Null);
    let request = desk.json(&["state", "ticket-1", "--at", "0", "--request"]);
    assert_eq!(request["system"], "You help ada.");
    assert_eq!(request["tools"][0]["id"], "refund");
    assert!(desk.refused(&["state", "ticket-1", "--at", "99"]).contains("its last event is 9"));
}

#[test]
fn a_run_moves_from_store_to_store_as_a_file() {
    let (desk, other) = (Desk::new(), Desk::new());
    begun(&desk, "ticket-1");
    let file = desk.path("run.jsonl");

    assert_eq!(desk.json(&["export", "ticket-1", &file])["events"], 10);
    assert_eq!(other.json(&["import", &file])["run"], "ticket-1");

    let events = ["events", "ticket-1", "--json"];
    assert_eq!(desk.call(&Project::new(), &events).out, other.call(&Project::new(), &events).out);
    let again = other.refused(&["import", &file]);
    assert!(again.starts_with("7\nerror: desk/runs.db has the run ticket-1 already"), "{again}");
    let worked = other.call(&scripted([]), &["work", "ticket-1"]);
    assert_eq!(worked.code, 3, "it waits there, too: {}", worked.err);
}

#[test]
fn a_broken_file_is_refused_with_its_line() {
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
    assert!(broken(&[&newer]).contains("a newer release wrote it (format 9)"));
}

#[test]
fn runs_that_are_over_are_removed_and_others_stay() {
    let desk = Desk::new();
    begun(&desk, "open");
    assert_eq!(desk.call(&project(), &["run", "survey", "--id", "over"]).code, 0);

    assert_eq!(desk.json(&["prune", "--before", "30d"])["runs"], json!([]));
    assert_eq!(desk.json(&["prune", "--before", "0s", "--dry-run"])["runs"], json!(["over"]));
    assert!(desk.refused(&["prune", "--before", "0s", "--status", "waiting"]).starts_with("2\n"));
    assert_eq!(desk.json(&["prune", "--before", "0s"])["removed"], 1);
    assert_eq!(desk.json(&["runs"])["run"], "open");
}

#[test]
fn a_store_that_is_none_is_said_to_be_none() {
    let desk = Desk::new();
    std::fs::write(desk.path("runs.db"), "dear diary, today I went to the mountains and it was a good day").unwrap();

    let told = desk.refused(&["runs"]);
    assert!(told.starts_with("6\nerror: `desk/runs.db` holds no event store"), "{told}");
    assert_eq!(desk.call(&project(), &["run", "survey"]).code, 6);
}

#[test]
fn nothing_in_a_log_speaks_to_the_terminal() {
    let desk = Desk::new();
    let evil = "\u{1b}[2J\u{9b}31m\u{202e}";
    let calls = Reply::calls([("note", json!({"text": evil})), ("note", json!({"text": "b"}))]);
    assert_eq!(desk.call(&scripted([calls]), &["run", "batch", "--id", "evil"]).code, 3);

    for arguments in
        [&["show", "evil"][..], &["inbox"], &["events", "evil"], &["state", "evil"], &["runs"], &["export", "evil"]]
    {
        for arguments in [arguments.to_vec(), [arguments, &["--json"]].concat()] {
            let outcome = desk.call(&Project::new(), &arguments);
            assert_eq!(outcome.code, 0, "{arguments:?}: {}", outcome.err);
            let raw = |letter: char| letter.is_control() && letter != '\n' || letter == '\u{202e}';
            assert!(!outcome.out.contains(raw) && !outcome.err.contains(raw), "{arguments:?}: {:?}", outcome.out);
        }
    }
}

#[test]
fn what_waits_in_all_runs_is_worked_off_at_once() {
    let desk = Desk::new();
    begun_batch(&desk, "one");
    begun_batch(&desk, "two");
    for run in ["one", "two"] {
        desk.json(&["approve", run, "--all"]);
    }

    let worked = desk.call(&scripted([Reply::text("Noted."), Reply::text("Noted.")]), &["work", "--once"]);

    assert_eq!(worked.code, 0);
    assert!(worked.err.contains("one  completed") && worked.err.contains("two  completed"), "{}", worked.err);
    assert_eq!(desk.call(&Project::new(), &["runs", "--status", "completed", "--json"]).out.lines().count(), 2);
}

#[test]
fn whoever_only_looks_writes_nothing() {
    let desk = Desk::new();
    let path = desk.path("runs.db");
    std::fs::write(&path, "").unwrap();

    for arguments in [&["runs"][..], &["inbox"], &["show", "one"], &["watch", "one"], &["state", "one"]] {
        let looked = desk.call(&Project::new(), arguments);
        assert_ne!(looked.code, 0, "{arguments:?}: an empty file is no store");
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 0, "{arguments:?} made one of it");
    }
    begun(&desk, "one");
    assert_eq!(desk.call(&Project::new(), &["runs", "--json"]).out.lines().count(), 1);
}

#[test]
fn a_run_goes_on_when_nobody_reads_its_output_any_more() {
    let desk = Desk::new();
    let run = |id: &str, lines: [usize; 2], json: &[&str]| {
        let arguments = [&["run", "help desk", "-o", "customer=ada", "--id", id][..], json].concat();
        call_unread(&project(), &arguments, lines, desk.settings())
    };

    assert_eq!(run("no-progress", [99, 1], &[]), 0);
    assert_eq!(run("half-way", [99, 5], &[]), 0);
    assert_eq!(run("no-events", [1, 99], &["--json"]), 0);
    for id in ["no-progress", "half-way", "no-events"] {
        assert_eq!(desk.json(&["show", id])["run"]["status"], "completed", "{id}");
    }
    begun_batch(&desk, "one");
    desk.json(&["approve", "one", "--all"]);
    assert_eq!(call_unread(&scripted([Reply::text("Noted.")]), &["work", "--once"], [0, 0], desk.settings()), 0);
    assert_eq!(desk.json(&["show", "one"])["run"]["status"], "completed");
    // Whoever only looks looks away.
    assert_eq!(call_unread(&Project::new(), &["events", "one", "--json"], [1, 9], desk.settings()), 0);
}

/// Begins a run that waits for a webhook.
fn begun_to_wait(desk: &Desk, id: &str) {
    let letter = Reply::call("write", json!({"text": "Done."}));
    let outcome = desk.call(&scripted([letter]), &["run", "help desk", "-o", "customer=ada", "--id", id]);
    assert_eq!(outcome.code, 3, "{}", outcome.err);
}

const POST: [&str; 4] = ["--webhook", "post", "--identifier", "ada"];

#[test]
fn a_webhook_that_came_again_is_told_and_can_be_thrown_away() {
    let desk = Desk::new();
    begun_to_wait(&desk, "ticket-1");
    let send = |more: &[&str]| desk.call(&Project::new(), &[&["send"][..], &POST, more].concat());

    assert_eq!(send(&["--payload", r#"{"stars": 5}"#]).out, "delivered the webhook post ada (event 11 of ticket-1)\n");
    insta::assert_snapshot!(send(&["--payload", r#"{"stars": 5}"#, "--id", "again"]).out, @"nobody waits for post ada: event 11 of ticket-1 took one already. This one is kept for 7d, and answers the next call that waits. Away with it: desk send --discard again");
    let listed = without_times(&desk.call(&Project::new(), &["inbox", "--mail"]).out);
    insta::assert_snapshot!(listed, @r"
    post ada, for 0s; 6d left
      with stars=5
        desk send --discard again
    ");
    assert_eq!(desk.json(&["inbox", "--mail"])["payload"], json!({"stars": 5}));

    assert_eq!(desk.call(&Project::new(), &["send", "--discard", "again"]).out, "threw the webhook post ada away\n");
    assert_eq!(desk.json(&["inbox", "--mail"]), Value::Null);
    assert!(desk.refused(&["send", "--discard", "again"]).starts_with("7\nerror: no webhook `again` is kept\n"));
}

#[test]
fn the_same_id_with_another_payload_is_refused() {
    let desk = Desk::new();
    let send = |run: &[&'static str], payload: &str| {
        let outcome =
            desk.call(&Project::new(), &[&["send"], run, &POST, &["--id", "x", "--payload", payload]].concat());
        (outcome.code, outcome.out + &outcome.err)
    };
    let other = "error: the signal `x` was sent before with another content\n";

    assert_eq!(send(&[], r#"{"stars": 5}"#).0, 0);
    let (code, told) = send(&[], r#"{"stars": 5}"#);
    assert!(code == 0 && told.starts_with("known already: nobody waits for post ada yet"), "{told}");
    let (code, told) = send(&[], r#"{"stars": 1}"#);
    assert!(code == 7 && told.starts_with(other), "{told}");

    // It is taken as soon as a call waits.
    let letter = Reply::call("write", json!({"text": "Done."}));
    desk.call(&scripted([letter]), &["run", "help desk", "-o", "customer=ada", "--id", "ticket-1"]);
    let (code, told) = send(&[], r#"{"stars": 5}"#);
    assert!(code == 0 && told.starts_with("known already: delivered the webhook post ada (event "), "{told}");
    for run in [&[][..], &["ticket-1"]] {
        let (code, told) = send(run, r#"{"stars": 1}"#);
        assert!(code == 7 && told.starts_with(other), "{told}");
    }
    let (code, told) = send(&["ticket-1"], r#"{"stars": 5}"#);
    assert!(code == 0 && told.starts_with("known already: delivered the webhook post ada (event "), "{told}");
}

#[test]
fn what_does_not_fit_the_call_is_told_with_the_commands_that_do() {
    let desk = Desk::new();
    begun_to_wait(&desk, "ticket-1");
    begun(&desk, "ticket-2");

    insta::assert_snapshot!(desk.refused(&["send", "ticket-1", "--reply", "Chat/0.0", "{}"]), @r#"
    7
    error: the call `Chat/0.0` waits for the webhook `post` with identifier `ada`, not for a reply
      nothing was changed; `desk show ticket-1` says how the run stands
      desk send ticket-1 --webhook post --identifier ada --payload '{"stars":1}'
    "#);
    let approved = desk.refused(&["approve", "ticket-1", "Chat/0.0"]);
    assert!(
        approved.contains("waits for the webhook `post` with identifier `ada`, not for a decision\n"),
        "{approved}"
    );
    let replied = desk.refused(&["send", "ticket-2", "--reply", "Chat/0.0", "{}"]);
    assert!(replied.contains("the call `Chat/0.0` waits for a decision, not for a reply\n"), "{replied}");
    assert!(replied.contains("desk approve ticket-2 Chat/0.0\n"), "{replied}");
    let misfit = desk.refused(&["approve", "ticket-2", "--args", r#"{"amount": "much"}"#]);
    assert!(misfit.contains("the edited arguments of `Chat/0.0` do not fit: "), "{misfit}");
}

#[test]
fn a_payload_comes_from_a_file_or_stdin_too_and_is_not_said_back_whole() {
    let desk = Desk::new();
    begun_to_wait(&desk, "ticket-1");
    begun(&desk, "ticket-2");
    std::fs::write(desk.path("args.json"), r#"{"amount": 60}"#).unwrap();

    let file = format!("@{}", desk.path("args.json"));
    assert_eq!(
        desk.json(&["approve", "ticket-2", "--args", &file])["accepted"][0]["signal"]["arguments"]["amount"],
        60
    );
    let send = |payload: &str| {
        call_given(&Project::new(), &[&["send"], &POST[..], &["--payload", "-"]].concat(), payload, desk.settings())
    };
    let wrong = send(&format!("{{\"stars\": {}", "x".repeat(100_000)));
    assert_eq!(wrong.code, 2);
    assert!(
        wrong.err.starts_with("error: --payload: it is no JSON from `xxxx") && wrong.err.len() < 300,
        "{}",
        wrong.err
    );
    assert_eq!(send("{\"stars\": 4}").code, 0);
    assert_eq!(
        desk.call(&Project::new(), &[&["send"], &POST[..]].concat()).code,
        2,
        "nothing is sent that was not said"
    );
}

#[test]
fn an_export_replaces_no_file_unasked_and_none_by_halves() {
    let desk = Desk::new();
    begun(&desk, "ticket-1");
    let file = desk.path("run.jsonl");
    std::fs::write(&file, "mine").unwrap();

    let refused = desk.refused(&["export", "ticket-1", &file]);
    assert!(refused.starts_with("2\nerror: desk/run.jsonl is there already\n"), "{refused}");
    assert_eq!(desk.refused(&["export", "ticket-9", &file, "--force"]).lines().next(), Some("2"));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
    assert_eq!(desk.json(&["export", "ticket-1", &file, "--force"])["events"], 10);

    let out = desk.call(&Project::new(), &["export", "ticket-1", "-"]).out;
    assert_eq!(out, std::fs::read_to_string(&file).unwrap());
    let other = Desk::new();
    let taken = call_given(&Project::new(), &["import", "-"], &out, other.settings());
    assert_eq!(
        (taken.code, taken.out.as_str()),
        (0, "took in the run ticket-1 of Help Desk, 10 events\n"),
        "{}",
        taken.err
    );
}

#[test]
fn a_file_that_says_strange_things_about_its_run_is_refused() {
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
    assert_eq!(named(&"x".repeat(5000)), "error: stdin, line 1: the run's id has 5000 characters, and may have 200");
    let other = import(&text.replacen("Help Desk", "Help Dusk", 1));
    assert_eq!(other, "error: stdin, line 1: the header says the brain `Help Dusk`, and the events say `Help Desk`");
    let form = import("[]");
    assert!(form.starts_with("error: stdin, line 1: it is no header of an exported run, which reads {"), "{form}");
    let event = import(&text.replacen("\"LOOP_START\"", "\"LOOP_DANCE\"", 1));
    assert_eq!(
        event,
        "error: stdin, line 6: it is no event that this release knows, or one with wrong fields: `LOOP_DANCE`"
    );
}

#[test]
fn a_row_that_cannot_be_read_hides_no_other_run() {
    let desk = Desk::new();
    begun(&desk, "ticket-1");
    begun(&desk, "ticket-2");
    let file = rusqlite::Connection::open(desk.path("runs.db")).unwrap();
    file.execute("UPDATE runs SET summary = '{' WHERE run = 'ticket-1'", []).unwrap();

    let listed = desk.call(&Project::new(), &["runs"]);

    assert_eq!(listed.code, 0);
    assert!(listed.out.contains("ticket-2") && !listed.out.contains("ticket-1"), "{}", listed.out);
    let left_out = "ticket-1 is left out: the event store failed: the row about the run `ticket-1` in ";
    assert!(listed.err.starts_with(left_out), "{}", listed.err);
}

#[test]
fn a_log_that_has_lost_its_end_is_said_to_be_damaged() {
    let desk = Desk::new();
    begun(&desk, "ticket-1");
    let file = rusqlite::Connection::open(desk.path("runs.db")).unwrap();
    file.execute("DELETE FROM events WHERE id = (SELECT max(id) FROM events)", []).unwrap();

    for arguments in
        [&["show", "ticket-1"][..], &["export", "ticket-1"], &["state", "ticket-1"], &["approve", "ticket-1"]]
    {
        let told = desk.refused(arguments);
        assert!(told.starts_with("6\n") && told.contains("it ends at event 8, and its row says event 9"), "{told}");
    }
}

#[test]
fn a_run_whose_open_call_has_another_tool_now_says_where_to_fork() {
    #[derive(Deserialize, JsonSchema)]
    struct Longer {
        text: String,
        #[expect(dead_code, reason = "only the schema counts")]
        author: String,
    }
    let desk = Desk::new();
    begun_batch(&desk, "one");
    desk.json(&["approve", "one", "--all"]);
    let changed = || {
        brain("Batch").state(Vec::<String>::new()).r#loop("Work", |cx| {
            cx.system("You note.").input("Note it.").tool("note", |t| {
                t.description("Notes something")
                    .approval(|args: &Longer, _| Some(format!("to note {}", args.text)))
                    .execute(async |_: Longer, _| Ok("noted"))
            })
        })
    };
    let project =
        |reply: Option<Reply>| Project::new().brain(changed()).model(Tier::Normal, Arc::new(ScriptedModel::new(reply)));

    let refused = desk.call(&project(None), &["work", "one"]);

    assert_eq!(refused.code, 7);
    assert!(refused.err.contains("its tool `note` has other parameters now"), "{}", refused.err);
    let (_, command) = refused.err.split_once("that round begins anew in a fork: desk ").unwrap();
    let words: Vec<&str> = command.split_whitespace().collect();
    let forked = desk.json(&words);
    let worked = desk.call(&project(Some(Reply::text("Nothing to note."))), &["work", forked["run"].as_str().unwrap()]);
    assert_eq!(worked.code, 0, "{}", worked.err);
}

#[test]
fn a_run_says_what_it_cost_and_whose_price_is_unknown() {
    let desk = Desk::new();
    let used = |reply: Reply, input| reply.usage(Usage { input, output: 10, cached: 100, reasoning: 5 });
    let project = scripted([used(refund(7), 1000), used(Reply::text("Done."), 2000)]);
    assert_eq!(
        desk.call(&project, &["run", "help desk", "-o", "customer=ada", "-o", "limit=100", "--id", "one"]).code,
        0
    );
    begun(&desk, "two");
    let write = |name: &str, text: &str| std::fs::write(desk.path(name), text).unwrap();
    write(
        "prices.toml",
        "as_of = \"2026-11-01\"\ncurrency = \"EUR\"\n[prices]\n\"scripted/*\" = { input = 1.5, output = 4, cached = 0.1 }",
    );
    write("prices.json", r#"{"as_of": "2026-11-02", "prices": {"scripted*": {"input": "1", "output": 2}}}"#);
    write("broken.toml", "as_of = \"2026-11-01\"\n[prices]\nx = { input = \"much\", output = 1 }");
    let cost = |run: &str, prices: &[&str]| {
        let outcome = desk.call(&Project::new(), &[&["show", run], prices].concat());
        assert_eq!(outcome.code, 0, "{}", outcome.err);
        let told = |line: &str| line.find("cost").and_then(|place| line.get(place..)).map(str::to_owned);
        outcome.out.lines().filter_map(told).collect::<Vec<_>>().join("\n")
    };

    insta::assert_snapshot!(cost("one", &["--prices", &desk.path("prices.toml")]), @r"
    cost 0.0043 EUR, by the prices of 2026-11-01
    cost 0.0043 EUR
    ");
    insta::assert_snapshot!(cost("one", &["--prices", &desk.path("prices.json")]), @r"
    cost 0.00304 USD, by the prices of 2026-11-02
    cost 0.00304 USD
    ");
    insta::assert_snapshot!(cost("one", &[]), @r"
    cost: unknown price of 2 answers (scripted/scripted)
    cost unknown
    ");
    insta::assert_snapshot!(cost("two", &["--prices", &desk.path("prices.toml")]), @r"
    cost: unknown price of 1 answer (scripted/scripted)
    cost unknown
    ");
    insta::assert_snapshot!(desk.json(&["show", "two"])["cost"].to_string(), @r#"{"calls":[{"cost":"unknown","model":"scripted/scripted","path":"Chat/0","seq":7,"usage":{}}],"currency":"USD","prices":"2026-03-21","total":{"calls":1,"known":"0","unpriced":1,"usage":{}}}"#);
    insta::assert_snapshot!(desk.refused(&["show", "one", "--prices", &desk.path("broken.toml")]), @r#"
    6
    error: desk/broken.toml holds no prices: TOML parse error at line 3, column 15
        |
      3 | x = { input = "much", output = 1 }
        |               ^^^^^^
      `much` is no amount of money: it is a number such as 1.25, not negative, with at most 9 decimal places
      a table is `as_of = "2026-11-01"` and, under `[prices]`, lines such as `"openai/gpt-5" = { input = 1.25, output = 10 }`
    "#);
    insta::assert_snapshot!(desk.refused(&["show", "one", "--prices", &desk.path("none.toml")]), @r"
    6
    error: desk/none.toml cannot be read: No such file or directory (os error 2)
    ");
}

/// Saves a file under each name that the model gives, with the name as its content.
fn saves(names: &[&str]) -> Project {
    #[derive(Deserialize, JsonSchema)]
    struct Save {
        /// The name of the file
        name: String,
    }
    let reporter = brain("Reporter").r#loop("Work", |cx| {
        cx.system("Report.").input("Go.").tool("save", |t| {
            t.description("Saves a file").sequential().execute(async |Save { name }, cx| {
                cx.save_file(name.clone(), "text/plain", format!("{name}!")).await.map(|_| ())
            })
        })
    });
    let calls = names.iter().map(|name| Reply::call("save", json!({"name": name})));
    let model = ScriptedModel::new(calls.chain([Reply::text("Saved.")]));
    Project::new().brain(reporter).model(Tier::Normal, Arc::new(model))
}

fn saved(desk: &Desk, names: &[&str]) {
    let ran = desk.call(&saves(names), &["run", "reporter", "--id", "report"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
}

#[test]
fn the_files_of_a_run_are_listed_and_written_into_a_folder_and_never_outside() {
    let desk = Desk::new();
    saved(&desk, &["sales.csv", "../../escape.txt", "/tmp/absolute"]);
    let call = |arguments: &[&str]| desk.call(&Project::new(), &[&["files", "report"], arguments].concat());
    let out = desk.path("out");
    let written = || {
        let folder = std::fs::read_dir(desk.path("out")).unwrap();
        let mut names: Vec<_> = folder.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };

    insta::assert_snapshot!(call(&[]).out, @r"
    NAME              TYPE        SIZE      SHA-256       TOOL
    sales.csv         text/plain  10 bytes  a98c361361d4  save
    ../../escape.txt  text/plain  17 bytes  c3c9fc9f5e44  save
    /tmp/absolute     text/plain  14 bytes  8ee00d59dea8  save
    ");
    let sales = desk.json(&["files", "report", "sales.csv"]);
    assert_eq!(
        (&sales["size"], &sales["tool"], &sales["call"]),
        (&json!(10), &json!("save"), &json!("Work/0.0")),
        "{sales}"
    );
    let unknown = desk.refused(&["files", "report", "sale.csv"]);
    assert!(unknown.contains("the run has no file `sale.csv`") && unknown.contains("`sales.csv`?"), "{unknown}");

    let saved = call(&["sales.csv", "--save", &out]);
    assert_eq!(
        (saved.code, saved.out.as_str(), saved.err.as_str()),
        (0, "desk/out/sales.csv  10 bytes\n", "wrote 1 file into desk/out\n")
    );
    assert_eq!(std::fs::read_to_string(desk.path("out/sales.csv")).unwrap(), "sales.csv!");
    assert!(
        desk.refused(&["files", "report", "--save", &out]).starts_with("2\nerror: desk/out/sales.csv is there already")
    );
    assert_eq!(written(), ["sales.csv"], "all or none");

    std::fs::write(desk.path("other.txt"), "kept").unwrap();
    std::fs::remove_file(desk.path("out/sales.csv")).unwrap();
    std::os::unix::fs::symlink(desk.path("other.txt"), desk.path("out/sales.csv")).unwrap();
    assert_eq!(call(&["--save", &out, "--force"]).code, 0);
    assert_eq!(written(), ["absolute", "escape.txt", "sales.csv"]);
    assert_eq!(std::fs::read_to_string(desk.path("other.txt")).unwrap(), "kept", "a link is replaced, not followed");
    assert_eq!(std::fs::read_to_string(desk.path("out/sales.csv")).unwrap(), "sales.csv!");
    assert!(desk.call(&Project::new(), &["show", "report"]).out.contains("10 bytes"));
}

#[test]
fn a_run_moves_with_its_files_which_are_checked() {
    let (desk, other) = (Desk::new(), Desk::new());
    saved(&desk, &["one.txt", "two.txt"]);
    let file = desk.path("run.jsonl");
    assert_eq!(desk.json(&["export", "report", &file])["files"], 2);
    let text = std::fs::read_to_string(&file).unwrap();
    let broken = |text: &str| {
        std::fs::write(desk.path("broken.jsonl"), text).unwrap();
        other.refused(&["import", &desk.path("broken.jsonl")])
    };

    // `one.txt!` and another content of the same length.
    let damaged = broken(&text.replace("b25lLnR4dCE=", "b25lLnR4dD8="));
    assert!(damaged.contains("a file is damaged: its hash is `"), "{damaged}");
    let cut = broken(text.trim_end().rsplit_once('\n').unwrap().0);
    assert!(cut.contains("the file ends after 1 of 2 files"), "{cut}");
    assert_eq!(other.json(&["import", &file])["files"], 2);

    let out = other.path("out");
    assert_eq!(other.call(&Project::new(), &["files", "report", "--save", &out]).code, 0);
    assert_eq!(std::fs::read_to_string(other.path("out/two.txt")).unwrap(), "two.txt!");
    assert_eq!(text, other.call(&Project::new(), &["export", "report"]).out, "as it came");
}

#[test]
fn a_damaged_file_is_told_and_hides_no_other() {
    let desk = Desk::new();
    saved(&desk, &["one.txt", "two.txt"]);
    let db = rusqlite::Connection::open(desk.path("runs.db")).unwrap();
    db.execute("UPDATE blobs SET bytes = x'00' WHERE id = 1", []).unwrap();
    let out = desk.path("out");

    let saved = desk.call(&Project::new(), &["files", "report", "--save", &out]);

    assert_eq!((saved.code, saved.out.as_str()), (6, "desk/out/two.txt  8 bytes\n"));
    assert!(saved.err.contains("error: `one.txt` cannot be written: the bytes kept as `"), "{}", saved.err);
    let exported = desk.call(&Project::new(), &["export", "report", &desk.path("run.jsonl")]);
    assert!(exported.err.contains("a file is left out: `one.txt`: the bytes kept as `"), "{}", exported.err);
    assert_eq!(exported.code, 0);
}

/// A brain whose model sets a trigger when it is asked, and says what has started it.
fn gardener() -> Project {
    let triggers = positronic_core::plugins::Triggers::new();
    let gardener = brain("Gardener").r#loop("Chat", move |cx| {
        let chat = cx.system("You look after a garden.").plugin(triggers.clone());
        if cx.fired().is_none() { chat.input("Water the beans!") } else { chat }
    });
    let model = ScriptedModel::from_fn(|request| match (request.messages.len(), request.context.len()) {
        (_, 1) => Reply::text("Watered."),
        (1, _) => Reply::call("trigger.create", json!({"what": "Water the beans.", "in": "1 hour"})),
        _ => Reply::text("In an hour."),
    });
    Project::new().brain(gardener).model(Tier::Normal, Arc::new(model))
}

#[test]
fn work_fires_what_is_due_and_triggers_are_listed_and_taken_back() {
    let desk = Desk::new();
    let call = |arguments: &[&str]| desk.call(&gardener(), arguments);
    for id in ["one", "two"] {
        let ran = call(&["run", "gardener", "--id", id, "--user", "ann"]);
        assert_eq!(ran.code, 0, "{}", ran.err);
    }
    let lines = call(&["triggers", "--json"]).out;
    let timers: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let ids: Vec<_> = timers.iter().map(|timer| timer["trigger"]["id"].as_str().unwrap()).collect();
    let listed = call(&["triggers"]).out;
    for id in &ids {
        assert!(
            listed.contains(&format!("{id} is due in 59m; it starts Gardener for ann\n  Water the beans.\n")),
            "{listed}"
        );
    }
    assert_eq!(call(&["work", "--once"]).err, "", "nothing is due");

    let deleted = call(&["triggers", "--delete", ids[1]]);
    assert_eq!(deleted.err, format!("the trigger {} does not fire any more; what it has started goes on\n", ids[1]));
    assert!(desk.refused(&["triggers", "--delete", ids[1]]).starts_with("2\nerror: there is no trigger `t-"));
    let db = rusqlite::Connection::open(desk.path("runs.db")).unwrap();
    db.execute("UPDATE timers SET due = 5", []).unwrap();
    let strange = desk.call(&project(), &["work", "--once"]);
    let told = format!("the trigger {} does not fire here: there is no brain `Gardener`\n", ids[0]);
    assert_eq!((strange.code, strange.err), (0, told));
    let worked = call(&["work", "--once"]);

    let run = format!("{}-19700101T000000.000005Z", ids[0]);
    assert!(worked.err.starts_with(&format!("the trigger {} has started {run}\n{run}  Gardener starts\n", ids[0])));
    assert!(worked.err.contains("the model answered in 0 ms: Watered."), "{}", worked.err);
    let shown = call(&["show", &run]).out;
    assert!(shown.contains(&format!("the trigger {} has started it: Water the beans.", ids[0])), "{shown}");
    assert!(shown.contains("over trigger for ann"), "{shown}");
    assert_eq!(desk.call(&Project::new(), &["triggers"]).err, "no trigger is set in desk/runs.db\n");
}

#[test]
fn a_recording_does_not_go_on_with_a_run_that_a_model_has_begun() {
    let desk = Desk::new();
    begun(&desk, "ticket-1");
    assert_eq!(desk.call(&Project::new(), &["approve", "ticket-1"]).code, 0);

    let one = desk.call(&project(), &["work", "ticket-1"]);
    let all = desk.call(&project(), &["work", "--once"]);

    insta::assert_snapshot!(format!("{}\n{}", one.code, one.err), @r"
    5
    no key set: playing the bundled cassette of `Help Desk` (written by hand); set OPENAI_API_KEY or OPENAI_BASE_URL to talk to a real endpoint
    error: `scripted/scripted` has answered in the run `ticket-1`, and a recording does not go on in its place
      set OPENAI_API_KEY or OPENAI_BASE_URL, as when the run began
    ");
    assert!(all.err.contains("a recording does not go on in its place"), "{}", all.err);
    let log = desk.call(&Project::new(), &["events", "ticket-1", "--json"]).out;
    assert!(log.contains("LOOP_APPROVAL_DECIDED") && !log.contains("cassette/"), "{log}");
    let done = desk.call(&scripted([Reply::text("It is paid.")]), &["work", "ticket-1"]);
    assert_eq!(done.code, 0, "{}", done.err);
}
