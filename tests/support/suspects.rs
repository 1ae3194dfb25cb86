//! A run that ends its process, and runs beside it that do not. Each test program with it starts itself again as that process.

use std::path::{Path as File, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use positronic_core::dsl::{Options, Plugin, PluginState, Preparation, Services, State};
use positronic_core::machine::MAX_CRASHES;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{EventKind, ModelRequest, RunId, Seq, SignalId, Start, Status, ToolResult};
use positronic_core::store::{EventStore, RunFilter};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Where the store is, where the culprit ends the process, and how long the work of the others takes.
const STORE: &str = "POSITRONIC_TEST_STORE";
const PLACE: &str = "POSITRONIC_TEST_PLACE";
const WORK: &str = "POSITRONIC_TEST_WORK";
/// How long the culprit works before it ends the process.
const FUSE: Duration = Duration::from_millis(150);
const INNOCENTS: usize = 6;

async fn explode() {
    tokio::time::sleep(FUSE).await;
    std::process::abort();
}

#[derive(Default, Serialize, Deserialize, JsonSchema)]
struct Nothing {}

impl PluginState for Nothing {
    const NAME: &'static str = "deadly";
}

struct Deadly;

impl<O: Options, S: State, V: Services> Plugin<O, S, V> for Deadly {
    type State = Nothing;

    fn initial(&self) -> Nothing {
        Nothing::default()
    }

    async fn prepare(&self, _: &mut Preparation<'_, O, S, V, Nothing>) -> Result<()> {
        explode().await;
        Ok(())
    }
}

/// Whether this process has begun the culprit.
static BEGUN: AtomicBool = AtomicBool::new(false);

/// A plugin that ends a process that restores its loop.
struct DeadlyRestore;

impl<O: Options, S: State, V: Services> Plugin<O, S, V> for DeadlyRestore {
    type State = Nothing;

    fn initial(&self) -> Nothing {
        Nothing::default()
    }

    async fn prepare(&self, _: &mut Preparation<'_, O, S, V, Nothing>) -> Result<()> {
        if !BEGUN.load(Ordering::SeqCst) {
            explode().await;
        }
        Ok(())
    }
}

/// A loop whose tool ends the process and may not run twice; the model calls it again after each interruption.
fn caller(title: &str) -> Brain<(), u32> {
    brain(title)
        .state(0_u32)
        .r#loop("Call", |cx| {
            cx.system("Call.").input("begin").tool("deadly", |t| {
                t.description("Ends the process").execute(async |_: NoArgs, _| {
                    explode().await;
                    Ok("never")
                })
            })
        })
        .build()
}

fn culprit(place: &str) -> Brain<(), u32> {
    match place {
        "step" => brain("Culprit")
            .state(0_u32)
            .step("Die", async |cx| {
                explode().await;
                Ok(cx.state)
            })
            .build(),
        "call" => caller("Culprit"),
        "nested call" => brain("Culprit")
            .state(0_u32)
            .r#loop("Delegate", |cx| cx.system("Delegate.").input("begin").brain("delegate", caller("Inner")))
            .build(),
        "plugin" => brain("Culprit")
            .state(0_u32)
            .r#loop("Plugged", |cx| cx.system("Talk.").input("begin").plugin(Deadly))
            .build(),
        "restore" => brain("Culprit")
            .state(0_u32)
            .step("Begin", async |cx| {
                BEGUN.store(true, Ordering::SeqCst);
                Ok(cx.state)
            })
            .r#loop("Call", |cx| {
                cx.system("Call.").input("begin").plugin(DeadlyRestore).tool("deadly", |t| {
                    t.idempotent().description("Ends the process").execute(async |_: NoArgs, _| {
                        explode().await;
                        Ok("never")
                    })
                })
            })
            .build(),
        other => panic!("{other}"),
    }
}

