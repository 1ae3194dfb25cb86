//! A process killed at random moments, at least 200 times: the next process continues, and the run ends as if
//! uninterrupted.
//!
//! The process is another instance of this test program. It writes a line for every event that it sees. The test kills
//! it after a number of lines, so that kills fall into the middle of a run without waiting.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "in tests a panic is the message")]
#![allow(clippy::print_stdout, reason = "the killed process reports its events")]

mod approvers;
mod children;
#[path = "../support/suspects.rs"]
mod culprits;
mod resumers;
mod suspects;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path as File, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use positronic_core::dsl::ToolBuilder;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::projection::timeline::Timeline;
use positronic_core::projection::{Prompts, transcript};
use positronic_core::record::{
    CallFlags, Event, ModelRequest, OutputKind, Path, Pending, PendingKind, RunId, Seq, SignalId, Start, ToolOutput,
    ToolResult,
};
use positronic_core::runner::{RunHandle, Settled};
use positronic_core::sink::{EventSink, SinkError};
use positronic_core::store::{EventStore, MemoryStore};
use positronic_sqlite::SqliteStore;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The folder of the process's store and effects, and whether its tools are repeatable.
const FOLDER: &str = "POSITRONIC_TEST_FOLDER";
const REPEATS: &str = "POSITRONIC_TEST_REPEATS";
const KILLS: usize = 200;

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
struct Board {
    ticket: String,
    done: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
struct Job {
    id: String,
}

/// Appends an effect to a file in one write, like a system outside the process.
fn effect(folder: &File, what: &str) {
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(folder.join("effects")).unwrap();
    file.write_all(format!("{what}\n").as_bytes()).unwrap();
}

type JobBuilder = ToolBuilder<(), Board>;

/// Creates a tool that records its effect and its completion.
fn job(name: &str, folder: &File, flags: impl FnOnce(JobBuilder) -> JobBuilder) -> Tool<(), Board> {
    let folder = folder.to_owned();
    let waits = name == "hooked";
    Tool::new(name, |t| {
        flags(t).description("Does a job").execute(move |Job { id }, cx: ToolContext<(), Board>| {
            let folder = folder.clone();
            async move {
                effect(&folder, cx.idempotency_key());
                tokio::task::yield_now().await;
                let reply = cx.result(format!("{id} done"));
                let hook = webhook::<NoArgs>("go").on(&id);
                let reply = reply.update(move |board: &mut Board| board.done.push(id));
                Ok(if waits { reply.wait_for([hook]) } else { reply })
            }
        })
    })
}

fn desk(folder: PathBuf, repeats: bool) -> Brain<(), Board> {
    let (opened, long) = (folder.clone(), folder.clone());
    // More crashes than a test has: a tool's retries limit how often it may kill its process.
    let flags = move |t: JobBuilder| if repeats { t.idempotent().retries(1_000) } else { t };
    let asked = brain("Asked").r#loop("Ask", |cx| cx.system("Answer.").input("Well?"));
    brain("Desk")
        .state(Board::default())
        .step("Open", move |cx| {
            let folder = opened.clone();
            async move {
                let ticket = cx.once("ticket", async {
                    effect(&folder, "ticket");
                    Ok("t-1".to_owned())
                });
                let ticket = ticket.await?;
                Ok(Board { ticket, ..cx.state })
            }
        })
        .r#loop("Work", move |cx| {
            cx.system("Work.").input("begin").tools([
                job("job", &folder, flags),
                job("gated", &folder, |t| flags(t).requires_approval("sure?")),
                job("hooked", &folder, flags),
            ])
        })
        .r#loop("Long", move |cx| cx.system("Work on.").input("more").tools([job("job", &long, flags)]))
        .brain("Asked", asked)
        .map_output(|board, ()| board)
        .step("Close", async |cx| Ok(cx.state))
        .build()
}

