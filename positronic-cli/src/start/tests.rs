use std::process::Command;
use std::sync::Arc;

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::Tier;
use schemars::JsonSchema;
use serde::Deserialize;

use super::*;

/// A model's text that clears the terminal and hides a letter.
const HOSTILE: &str = "\u{1b}[2Jall is well\u{202e}";

#[derive(Deserialize, JsonSchema)]
struct Note {
    /// What to note
    text: String,
}

/// The test below starts this one in its own process, since the panic hook is global.
#[test]
#[ignore = "panic_with_model_text_is_printed_without_control_characters starts it"]
fn panicking_tool() {
    let writer = brain("Writer").r#loop("Write", |cx| {
        cx.system("You note.").input("Note it.").tool("note", |t| {
            t.description("Notes something").execute(async |Note { text }, _| match text.as_str() {
                "" => Ok("nothing"),
                text => panic!("cannot note {text}"),
            })
        })
    });
    let model = ScriptedModel::new([Reply::call("note", serde_json::json!({ "text": HOSTILE })), Reply::text("Done.")]);
    let project = Project::new().brain(writer).model(Tier::Normal, Arc::new(model));
    process(|_, ui| in_project(&project, &["desk", "run", "writer", "--memory"].map(OsString::from), ui));
}

#[test]
fn panic_with_model_text_is_printed_without_control_characters() {
    let name = "start::tests::panicking_tool";
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--ignored", "--nocapture"]).env("RUST_BACKTRACE", "0").env("NO_COLOR", "1");

    let output = command.output().unwrap();

    let printed = String::from_utf8(output.stderr).unwrap();
    let panic = printed.lines().find(|line| line.contains("cannot note")).unwrap_or_default();
    assert!(panic.contains("cannot note \u{241b}[2Jall is well"), "{printed:?}");
    assert!(!printed.contains(['\u{1b}', '\u{202e}']), "{printed:?}");
    assert!(printed.contains("panicked at "), "it says where: {printed:?}");
}

/// Returns a command that starts an ignored test of this module in its own process.
fn started(name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("start::tests::{name}"), "--ignored", "--nocapture"]).env("NO_COLOR", "1");
    command
}

#[test]
#[ignore = "warning_is_one_line_on_stderr_as_the_environment_says starts it"]
fn warning_step() {
    let warns = brain("Warns").step("Warn", async |_| {
        tracing::warn!(error = %format!("two\nlines {HOSTILE}"), "cannot find the page");
        Ok(())
    });
    let project = Project::new().brain(warns).model(Tier::Normal, Arc::new(ScriptedModel::new([])));
    process(|_, ui| in_project(&project, &["desk", "run", "warns", "--memory"].map(OsString::from), ui));
}

#[test]
fn warning_is_one_line_on_stderr_as_the_environment_says() {
    let lines = |variables: &[(&str, &str)]| {
        let mut command = started("warning_step");
        for name in ["POSITRONIC_LOG", "POSITRONIC_LOG_FORMAT"] {
            command.env_remove(name);
        }
        let output = command.envs(variables.iter().copied()).output().unwrap();
        let printed = String::from_utf8(output.stderr).unwrap();
        assert!(!printed.contains(['\u{1b}', '\u{202e}']), "{printed:?}");
        printed.lines().filter(|line| line.contains("cannot find the page")).map(str::to_owned).collect::<Vec<_>>()
    };

    let [line] = &lines(&[])[..] else { panic!("one line") };
    assert!(line.contains(" WARN ") && line.contains("error=two ⏎ lines "), "{line}");
    assert_eq!(lines(&[("POSITRONIC_LOG", "error")]), [""; 0]);
    let [line] = &lines(&[("POSITRONIC_LOG_FORMAT", "json")])[..] else { panic!("one line") };
    let line: serde_json::Value = serde_json::from_str(line).unwrap();
    assert_eq!((&line["level"], &line["message"]), (&"WARN".into(), &"cannot find the page".into()));
}

/// A brain whose run prints much.
fn talkative() -> Brain<(), ()> {
    brain("Talkative")
        .r#loop("Talk", |cx| {
            cx.system("Talk.")
                .input("Begin.")
                .max_iterations(100)
                .tool("note", |t| t.description("Notes something").execute(async |Note { text }, _| Ok(text)))
        })
        .build()
}

