//! Brains with the tools of third-party MCP servers, over stdio.

use std::path::Path as FilePath;
use std::process::Command;
use std::time::Duration;

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{OutputKind, Path, Status, ToolResult};
use positronic_core::runner::{RunHandle, Settled};
use positronic_core::sink::Recorder;
use positronic_core::testing::{CountedIds, Lockstep as _, Story, Test};
use positronic_mcp::{Mcp, McpCommand, McpOptions, McpServer};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::address::address;

/// A server's script, run by Node; `mark` is an argument that identifies its process.
fn command(variable: &str, arguments: &[&str]) -> McpCommand {
    let (node, script) = (address("POSITRONIC_NODE", ".ci/lanes"), address(variable, ".ci/lanes"));
    McpCommand::new(node).arg(script).args(arguments)
}

fn everything(mark: &str, options: McpOptions) -> McpServer {
    McpServer::new("all", command("POSITRONIC_MCP_EVERYTHING", &["stdio", mark]), options).unwrap()
}

fn desk(server: &McpServer) -> Brain<(), Value> {
    let mcp = Mcp::of([server]);
    brain("Desk").state(Value::Null).r#loop("Work", move |cx| cx.system("Work.").plugin(mcp.clone())).build()
}

struct Desk {
    test: Test,
    shown: Recorder,
}