fn model() -> ScriptedModel {
    ScriptedModel::from_fn(|request: &ModelRequest| {
        let call = |id: &str| ("job", json!({ "id": id }));
        match request.path.as_str() {
            "Work/0" => Reply::calls([call("a"), call("b"), call("c")]),
            "Work/1" => Reply::calls([call("d"), ("gated", json!({"id": "g"})), call("h")]).and_text("One more."),
            "Work/2" => Reply::calls([call("e"), ("hooked", json!({"id": "w"})), call("f")]),
            "Work/3" => Reply::text("All done."),
            // Longer than one snapshot.
            "Long/0" | "Long/1" | "Long/2" | "Long/3" | "Long/4" | "Long/5" => {
                let ids: Vec<_> = (0..16).map(|call| format!("{}.{call}", request.path)).collect();
                Reply::calls(ids.iter().map(|id| call(id)))
            }
            _ => Reply::text("Well."),
        }
    })
}

/// Decides and delivers pending items until the run is over. Kills alone never park it.
async fn drive<R>(run: &RunHandle<R>) {
    loop {
        let pending = match run.settled().await {
            Settled::Waiting(pending) => pending,
            Settled::Completed(_) => return,
            other => panic!("{other:?}"),
        };
        for Pending { call, kind, .. } in pending {
            match kind {
                PendingKind::Approval { .. } => run.approve(&call, "ann").await.unwrap(),
                PendingKind::Budget(_) => panic!("nothing is limited at {call}"),
                PendingKind::Answer { waits } => run.webhook("go", &waits[0].identifier, json!({})).await.unwrap(),
            };
        }
    }
}

fn runner(store: impl EventStore, folder: &File, repeats: bool) -> Runner {
    Runner::new(model()).store(store).brain(desk(folder.to_owned(), repeats))
}

fn id() -> RunId {
    RunId::new("run")
}

/// Writes a line for every event.
struct Says;

impl EventSink for Says {
    fn name(&self) -> &'static str {
        "says"
    }

    fn event<'a>(&'a self, _: &'a RunId, event: &'a Arc<Event>) -> BoxFuture<'a, Result<(), SinkError>> {
        println!("event {}", event.seq);
        Box::pin(std::future::ready(Ok(())))
    }
}

#[tokio::test]
#[ignore = "the process that is killed"]
async fn worker_process() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    let repeats = std::env::var_os(REPEATS).is_some();
    let store = SqliteStore::open(folder.join("runs.db")).unwrap();
    let runner = runner(store, &folder, repeats).sink(Says);
    let run: RunHandle<Value> = match runner.resume(&id()).await {
        Ok(run) => run,
        Err(positronic_core::runner::ResumeError::Store(_)) => {
            let start = Start { id: Some(SignalId::new("run")), ..Start::default() };
            let definition = positronic_core::dsl::IntoBrain::definition(&desk(folder.clone(), repeats));
            runner.start_definition(definition, Value::Null, start).await.unwrap()
        }
        Err(positronic_core::runner::ResumeError::Over { .. }) => return println!("over"),
        Err(error) => panic!("{error}"),
    };
    // The test reads its lines, so a hanging process would block it forever.
    tokio::time::timeout(Duration::from_secs(60), drive(&run)).await.expect("the run hangs");
    println!("over");
}

/// Starts the process and kills it after `lines` lines. Returns `false` if the run was already over.
fn killed(folder: &File, repeats: bool, lines: usize) -> bool {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "worker_process", "--ignored", "--nocapture", "--test-threads=1"]).env(FOLDER, folder);
    if repeats {
        command.env(REPEATS, "1");
    }
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut said = 0;
    let mut over = false;
    for line in BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok) {
        over |= line.contains("over");
        said += usize::from(line.contains("event "));
        if over || said >= lines {
            break;
        }
    }
    // SIGKILL on Unix.
    child.kill().unwrap();
    let status = child.wait().unwrap();
    assert!(over || said >= lines, "the process exited after {said} events: {status}");
    !over
}

struct Ended {
    events: usize,
    transcript: String,
    state: Value,
    calls: BTreeMap<Path, ToolOutput>,
    effects: Vec<String>,
}