/// A project whose model talks.
fn talking() -> Project {
    let model = ScriptedModel::from_fn(|request| match request.messages.len() {
        ..100 => Reply::call("note", serde_json::json!({ "text": "x".repeat(200) })),
        _ => Reply::text("Done."),
    });
    Project::new().brain(talkative()).model(Tier::Normal, Arc::new(model))
}

#[test]
#[ignore = "output_that_nothing_reads_stops_no_work_and_no_signal starts it"]
fn working_process() {
    process(|_, ui| in_project(&talking(), &["desk", "work"].map(OsString::from), ui));
}

#[cfg(feature = "serve")]
#[test]
#[ignore = "output_that_nothing_reads_stops_no_work_and_no_signal starts it"]
fn serving_process() {
    process(|_, ui| in_project(&talking(), &["desk", "serve", "--listen", "127.0.0.1:0"].map(OsString::from), ui));
}

#[cfg(all(unix, feature = "sqlite", feature = "serve"))]
#[tokio::test]
async fn output_that_nothing_reads_stops_no_work_and_no_signal() {
    use std::process::Stdio;
    use std::time::Duration;

    use futures::StreamExt as _;
    use positronic_core::record::{Seq, Status};
    use positronic_core::runner::{Client, Runner};
    use positronic_sqlite::SqliteStore;

    for name in ["working_process", "serving_process"] {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(".positronic")).unwrap();
        let store = SqliteStore::open(folder.path().join(".positronic/runs.db")).unwrap();
        let starter = Runner::new(ScriptedModel::new([])).store(store.clone()).submit_only();
        let mut runs = Vec::new();
        for _ in 0..10 {
            runs.push(starter.start(talkative(), ()).await.unwrap().id().clone());
        }
        let mut command = started(name);
        command.current_dir(folder.path()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let client = Client::new(store);

        let all_end = async {
            for run in &runs {
                client.follow(run, Seq(0)).for_each(async |update| drop(update.unwrap())).await;
                assert_eq!(client.store().run(run).await.unwrap().status, Status::Completed);
            }
        };
        let ended = tokio::time::timeout(Duration::from_mins(2), all_end).await;
        let terminated = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
        let exits = async {
            while child.try_wait().unwrap().is_none() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let exited = tokio::time::timeout(Duration::from_secs(30), exits).await;
        _ = child.kill();

        assert!(terminated.success() && ended.is_ok(), "{name}: the runs end though nothing reads their progress");
        assert!(exited.is_ok(), "{name}: it ends on SIGTERM");
    }
}

#[test]
fn panic_with_model_text_is_escaped() {
    let panic = "panicked at src/tool.rs:1:1:\nno \u{1b}[2J\u{9b}31m\u{202e}";

    assert_eq!(
        panic_message("main\u{7}", &panic),
        "thread 'main␇' panicked at src/tool.rs:1:1:\nno ␛[2J\u{fffd}31m<U+202E>"
    );
}

#[test]
fn usage_error_is_escaped_before_it_is_printed() {
    let arguments = ["desk", "run", "idle", "\u{1b}[2J\u{9b}31m"].map(OsString::from);
    let error = Cli::try_parse_from(&arguments).unwrap_err();

    let said = escaped_usage_error(error, &arguments).to_string();

    assert!(said.starts_with("error: unexpected argument '␛[2J\u{fffd}31m' found"), "{said}");

    // Only its control characters make the value invalid.
    let arguments = ["desk", "run", "idle", "--reasoning", "lo\u{9b}2Jw"].map(OsString::from);
    let error = Cli::try_parse_from(&arguments).unwrap_err();
    let said = escaped_usage_error(error, &arguments).render().ansi().to_string();
    assert!(!said.contains('\u{9b}') && said.contains("--reasoning"), "{said:?}");
}

#[test]
fn program_name_is_the_one_that_was_called() {
    let said = |path: &str, package| called(OsStr::new(path), package);

    assert_eq!(said("my.desk", None).unwrap(), "my.desk");
    assert_eq!(said("./target/debug/desk", None).unwrap(), "./target/debug/desk");
    assert_eq!(said("/opt/my tools/desk", None).unwrap(), "'/opt/my tools/desk'");
    assert_eq!(said("target/debug/desk", Some("desk")).unwrap(), "cargo run -p desk --");
    assert_eq!(said("target/debug/desk", Some("shop")).unwrap(), "cargo run -p shop --bin desk --");
    assert_eq!(said("positronic", Some("shop")).unwrap(), "positronic", "it was found on the path");
    assert_eq!(said("..", None), None);
}
