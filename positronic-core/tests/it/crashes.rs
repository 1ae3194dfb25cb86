//! Code that repeatedly kills its process: it fails after a number of attempts, and the run continues or ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::StreamExt as _;
use positronic_core::dsl::{Plugin, PluginState, Preparation, Runnable};
use positronic_core::machine::{Effect, MAX_CRASHES, RunState, next, why};
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{
    Actor, EndReason, Epoch, Event, EventKind, ModelRequest, Path, RunId, Seq, Status, ToolResult,
};
use positronic_core::runner::{Retried, RetryError, RunHandle, Server, Settled};
use positronic_core::store::MemoryStore;
use positronic_core::store::prelude::*;
use positronic_core::testing::{CountedIds, Lockstep as _, Story, Test, TestClock};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::crash::undisturbed;
use crate::support::checks::check_log;
use crate::support::{Board, Job, Journal, ShopBuilder, batch, done, settled, worker, workshop};

fn runner(store: MemoryStore, model: ScriptedModel) -> Runner {
    Runner::new(model)
        .store(store)
        .clock(TestClock::default())
        .ids(CountedIds::default())
        .lockstep(true)
        .linger(Duration::MAX)
}

/// Returns a log whose run was claimed `n` more times by workers that died.
fn crashed(log: &[Arc<Event>], crashes: u64) -> Vec<Arc<Event>> {
    let mut log = log.to_vec();
    let last = log.last().unwrap().clone();
    let epoch = log.iter().filter_map(|event| event.epoch).max().unwrap();
    for n in 1..=crashes {
        let kind = EventKind::RunClaimed { owner: "a worker that died".to_owned(), trace: None };
        let (seq, epoch) = (Seq(last.seq.0 + n), Some(Epoch(epoch.0 + n)));
        log.push(Arc::new(Event { seq, at: last.at, epoch, clock: None, with_next: false, path: Path::root(), kind }));
    }
    log
}

/// Resumes the run of this log in a new process.
async fn recovered(
    brain: &impl Runnable<Options = (), Result = Board>,
    model: ScriptedModel,
    log: &[Arc<Event>],
) -> (RunHandle<Value>, Story) {
    let again = runner(MemoryStore::new(), model).brain(brain);
    again.client().import(&RunId::new("run-1"), log).await.unwrap();
    let run = again.resume(&RunId::new("run-1")).await.unwrap();
    settled(&run).await;
    let story = Story::of(&run).await;
    check_log(&story, &run.state());
    (run, story)
}

/// Runs processes in sequence, each of which ends at the next journal entry, until one ends the run.
fn processes(
    brain: &impl Runnable<Options = (), Result = Board>,
    journal: &Journal,
    model: fn() -> ScriptedModel,
) -> (Vec<Arc<Event>>, usize) {
    let store = MemoryStore::new();
    for process in 1..100 {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        let log = runtime.block_on(async {
            let worker = runner(store.clone(), model()).brain(brain);
            let settled = async {
                let run = match process {
                    1 => worker
                        .start_definition(
                            positronic_core::dsl::IntoBrain::definition(brain),
                            json!(null),
                            Default::default(),
                        )
                        .await
                        .unwrap(),
                    _ => worker.resume(&RunId::new("run-1")).await.unwrap(),
                };
                _ = run.settled().await;
                run
            };
            let run = tokio::select! {
                run = settled => run,
                () = async { while journal.take().is_empty() { tokio::task::yield_now().await } } => return None,
            };
            Some(store.read(run.id(), Seq(0), usize::MAX).await.unwrap())
        });
        if let Some(log) = log {
            return (log, process);
        }
    }
    panic!("the run never ends")
}

fn deadly(journal: &Journal, flags: fn(ShopBuilder) -> ShopBuilder) -> Brain<(), Board> {
    workshop(journal, move |config| {
        config.tool("deadly", |t| {
            flags(t).description("Ends its process").execute(async |_: NoArgs, cx| {
                cx.services.note("it runs");
                std::future::pending::<Result<()>>().await
            })
        })
    })
}