impl Desk {
    /// A model that makes scripted calls, one per iteration.
    fn new(calls: impl IntoIterator<Item = (&'static str, Value)>) -> Self {
        let calls = calls.into_iter().map(|(tool, arguments)| Reply::call(tool, arguments));
        let model = ScriptedModel::new(calls.chain([Reply::text("Done.")]));
        let shown = Recorder::new();
        let runner = Runner::new(model).ids(CountedIds::default()).lockstep(true).linger(Duration::MAX);
        Self { test: Test::with(runner.sink(shown.clone())), shown }
    }

    async fn start(&self, server: &McpServer) -> RunHandle<Value> {
        self.test.start(&desk(server), ()).await
    }

    async fn run(&self, server: &McpServer) -> Vec<ToolResult> {
        let run = self.start(server).await;
        let story = tokio::time::timeout(Duration::from_secs(60), Story::of(&run)).await.unwrap();
        assert!(matches!(story.settled(), Settled::Completed(_)), "{}", story.events());
        results(&run)
    }
}

fn results(run: &RunHandle<Value>) -> Vec<ToolResult> {
    let outputs = run.prompts().get(&path("Work")).unwrap().output.clone().into_iter();
    let results = outputs.filter_map(|output| match output.kind {
        OutputKind::Tool(tool) => tool.result,
        _ => None,
    });
    results.collect()
}

fn path(text: &str) -> Path {
    text.parse().unwrap()
}

#[track_caller]
fn output(result: &ToolResult) -> &Value {
    match result {
        ToolResult::Success { output, .. } => output,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn error(result: &ToolResult) -> &str {
    match result {
        ToolResult::Error { message } => message,
        other => panic!("{other:?}"),
    }
}

/// Finds the processes with an argument.
fn processes(mark: &str) -> Vec<String> {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let marked = all.filter(|process| {
        let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|argument| argument == mark.as_bytes())
    });
    marked.map(|process| process.file_name().to_string_lossy().into_owned()).collect()
}

fn kill(mark: &str) {
    let found = processes(mark);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(Command::new("kill").args(["-9", &found[0]]).status().unwrap().success());
}

async fn eventually(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..3000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{what} did not come about");
}

#[tokio::test]
async fn every_kind_of_answer_of_server_everything_is_a_result() {
    let options = McpOptions::builder().trust_annotations(true).build();
    let server = everything("kinds", options);
    let desk = Desk::new([
        ("all__echo", json!({"message": "tea"})),
        ("all__get-sum", json!({"a": 2, "b": 40})),
        ("all__get-sum", json!({"a": "two", "b": 40})),
        ("all__get-structured-content", json!({"location": "Chicago"})),
        ("all__get-tiny-image", json!({})),
        ("all__get-resource-links", json!({"count": 2})),
        ("all__get-resource-reference", json!({"resourceType": "Blob", "resourceId": 1})),
        ("all__get-resource-reference", json!({"resourceType": "Text", "resourceId": -1})),
        ("all__get-env", json!({})),
    ]);
    let run = desk.start(&server).await;
    let story = Story::of(&run).await;
    assert!(matches!(story.settled(), Settled::Completed(_)), "{}", story.events());

    let results = results(&run);
    assert_eq!(output(&results[0]), "Echo: tea");
    assert!(output(&results[1]).as_str().unwrap().contains("42"), "{:?}", results[1]);
    assert!(error(&results[2]).contains("\"two\" is not of type \"number\""), "{:?}", results[2]);
    assert!(output(&results[3]).is_object(), "{:?}", results[3]);
    assert!(output(&results[4]).as_str().unwrap().contains("the file `get-tiny-image-1.png`"));
    assert!(output(&results[5]).as_str().unwrap().contains(" is at "), "{:?}", results[5]);
    assert!(output(&results[6]).as_str().unwrap().contains("the file `1.txt`"), "{:?}", results[6]);
    assert!(!error(&results[7]).is_empty());
    let environment: Value = serde_json::from_str(output(&results[8]).as_str().unwrap()).unwrap();
    let names: Vec<_> = environment.as_object().unwrap().keys().collect();
    // The last argument marks the server's child processes, so that the test sees them end.
    assert_eq!(names, ["LANG", "PATH", "POSITRONIC_MCP_SERVER"], "no variable of this process");
    let files: Vec<_> = run
        .prompts()
        .get(&path("Work"))
        .unwrap()
        .output
        .iter()
        .filter_map(|output| match &output.kind {
            OutputKind::File(output) => Some((output.file.media_type.clone(), output.file.size > 0)),
            _ => None,
        })
        .collect();
    assert_eq!(files[0], ("image/png".to_owned(), true));
    assert_eq!(files.len(), 2, "the image, and the resource that is no text: {files:?}");
    assert!(story.json_lines().contains(r#""program":"mcp-servers/everything""#));
}

#[tokio::test]
async fn progress_is_shown_and_a_slow_call_is_cancelled() {
    let options = McpOptions::builder().ask(false).call_timeout(Duration::from_secs(2)).build();
    let server = everything("slow", options);
    let desk = Desk::new([
        ("all__toggle-simulated-logging", json!({})),
        ("all__trigger-long-running-operation", json!({"duration": 1, "steps": 4})),
        ("all__trigger-long-running-operation", json!({"duration": 30, "steps": 30})),
        ("all__echo", json!({"message": "still there"})),
    ]);

    let results = desk.run(&server).await;

    assert!(output(&results[1]).as_str().unwrap().contains("completed"), "{:?}", results[1]);
    assert!(error(&results[2]).contains("did not answer within 2s, and was cancelled"), "{:?}", results[2]);
    assert_eq!(output(&results[3]), "Echo: still there");
    let shown: Vec<_> = desk.shown.deltas().into_iter().map(|delta| delta.text).collect();
    assert!(shown.contains(&"2 of 4".to_owned()), "{shown:?}");
    assert_eq!(processes("slow").len(), 1, "the same process all the time");
    server.close().await;
    eventually("the end of the process", || processes("slow").is_empty()).await;
}

#[tokio::test]
async fn server_killed_during_a_call_is_an_error_and_the_next_call_restarts_it() {
    let server = everything("killed", McpOptions::builder().ask(false).build());
    let desk = Desk::new([
        ("all__trigger-long-running-operation", json!({"duration": 30, "steps": 60})),
        ("all__echo", json!({"message": "back"})),
    ]);
    let run = desk.start(&server).await;
    eventually("the call", || desk.shown.deltas().iter().any(|delta| delta.text.contains("of 60"))).await;

    kill("killed");

    let story = tokio::time::timeout(Duration::from_secs(60), Story::of(&run)).await.unwrap();
    assert!(matches!(story.settled(), Settled::Completed(_)));
    let results = results(&run);
    let died = error(&results[0]);
    assert!(died.contains("the MCP server `all` ended before it answered: it ended with signal: 9"), "{died}");
    assert_eq!(output(&results[1]), "Echo: back");
}

#[tokio::test]
async fn read_only_call_is_repeated_when_its_server_is_killed() {
    let server = everything("reader", McpOptions::builder().trust_annotations(true).build());
    let desk = Desk::new([("all__trigger-long-running-operation", json!({"duration": 2, "steps": 20}))]);
    let run = desk.start(&server).await;
    eventually("the call", || desk.shown.deltas().iter().any(|delta| delta.text.contains("of 20"))).await;

    kill("reader");

    let story = tokio::time::timeout(Duration::from_secs(60), Story::of(&run)).await.unwrap();
    assert!(matches!(story.settled(), Settled::Completed(_)));
    assert!(output(&results(&run)[0]).as_str().unwrap().contains("completed"));
}

#[tokio::test]
async fn server_filesystem_writes_with_approval_reads_without_and_stays_inside() {
    let folder = TempDir::new().unwrap();
    let place = folder.path().canonicalize().unwrap();
    let (note, outside) = (place.join("note.txt"), FilePath::new("/etc/passwd"));
    let options = McpOptions::builder()
        .only(["read_text_file", "write_file", "list_directory"])
        .renamed([("list_directory", "ls")])
        .trust_annotations(true)
        .build();
    let server = McpServer::new("files", command("POSITRONIC_MCP_FILES", &[place.to_str().unwrap()]), options).unwrap();
    let desk = Desk::new([
        ("files__write_file", json!({"path": note, "content": "Tea at five.\n"})),
        ("files__read_text_file", json!({"path": note})),
        ("ls", json!({"path": place})),
        ("files__read_text_file", json!({"path": outside})),
        ("files__move_file", json!({"source": note, "destination": "/tmp/note.txt"})),
    ]);
    let run = desk.start(&server).await;
    assert!(matches!(run.settled().await, Settled::Waiting(_)));
    assert_eq!(run.status(), Status::Waiting);
    assert!(!note.exists(), "it is not approved yet");
    // The server dies unnoticed while a person decides.
    kill(place.to_str().unwrap());

    run.approve(&path("Work/0.0"), "ann").await.unwrap();

    let story = Story::of(&run).await;
    assert!(matches!(story.settled(), Settled::Completed(_)), "{}", story.events());
    let results = results(&run);
    assert_eq!(std::fs::read_to_string(&note).unwrap(), "Tea at five.\n");
    assert_eq!(output(&results[1]), "Tea at five.\n", "the server says it twice, and the model reads it once");
    assert_eq!(output(&results[2]), "[FILE] note.txt");
    assert!(error(&results[3]).contains("Access denied"), "{:?}", results[3]);
    assert!(error(&results[4]).contains("files__move_file"), "it was left out: {:?}", results[4]);
}