/// Works once in a step and once in a tool that may run again.
fn innocent(work: Duration) -> Brain<(), u32> {
    brain("Innocent")
        .state(0_u32)
        .step("Work", move |cx| async move {
            tokio::time::sleep(work).await;
            Ok(cx.state + 1)
        })
        .r#loop("Talk", move |cx| {
            cx.system("Work.").input("begin").tool("work", |t| {
                t.idempotent().description("Works").execute(move |_: NoArgs, cx: ToolContext<(), u32>| async move {
                    tokio::time::sleep(work).await;
                    Ok(cx.result("worked").update(|done| *done += 1))
                })
            })
        })
        .build()
}

fn model() -> ScriptedModel {
    ScriptedModel::from_fn(|request: &ModelRequest| match request.path.as_str() {
        "Talk/0" => Reply::call("work", json!({})),
        "Talk/1" => Reply::text("Done."),
        path if path.starts_with("Delegate/") && !path.contains("Call") => Reply::call("delegate", json!({})),
        path if path.contains("Call") => Reply::call("deadly", json!({})),
        _ => Reply::text("Well."),
    })
}

fn runner(store: impl EventStore, place: &str, work: Duration) -> Runner {
    Runner::new(model()).store(store).brain(culprit(place)).brain(innocent(work))
}

/// Returns where the store of this process is; `None` in the test's own process.
pub(crate) fn store() -> Option<PathBuf> {
    std::env::var_os(STORE).map(PathBuf::from)
}

/// Serves the runs of a store until each has ended or is parked.
pub(crate) async fn serve(store: impl EventStore) {
    let given = |name: &str| std::env::var_os(name).and_then(|value| value.into_string().ok()).unwrap();
    let work = Duration::from_millis(given(WORK).parse().unwrap());
    let runner = runner(store, &given(PLACE), work);
    let client = runner.client();
    let _service = runner.serve();
    let over = async {
        loop {
            let rows = client.store().runs(&RunFilter::default()).await.unwrap();
            if rows.iter().all(|row| row.parked || row.status.is_over()) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(100), over).await.unwrap();
    runner.release().await;
}

/// Starts the culprit among innocent runs, in no process yet.
pub(crate) async fn submit(store: impl EventStore, place: &str, work: Duration) {
    let submits = runner(store, place, work).submit_only();
    for n in 0..=INNOCENTS {
        let start = Start { id: Some(SignalId::new(format!("run-{n}"))), ..Start::default() };
        if n == INNOCENTS / 2 {
            submits.start_with(&culprit(place), (), start).await.unwrap();
        } else {
            submits.start_with(&innocent(work), (), start).await.unwrap();
        }
    }
}

/// Restarts the process, which is the ignored test `process`, until all runs have ended or are parked, and returns how often it
/// ended before.
pub(crate) fn deaths(process: &str, store: &File, place: &str, work: Duration) -> u32 {
    for deaths in 0..100 {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", process, "--ignored", "--nocapture", "--test-threads=1"]);
        command.env(STORE, store).env(PLACE, place).env(WORK, work.as_millis().to_string());
        let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
        if status.success() {
            return deaths;
        }
        assert_eq!(status.code(), None, "it ends by a signal");
    }
    panic!("the process ends without end")
}

/// Checks that all innocent runs completed with all their calls, and that the culprit was parked after `deaths`.
pub(crate) async fn check(store: &dyn EventStore, place: &str, work: Duration, deaths: u32) {
    for row in store.runs(&RunFilter::default()).await.unwrap() {
        let log = store.read(&row.run, Seq(0), usize::MAX).await.unwrap();
        if *row.brain == *"Innocent" {
            assert_eq!(row.status, Status::Completed, "{place}, {work:?}: {} {:?}", row.run, row.why);
            let is_lost = |kind: &EventKind| {
                matches!(kind, EventKind::LoopToolResult { result: ToolResult::Interrupted { .. }, .. })
            };
            assert!(!log.iter().any(|event| is_lost(&event.kind)), "{place}, {work:?}: a call of {} is lost", row.run);
        } else {
            assert!(row.parked, "{place}, {work:?}: {row:?}");
        }
    }
    assert_eq!(deaths, MAX_CRASHES, "{place}, {work:?}");
    let culprit = RunId::new(format!("run-{}", INNOCENTS / 2));
    let crashes = store.run(&culprit).await.unwrap().crashes.unwrap();
    assert_eq!(crashes.count, MAX_CRASHES);
}