async fn ended(store: &dyn EventStore, folder: &File) -> Ended {
    let events = store.read(&id(), Seq(0), usize::MAX).await.unwrap();
    let state = positronic_core::machine::RunState::replay(events.iter().map(|event| &**event)).unwrap();
    assert!(state.has_ended());
    let timeline = Timeline::of(events.iter().map(|event| &**event));
    let prompts = Prompts::of(events.iter().map(|event| &**event));
    let calls = prompts.iter().flat_map(|prompt| &prompt.output).filter_map(|output| match &output.kind {
        OutputKind::Tool(tool) => Some((tool.path.clone(), (**tool).clone())),
        _ => None,
    });
    let effects = std::fs::read_to_string(folder.join("effects")).unwrap();
    Ended {
        events: events.len(),
        transcript: transcript(&timeline),
        state: Value::clone(&state.root.as_ref().unwrap().state),
        calls: calls.collect(),
        effects: effects.lines().map(str::to_owned).collect(),
    }
}

async fn undisturbed() -> Ended {
    let (store, folder) = (MemoryStore::new(), tempfile::tempdir().unwrap());
    let runner = runner(store.clone(), folder.path(), true);
    let start = Start { id: Some(SignalId::new("run")), ..Start::default() };
    let run = runner.start_with(&desk(folder.path().to_owned(), true), (), start).await.unwrap();
    drive(&run).await;
    ended(&store, folder.path()).await
}

/// Kills a run's process repeatedly, each time after a few more events, until the run is over.
async fn through_kills(repeats: bool, chance: &mut u64) -> (usize, Ended) {
    let folder = tempfile::tempdir().unwrap();
    let mut kills = 0;
    loop {
        *chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let lines = 1 + usize::try_from(*chance >> 33).unwrap() % 20;
        if !killed(folder.path(), repeats, lines) {
            break;
        }
        kills += 1;
        assert!(kills < 1000, "the run gets no further");
    }
    let store = SqliteStore::open(folder.path().join("runs.db")).unwrap();
    (kills, ended(&store, folder.path()).await)
}

#[tokio::test]
async fn promise_14_process_killed_at_random_moments_loses_nothing() {
    let baseline = undisturbed().await;
    assert!(baseline.events > 256, "{} events make no snapshot", baseline.events);
    let (mut kills, mut chance, mut interrupted) = (0, 7, 0);
    for iteration in 0.. {
        if kills >= KILLS {
            break;
        }
        let repeats = iteration % 2 == 0;
        let (more, end) = through_kills(repeats, &mut chance).await;
        kills += more;
        let (did, should): (BTreeSet<_>, BTreeSet<_>) =
            (end.effects.iter().collect(), baseline.effects.iter().collect());
        if repeats {
            assert_eq!((&end.transcript, &end.state["ticket"]), (&baseline.transcript, &baseline.state["ticket"]));
            assert_eq!(sorted(&end.state), sorted(&baseline.state));
            assert_eq!(did, should, "every effect happened, under its own key");
            continue;
        }
        assert!(did.is_subset(&should));
        let jobs = || end.effects.iter().filter(|effect| *effect != "ticket");
        assert_eq!(jobs().count(), jobs().collect::<BTreeSet<_>>().len(), "none of these calls ran twice");
        for (path, call) in &end.calls {
            if matches!(call.result, Some(ToolResult::Interrupted { .. })) {
                interrupted += 1;
            } else {
                // The undisturbed run had idempotent tools, and decisions at other times.
                let timeless = |call: &ToolOutput| {
                    let (approval, flags) = (None, CallFlags::default());
                    ToolOutput { approval, flags, answer: None, ..call.clone() }
                };
                assert_eq!(timeless(call), timeless(&baseline.calls[path]));
            }
        }
    }
    println!("{kills} kills, {interrupted} calls whose outcome is unknown");
}

/// Concurrent tools end in any order.
fn sorted(state: &Value) -> BTreeSet<String> {
    state["done"].as_array().unwrap().iter().map(Value::to_string).collect()
}
