//! The examples as processes that exit and crash, and their runs that continue.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

/// A folder with a store, and the command in it.
pub(crate) struct Desk(pub(crate) TempDir);

impl Desk {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("positronic-examples"));
        let own = ["POSITRONIC_MODEL", "POSITRONIC_HIGH_MODEL", "POSITRONIC_STORE", "CARGO"];
        for name in positronic_providers::Providers::variables().chain(own) {
            command.env_remove(name);
        }
        command.args(arguments).current_dir(self.0.path()).env("NO_COLOR", "1").env("USER", "ann").stdin(Stdio::null());
        command
    }

    pub(crate) fn call(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    pub(crate) fn expect(&self, arguments: &[&str], code: i32) -> String {
        let output = self.call(arguments);
        let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        said
    }

    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let output = self.call(&[arguments, &["--json"]].concat());
        serde_json::from_slice(&output.stdout).unwrap_or_default()
    }

    pub(crate) fn begin(&self, arguments: &[&str]) -> Child {
        self.command(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }
}

#[test]
fn run_is_approved_and_continued_by_another_process() {
    let desk = Desk::new();

    let said = desk.expect(&["run", "release", "--ask", "--id", "v1.4.0"], 3);
    assert!(said.contains("positronic-examples approve v1.4.0 Ship/3.0"), "{said}");
    assert_eq!(std::fs::read_to_string(desk.0.path().join(".positronic/.gitignore")).unwrap(), "*\n");
    let inbox = desk.json(&["inbox"]);
    assert_eq!((&inbox["run"], &inbox["pending"]["tool"]), (&json!("v1.4.0"), &json!("deploy")));

    assert_eq!(desk.json(&["approve", "v1"])["accepted"][0]["signal"]["call"], "Ship/3.0");
    desk.expect(&["approve", "v1", "Ship/3.0"], 7);

    let output = desk.call(&["work", "v1"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(serde_json::from_slice::<Value>(&output.stdout).unwrap()["deployed"], "1.4.0");
    assert_eq!(desk.json(&["show", "v1"])["run"]["status"], "completed");
    desk.expect(&["watch", "v1"], 0);
}

#[test]
fn run_of_a_schedule_is_answered_by_the_cassette() {
    let desk = Desk::new();
    desk.expect(&["schedule", "add", "mornings", "weather", "--every", "52w"], 0);
    desk.expect(&["schedule", "trigger", "mornings"], 0);

    let worked = desk.expect(&["work", "--once"], 0);

    let runs = desk.json(&["runs"]);
    assert_eq!((&runs["brain"], &runs["status"]), (&json!("Weather"), &json!("completed")), "{worked}");
}

#[test]
fn run_waiting_in_another_process_receives_the_decision() {
    let desk = Desk::new();
    desk.expect(&["run", "release", "--ask", "--id", "v1"], 3);
    let watcher =
        desk.command(&["watch", "v1", "--json"]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut server = desk.begin(&["work"]);

    desk.expect(&["reject", "v1", "--reason", "it is Friday"], 0);
    // The model calls a tool that no longer exists, and then postpones the release.
    let watched = watcher.wait_with_output().unwrap();
    server.kill().unwrap();
    server.wait().unwrap();

    let said = String::from_utf8_lossy(&watched.stdout);
    assert!(said.contains("it is Friday") && said.contains("The deployment was refused."), "{said}");
    assert_eq!(watched.status.code(), Some(0));
}

#[test]
fn killed_process_is_replaced_without_repeated_effects() {
    let mut in_the_middle = 0;
    for bytes in [40_000, 80_000, 160_000, 240_000] {
        let desk = Desk::new();
        let log = desk.0.path().join(".positronic/runs.db-wal");
        let mut child = desk.begin(&["run", "support", "--id", "C-7"]);
        until(|| std::fs::metadata(&log).is_ok_and(|log| log.len() > bytes) || child.try_wait().unwrap().is_some());
        child.kill().unwrap();
        child.wait().unwrap();
        in_the_middle += usize::from(desk.json(&["show", "C-7"])["run"]["status"] != "completed");

        // The same start is the same run: it continues where it was.
        let output = desk.call(&["run", "support", "--id", "C-7"]);
        let said = String::from_utf8_lossy(&output.stderr);
        let log = desk.expect(&["events", "C-7"], 0);
        assert!(log.matches("approved by the cassette").count() <= 1, "{log}");
        assert!(log.matches("LOOP_TOOL_START    Chat/3.0").count() <= 1, "the refund was paid once: {log}");
        // A call in flight at the crash has an unknown outcome, which the cassette did not expect.
        if !log.contains("interrupted: ") {
            assert_eq!(output.status.code(), Some(0), "{said}");
            assert_eq!(serde_json::from_slice::<Value>(&output.stdout).unwrap()["refunded"], 249, "{said}");
        }
    }
    assert!(in_the_middle > 0, "every run had ended before it was killed");
}

/// Sends a process a signal, such as `-INT`, which is what Ctrl-C sends.
#[cfg(unix)]
pub(crate) fn signal(child: &Child, signal: &str) {
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

#[test]
#[cfg(unix)]
fn terminated_worker_releases_its_runs() {
    let desk = Desk::new();
    desk.expect(&["run", "support", "--ask", "--id", "C-7"], 3);
    let mut server = desk.command(&["work"]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let payload = r#"{"text": "It does, the tank has a crack."}"#;
    desk.expect(&["send", "--webhook", "slack", "--identifier", "thread-7", "--payload", payload], 0);
    // It continues up to the next question, and lingers there.
    until(|| desk.json(&["show", "C-7"])["waiting"][0]["pending"]["call"] == "Chat/3.0");

    signal(&server, "-INT");
    let mut said = String::new();
    std::io::Read::read_to_string(&mut server.stderr.take().unwrap(), &mut said).unwrap();

    assert_eq!(server.wait().unwrap().code(), Some(0), "{said}");
    assert!(said.ends_with("released all runs; another `work` can continue them\n"), "{said}");
    let log = desk.expect(&["events", "C-7", "--json"], 0);
    let last = log.lines().next_back().unwrap();
    assert!(last.contains("RUN_RELEASED") && last.contains("its worker releases its runs"), "{last}");
}

#[test]
#[cfg(unix)]
fn terminated_run_stays_for_another_process() {
    let desk = Desk::new();
    let child = desk.begin(&["run", "support", "--id", "C-7"]);
    until(|| desk.json(&["show", "C-7"])["run"]["next"].as_u64().is_some_and(|next| next > 5));

    signal(&child, "-TERM");
    let code = { child }.wait().unwrap().code();

    if code == Some(0) {
        return; // It was faster than the signal.
    }
    assert_eq!(code, Some(143));
    let log = desk.expect(&["events", "C-7", "--json"], 0);
    assert!(!log.contains("BRAIN_CANCELLED"), "{log}");
    assert!(log.lines().next_back().unwrap().contains("RUN_RELEASED"), "{log}");
    let output = desk.call(&["run", "support", "--id", "C-7"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn every_command_explains_errors_of_runs_and_stores() {
    let desk = Desk::new();
    for id in ["ticket-1", "ticket-2"] {
        desk.expect(&["run", "minimal", "--id", id], 0);
    }

    let said = desk.expect(&["show", "ticket-"], 2);
    assert!(said.contains("ticket-1  Minimal, completed") && said.contains("ticket-2  Minimal, completed"), "{said}");
    assert!(desk.expect(&["events", "tiket-1"], 2).contains("did you mean `ticket-1`"));
    desk.expect(&["export", "ticket-1", "run.jsonl"], 0);
    let whole = std::fs::read_to_string(desk.0.path().join("run.jsonl")).unwrap();
    std::fs::write(desk.0.path().join("run.jsonl"), &whole[..whole.len() / 2]).unwrap();
    assert!(desk.expect(&["import", "run.jsonl", "--store", "other.db"], 6).contains("run.jsonl, line "));
    std::fs::write(desk.0.path().join("notes.db"), "these are my notes, and no runs at all; there are many of them")
        .unwrap();
    assert!(desk.expect(&["runs", "--store", "notes.db"], 6).contains("is not an event store"));
    desk.expect(&["run", "minimal", "--memory"], 0);
    assert_eq!(desk.expect(&["runs", "--json"], 0).lines().count(), 2);
    assert!(!Path::new(&desk.0.path().join("other.db")).exists());
}

#[expect(clippy::disallowed_methods, reason = "another process is waited for, whose clock is the system's")]
pub(crate) fn until(mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < Duration::from_secs(30), "it takes too long");
        std::thread::yield_now();
    }
}