fn asks_for_it() -> ScriptedModel {
    ScriptedModel::from_fn(|request: &ModelRequest| match request.path.as_str() {
        "Work/0" => Reply::call("deadly", json!({})),
        _ => done(),
    })
}

fn attempts(log: &[Arc<Event>]) -> Vec<u32> {
    let attempt = |event: &Arc<Event>| match &event.kind {
        EventKind::LoopToolStart { attempt, .. } | EventKind::StepStart { attempt } => Some(*attempt),
        _ => None,
    };
    log.iter().filter_map(attempt).collect()
}

fn interruption(log: &[Arc<Event>]) -> &str {
    let reason = |event: &'_ Arc<Event>| matches!(&event.kind, EventKind::LoopToolResult { .. });
    match &log.iter().find(|event| reason(event)).unwrap().kind {
        EventKind::LoopToolResult { result: ToolResult::Interrupted { reason }, .. } => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn tool_that_kills_its_process_is_interrupted_after_its_retries() {
    let journal = Journal::default();

    let (log, processes) = processes(&deadly(&journal, ShopBuilder::idempotent), &journal, asks_for_it);

    assert_eq!(attempts(&log), [0, 1, 2, 3], "every crash is an attempt");
    assert_eq!(processes, 5);
    let reason = "the process ended 4 times while the tool ran, so it is not started again; whether it had its effect is unknown";
    assert_eq!(interruption(&log), reason);
    assert_eq!(log.last().unwrap().kind.name(), "BRAIN_COMPLETE", "the model continues without it");
}

#[test]
fn tool_without_retries_is_not_restarted_after_a_crash() {
    let journal = Journal::default();

    let (log, _) = processes(&deadly(&journal, |t| t.read_only().retries(0)), &journal, asks_for_it);

    assert_eq!(attempts(&log), [0]);
    assert!(interruption(&log).starts_with("the process ended once while the tool ran"));
}

fn deadly_step(journal: &Journal) -> Brain<(), Board> {
    let steps = brain("Steps").services::<Journal>().state(Board::default());
    let steps = steps.step("Deadly", async |cx| {
        cx.services.note("it runs");
        std::future::pending().await
    });
    steps.bind(journal.clone())
}

fn parked(log: &[Arc<Event>]) -> &str {
    assert_eq!(log.last().unwrap().kind.name(), "RUN_RELEASED", "no worker keeps it");
    match &log[log.len() - 2].kind {
        EventKind::BrainPaused { failure: Some(failure), .. } => {
            assert_eq!(failure.code, EndReason::Crash);
            &failure.message
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn step_that_kills_its_process_is_parked_at_the_limit() {
    let journal = Journal::default();

    let (log, processes) = processes(&deadly_step(&journal), &journal, asks_for_it);

    let limit = usize::try_from(MAX_CRASHES).unwrap();
    assert_eq!((attempts(&log).len(), processes), (limit, limit + 1));
    assert_eq!(parked(&log), "the process ended 10 times in a row during `Deadly`");
    let state = RunState::replay(log.iter().map(|event| &**event)).unwrap();
    let why = why(&state).unwrap();
    assert_eq!(
        why.sentence,
        "The run is parked since event 22: the process ended 10 times in a row during `Deadly`. Fix the cause, then retry the run."
    );
}

/// A plugin that kills every process that restores its loop.
#[derive(Clone)]
struct DeadlyRestore(Journal, Arc<AtomicBool>);

#[derive(Default, Serialize, Deserialize, JsonSchema)]
struct Nothing {}

impl PluginState for Nothing {
    const NAME: &'static str = "deadly";
}

impl Plugin<(), Board, Journal> for DeadlyRestore {
    type State = Nothing;

    fn initial(&self) -> Nothing {
        Nothing::default()
    }

    async fn prepare(&self, _: &mut Preparation<'_, (), Board, Journal, Nothing>) -> Result<()> {
        if self.1.swap(true, Ordering::Relaxed) {
            self.0.note("it restores");
            std::future::pending::<()>().await;
        }
        Ok(())
    }
}

#[test]
fn crashes_during_the_restore_of_a_run_park_it() {
    type Flags = fn(ShopBuilder) -> ShopBuilder;
    let flags: [(Flags, _, _); 2] = [
        (ShopBuilder::idempotent, 1, "a call of `deadly` in `Work`"),
        // The interrupted call is over with the first crash.
        (|t| t, 2, "`Work`"),
    ];
    for (flags, more, work) in flags {
        let journal = Journal::default();
        let plugin = DeadlyRestore(journal.clone(), Arc::default());
        let brain = workshop(&journal, move |config| {
            config.plugin(plugin.clone()).tool("deadly", |t| {
                flags(t).description("Ends its process").execute(async |_: NoArgs, cx| {
                    cx.services.note("it runs");
                    std::future::pending::<Result<()>>().await
                })
            })
        });

        let (log, processes) = processes(&brain, &journal, asks_for_it);

        assert_eq!(processes, usize::try_from(MAX_CRASHES).unwrap() + more, "{work}");
        assert_eq!(parked(&log), format!("the process ended 10 times in a row during {work}"));
    }
}

/// Calls the deadly tool again and again, beside one that works.
fn insists() -> ScriptedModel {
    ScriptedModel::from_fn(|_: &ModelRequest| batch([("safe", "a"), ("deadly", "b")]))
}

#[test]
fn events_that_a_crash_causes_do_not_end_its_count() {
    let journal = Journal::default();
    let brain = workshop(&journal, |config| {
        config.tool("safe", |t| t.read_only().description("Works").execute(async |_: Job, _| Ok("done"))).tool(
            "deadly",
            |t| {
                t.description("Ends its process").execute(async |_: Job, cx| {
                    cx.services.note("it runs");
                    std::future::pending::<Result<()>>().await
                })
            },
        )
    });

    let (log, processes) = processes(&brain, &journal, insists);

    let limit = usize::try_from(MAX_CRASHES).unwrap();
    assert_eq!(processes, limit + 1, "each call is interrupted at once, and the model asks for another one");
    assert_eq!(parked(&log), "the process ended 10 times in a row during a call of `deadly` in `Work`");
    assert_eq!(log.iter().filter(|event| event.kind.name() == "LOOP_MODEL_RESULT").count(), limit + 1);
}

#[tokio::test(start_paused = true)]
async fn retry_continues_a_parked_run_and_counts_from_zero() {
    let journal = Journal::default();
    let store = MemoryStore::new();
    let log = tokio::task::spawn_blocking({
        let (brain, journal) = (deadly_step(&journal), journal.clone());
        move || processes(&brain, &journal, asks_for_it).0
    });
    let log = log.await.unwrap();
    let mended = brain("Steps").services::<Journal>().state(Board::default()).step("Deadly", async |cx| Ok(cx.state));
    let again = runner(store, asks_for_it()).brain(mended.bind(journal));
    let (client, run) = (again.client(), RunId::new("run-1"));
    client.import(&run, &log).await.unwrap();
    let row = client.store().run(&run).await.unwrap();
    assert!(row.parked && row.status == Status::Paused);
    let served: Vec<_> = Server::new(client.clone(), again.clone()).once(true).events().collect().await;
    assert!(served.is_empty(), "no server claims it: {served:?}");

    let retried = client.retry(&run, Actor::default()).await.unwrap();

    let Retried::Resumed(_) = retried else { panic!("{retried:?}") };
    let row = client.store().run(&run).await.unwrap();
    assert!(!row.parked && row.crashes.is_none(), "{row:?}");
    let resumed = again.resume(&run).await.unwrap();
    assert!(matches!(settled(&resumed).await, Settled::Completed(_)));
    assert!(matches!(client.retry(&run, Actor::default()).await, Err(RetryError::NotFailed { .. })));
}

#[tokio::test(start_paused = true)]
async fn run_that_always_crashes_is_parked_exactly_at_the_limit() {
    let journal = Journal::default();
    let shop = workshop(&journal, |config| {
        config.tools([worker("safe", ShopBuilder::idempotent), worker("alone", |t| t.idempotent().sequential())])
    });
    let model = || {
        ScriptedModel::from_fn(|request: &ModelRequest| match request.path.as_str() {
            "Work/0" => batch([("safe", "a"), ("alone", "b")]),
            _ => done(),
        })
    };
    let (baseline, boundaries) = undisturbed(&shop, model()).await;
    let mut at_limit = 0;
    for until in boundaries {
        let prefix = &baseline.log()[..until];

        // The claim of the continuing worker is the last crash.
        let (_, below) = recovered(&shop, model(), &crashed(prefix, u64::from(MAX_CRASHES) - 2)).await;
        let (_, at) = recovered(&shop, model(), &crashed(prefix, u64::from(MAX_CRASHES) - 1)).await;

        assert!(matches!(below.settled(), Settled::Completed(_)), "{until}: {:?}", below.settled());
        match at.settled() {
            Settled::Paused => at_limit += 1,
            // Its next effect follows from the log alone and calls no code.
            other => assert!(matches!(other, Settled::Completed(_)), "{until}: {other:?}"),
        }
    }
    assert!(at_limit > 3, "{at_limit}");
}

#[tokio::test(start_paused = true)]
async fn calls_of_a_suspect_run_one_at_a_time() {
    let journal = Journal::default();
    let shop = workshop(&journal, |config| config.tools([worker("safe", ShopBuilder::idempotent)]));
    let model = ScriptedModel::from_fn(|request: &ModelRequest| match request.path.as_str() {
        "Work/0" => batch([("safe", "a"), ("safe", "b"), ("safe", "c")]),
        _ => done(),
    });
    let (baseline, _) = undisturbed(&shop, model).await;
    let started = baseline.log().iter().rposition(|event| event.kind.name() == "LOOP_TOOL_START").unwrap();

    for (crashes, calls) in [(1, 3), (2, 1)] {
        let log = crashed(&baseline.log()[..=started], crashes);
        let state = RunState::replay(log.iter().map(|event| &**event)).unwrap();

        let effects = next(&state, state.at).effects;

        assert_eq!(effects.iter().filter(|effect| matches!(effect, Effect::Execute { .. })).count(), calls);
        assert_eq!(state.crashes().unwrap().count, u32::try_from(crashes).unwrap(), "once for all calls of a tool");
    }
}

#[tokio::test(start_paused = true)]
async fn panicking_configuration_ends_the_run_equally_before_and_after_a_restart() {
    let journal = Journal::default();
    let panics = Arc::new(AtomicBool::new(false));
    let inner = Arc::clone(&panics);
    let shop = workshop(&journal, move |config| {
        assert!(!inner.load(Ordering::Relaxed), "no such table");
        config.tools([worker("safe", ShopBuilder::idempotent)])
    });
    let model = || {
        ScriptedModel::from_fn(|request: &ModelRequest| match request.path.as_str() {
            "Work/0" => batch([("safe", "a")]),
            _ => done(),
        })
    };
    let (baseline, boundaries) = undisturbed(&shop, model()).await;
    panics.store(true, Ordering::Relaxed);
    let before = Test::with(runner(MemoryStore::new(), model())).run(&shop, ()).await;
    let Settled::Failed(expected) = before.settled() else { panic!("{:?}", before.settled()) };
    let ended = baseline.log().iter().position(|event| event.kind.name() == "LOOP_COMPLETE").unwrap();

    for until in boundaries.into_iter().filter(|until| *until <= ended) {
        let (_, after) = recovered(&shop, model(), &baseline.log()[..until]).await;

        assert_eq!(*after.settled(), Settled::Failed(expected.clone()), "{until}");
    }
}
