//! The command outside a project.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use assert_cmd::Command;
use assert_cmd::cargo::cargo_bin_cmd;

fn positronic() -> Command {
    let mut command = cargo_bin_cmd!("positronic");
    for name in positronic_providers::Providers::variables().chain(["POSITRONIC_MODEL", "POSITRONIC_STORE"]) {
        command.env_remove(name);
    }
    command.env("NO_COLOR", "1");
    command
}

#[test]
fn missing_project_error_suggests_new() {
    let folder = tempfile::tempdir().unwrap();

    let output = positronic().current_dir(&folder).args(["run", "hello"]).output().unwrap();

    assert_eq!(output.status.code(), Some(6));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("error: no project found\n"), "{said}");
    assert!(output.stdout.is_empty());
    let advice = said.lines().find_map(|line| line.trim().strip_prefix("create a project with: ")).unwrap();
    let (_program, arguments) = advice.split_once(" new ").unwrap();
    positronic().current_dir(&folder).arg("new").args(arguments.split(' ')).assert().code(0);
    assert!(folder.path().join("my-project/src/main.rs").exists(), "the advice is a command that works");
}

#[test]
fn usage_error_exits_with_two_and_help_goes_to_stdout() {
    positronic().arg("fly").assert().code(2);
    positronic().args(["run", "x", "--cassette", "a", "--record", "b"]).assert().code(2);
    let help = positronic().arg("--help").output().unwrap();

    assert_eq!(help.status.code(), Some(0));
    assert!(String::from_utf8(help.stdout).unwrap().contains("Exit codes:"));
}

#[test]
fn package_without_brains_is_not_a_project() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("src")).unwrap();
    std::fs::write(folder.path().join("src/main.rs"), "fn main() {}").unwrap();
    std::fs::write(folder.path().join("Cargo.toml"), "[package]\nname = \"plain\"\nedition = \"2024\"\n").unwrap();

    positronic().current_dir(folder.path().join("src")).arg("list").assert().code(6);
}

#[test]
fn run_commands_work_outside_a_project() {
    let folder = tempfile::tempdir().unwrap();
    let command = |arguments: &[&str], code: i32| {
        let output = positronic().current_dir(&folder).args(arguments).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{said}");
        said
    };

    assert_eq!(command(&["runs"], 0), "there are no runs in .positronic/runs.db yet\n");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "looking makes nothing");
    assert!(command(&["show", "ticket-1"], 2).starts_with("error: unknown run `ticket-1` in .positronic/runs.db\n"));
    command(&["send", "--webhook", "post", "--identifier", "ada", "--payload", "{}", "--id", "mail-1"], 0);
    assert_eq!(std::fs::read_to_string(folder.path().join(".positronic/.gitignore")).unwrap(), "*\n");
    command(&["send", "ticket-1"], 2);
    command(&["runs", "since:soon"], 2);
    command(&["work"], 6);
}

#[test]
fn watch_reports_a_run_that_no_worker_has_claimed() {
    let folder = tempfile::tempdir().unwrap();
    let log = "{\"positronic_run\":1,\"run\":\"one\",\"brain\":\"Help\",\"events\":1}\n\
               {\"seq\":0,\"at\":1,\"type\":\"BRAIN_START\",\"title\":\"Help\",\"fingerprint\":\"f\",\
               \"stages\":[{\"name\":\"Chat\",\"kind\":\"loop\"}]}\n";
    std::fs::write(folder.path().join("one.jsonl"), log).unwrap();
    positronic().current_dir(&folder).args(["import", "one.jsonl"]).assert().success();

    let mut watch = std::process::Command::new(assert_cmd::cargo::cargo_bin!("positronic"));
    watch.current_dir(&folder).env_remove("POSITRONIC_STORE").args(["watch", "one"]);
    let mut watching = watch.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let told = BufReader::new(watching.stderr.take().unwrap()).lines().map(Result::unwrap);
    let mut told = told.skip_while(|line| !line.starts_with("no worker has claimed the run"));

    let said = told.next().unwrap();
    watching.kill().unwrap();
    watching.wait().unwrap();
    assert!(said.ends_with(" work one"), "{said}");
}

#[cfg(target_os = "linux")]
#[test]
fn store_that_cannot_grow_is_a_store_failure_and_not_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let letter = ["send", "--webhook", "post", "--identifier", "ada", "--payload", "{}"];
    positronic().current_dir(&folder).args(letter).assert().success();

    let program = assert_cmd::cargo::cargo_bin!("positronic");
    let mut limited = std::process::Command::new("sh");
    limited.current_dir(&folder).env_remove("POSITRONIC_STORE").args(["-c", "ulimit -f 1; exec \"$@\"", "sh"]);
    let output = limited.arg(program).args(letter).output().unwrap();

    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(6), "{said}");
    assert!(said.contains("nothing was written"), "{said}");
    let kept = positronic().current_dir(&folder).args(["inbox", "--mail", "--json"]).output().unwrap();
    assert_eq!(String::from_utf8(kept.stdout).unwrap().lines().count(), 1);
}
