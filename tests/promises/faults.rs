//! A failing store: the run stops cleanly, the log stays valid, and another worker continues. Promises 3 and 14.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use positronic_core::machine::RunState;
use positronic_core::model::scripted::Reply;
use positronic_core::prelude::*;
use positronic_core::record::{EventKind, RunId, Seq, SignalId, Status};
use positronic_core::runner::{Ids, ResumeError, RunHandle, Settled};
use positronic_core::store::prelude::*;
use positronic_core::store::{MemoryStore, StoreError};
use positronic_store_suite::{Fault, FaultyStore};
use serde_json::json;

use crate::bench::{Bench, by, named, run_id};
use crate::support::boundaries::OwnIds;
use crate::support::{Board, Journal, ShopBuilder, batch, done, path, slow_batch, waits, worker, workshop};

fn says(place: &str) -> Reply {
    match place {
        "Work/0" => slow_batch([("read", "a", 5), ("same", "b", 1), ("gated", "c", 0)]),
        "Work/1" => batch([("same", "d")]),
        _ => done(),
    }
}

/// A workshop whose tools are all repeatable.
fn shop(journal: &Journal) -> Brain<(), Board> {
    workshop(journal, |config| {
        config.tools([
            worker("read", ShopBuilder::read_only),
            worker("same", ShopBuilder::idempotent),
            worker("gated", |t| t.idempotent().requires_approval("sure?")),
        ])
    })
}

type Faulty = FaultyStore<MemoryStore>;

/// Creates a bench whose store fails at append number `at`, counted from 0, until it is repaired.
fn faulty(at: u64, fault: &Fault, for_ever: bool) -> (Bench<Faulty>, MemoryStore, Arc<AtomicBool>, Arc<AtomicU64>) {
    let (memory, mended, appends) = (MemoryStore::new(), Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
    let (is_mended, counted, fault) = (Arc::clone(&mended), Arc::clone(&appends), fault.clone());
    let store = FaultyStore::new(memory.clone(), move |_, _| {
        let append = counted.fetch_add(1, Ordering::SeqCst);
        let hit = append == at || (for_ever && append > at);
        (hit && !is_mended.load(Ordering::SeqCst)).then(|| fault.clone())
    });
    (Bench::on(store), memory, mended, appends)
}

fn full() -> StoreError {
    StoreError::Failed { message: "the disk is full".to_owned() }
}

/// Approves pending calls until the run has ended or stopped.
async fn drive<R>(bench: &Bench<Faulty>, run: &RunHandle<R>) -> Settled {
    for _ in 0..100 {
        match crate::support::settled(run).await {
            Settled::Waiting(pending) => {
                // The decider retries with the same id until there is an answer.
                let id = format!("decide {}", pending[0].call);
                let kind =
                    positronic_core::record::SignalKind::Approve { call: pending[0].call.clone(), arguments: None };
                let signal = crate::bench::signal(&id, kind);
                if run.send(signal.clone()).await.is_err()
                    && bench.client("again").send(run.id(), signal).await.is_err()
                {
                    return Settled::Stopped(full().into());
                }
            }
            settled => return settled,
        }
    }
    panic!("the run goes round and round: {:?}", run.state())
}

async fn appends_of_an_undisturbed_run() -> (u64, String) {
    let (bench, _, _, appends) = faulty(u64::MAX, &Fault::Slow(Duration::ZERO), false);
    let process = bench.process("only", says);
    let run = bench.start(&process, &shop(&Journal::default())).await;
    assert!(matches!(drive(&bench, &run).await, Settled::Completed(_)));
    (appends.load(Ordering::SeqCst), bench.transcript().await)
}

#[tokio::test(start_paused = true)]
async fn promise_14_store_failure_at_any_append_stops_the_run_cleanly_and_another_worker_continues() {
    let (appends, transcript) = appends_of_an_undisturbed_run().await;
    assert!(appends > 10, "{appends}");
    for (fault, for_ever) in [
        (Fault::Refused(full()), false),
        (Fault::Refused(full()), true),
        (Fault::Unanswered(full()), false),
        (Fault::Unanswered(full()), true),
    ] {
        for at in 1..appends {
            let journal = Journal::default();
            let brain = shop(&journal);
            let (bench, memory, mended, _) = faulty(at, &fault, for_ever);
            let process = bench.process("first", says).brain(brain.clone());
            let run = bench.start(&process, &brain).await;
            let settled = drive(&bench, &run).await;
            let about = format!("{fault:?} at {at}, for ever: {for_ever}: {settled:?}");
            // The stored prefix can be folded and contains nothing wrong.
            let log = memory.read(&run_id(), Seq(0), usize::MAX).await.unwrap();
            let state = RunState::replay(log.iter().map(|event| &**event)).unwrap();
            crate::support::checks::check_order(&log, state.has_ended());
            mended.store(true, Ordering::SeqCst);
            if !state.has_ended() {
                let failed = Settled::Stopped(ResumeError::Store(full()));
                assert_eq!(settled, failed, "{about}");
                drop(run);
                let again = process.resume(&run_id()).await;
                let run = again.unwrap_or_else(|error| panic!("{error}: {about}"));
                let settled = drive(&bench, &run).await;
                assert!(matches!(settled, Settled::Completed(_)), "{settled:?}: {about}");
            }

            let log = bench.checked().await;
            assert_eq!(bench.transcript().await, transcript, "{about}");
            for tool in ["LOOP_TOOL_CALL", "LOOP_TOOL_RESULT"] {
                assert_eq!(named(&log, tool).len(), 4, "{about}");
            }
            assert_eq!(named(&log, "LOOP_APPROVAL_DECIDED").len(), 1, "{about}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn promise_03_lost_store_acknowledgement_repeats_no_recorded_effect() {
    let (appends, _) = appends_of_an_undisturbed_run().await;
    for at in 1..appends {
        let journal = Journal::default();
        let brain = shop(&journal);
        let (bench, memory, mended, _) = faulty(at, &Fault::Unanswered(full()), false);
        let process = bench.process("first", says).brain(brain.clone());
        let run = bench.start(&process, &brain).await;
        drive(&bench, &run).await;
        mended.store(true, Ordering::SeqCst);
        let written = memory.read(&run_id(), Seq(0), usize::MAX).await.unwrap();
        let recorded: Vec<_> = named(&written, "LOOP_TOOL_RESULT");
        journal.take();
        if let Ok(run) = process.resume(&run_id()).await {
            drive(&bench, &run).await;
        }
        let again = journal.take();
        for (call, id) in [("Work/0.0", "a"), ("Work/0.1", "b"), ("Work/0.2", "c"), ("Work/1.0", "d")] {
            let did = recorded.iter().any(|known| known == call) && again.iter().any(|what| what == id);
            assert!(!did, "{call} runs again, after a fault at {at}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn promise_14_slow_store_delays_a_run_and_changes_nothing() {
    let (appends, transcript) = appends_of_an_undisturbed_run().await;
    let journal = Journal::default();
    let store =
        FaultyStore::new(MemoryStore::new(), |_, append| Some(Fault::Slow(Duration::from_secs(append.expected.0 % 7))));
    let bench = Bench::on(store);
    let process = bench.process("work", says);
    let run = bench.start(&process, &shop(&journal)).await;
    assert!(matches!(drive(&bench, &run).await, Settled::Completed(_)));

    assert_eq!(bench.transcript().await, transcript);
    assert_eq!(run.document(), json!({"done": ["a", "b", "c", "d"]}));
    assert!(appends > 0);
    bench.checked().await;
}

#[tokio::test(start_paused = true)]
async fn promise_01_unstorable_decision_is_refused() {
    let journal = Journal::default();
    let broken = Arc::new(AtomicBool::new(false));
    let is_broken = Arc::clone(&broken);
    let store = FaultyStore::new(MemoryStore::new(), move |_, _| {
        is_broken.load(Ordering::SeqCst).then(|| Fault::Refused(full()))
    });
    let bench = Bench::on(store);
    let process = bench.process("work", says);
    let run = bench.start(&process, &shop(&journal)).await;
    assert_eq!(waits(&run).await, ["Work/0.2"]);
    let before = bench.log().await;
    broken.store(true, Ordering::SeqCst);

    let client = bench.client("people");
    assert!(client.approve(&run_id(), &path("Work/0.2"), by("ann")).await.is_err());

    assert_eq!(bench.log().await, before);
    assert_eq!(waits(&run).await, ["Work/0.2"]);
    broken.store(false, Ordering::SeqCst);
    client.reject(&run_id(), &path("Work/0.2"), "no", by("bob")).await.unwrap();
    assert!(matches!(bench.settled(&run).await, Settled::Completed(_)));
}

/// A bench whose store fails from the start of the first tools until it is repaired.
fn unusable() -> (Bench<Faulty>, Arc<AtomicBool>) {
    let broken = Arc::<AtomicBool>::default();
    let (is_broken, begun) = (Arc::clone(&broken), AtomicBool::new(false));
    let store = FaultyStore::new(MemoryStore::new(), move |_, append| {
        let starts = append.events.iter().any(|event| matches!(event.kind, EventKind::LoopToolStart { .. }));
        if starts && !begun.swap(true, Ordering::SeqCst) {
            is_broken.store(true, Ordering::SeqCst);
        }
        let gone = StoreError::Unusable { message: "the disk is gone".to_owned() };
        is_broken.load(Ordering::SeqCst).then_some(Fault::Refused(gone))
    });
    (Bench::on(store), broken)
}

#[tokio::test(start_paused = true)]
async fn promise_14_signal_after_a_store_failure_is_admitted() {
    let (bench, broken) = unusable();
    let process = bench.process("work", says);
    let run = bench.start(&process, &shop(&Journal::default())).await;
    assert!(matches!(crate::support::settled(&run).await, Settled::Stopped(_)));

    broken.store(false, Ordering::SeqCst);
    let paused = tokio::time::Instant::now();
    run.pause().await.unwrap();

    assert_eq!(crate::support::settled(&run).await, Settled::Paused);
    assert!(paused.elapsed() < Duration::from_millis(100), "the signal rang, and not the end of the run's rest");
    let claim = bench.store.run(&run_id()).await.unwrap().claim.unwrap();
    assert!(claim.released, "no worker has claimed it");
    run.resume().await.unwrap();
    assert!(matches!(drive(&bench, &run).await, Settled::Completed(_)));
    bench.checked().await;
}

#[tokio::test(start_paused = true)]
async fn promise_14_run_continues_by_itself_when_the_store_recovers() {
    let (bench, broken) = unusable();
    let process = bench.process("work", says);
    let run = bench.start(&process, &shop(&Journal::default())).await;
    assert!(matches!(crate::support::settled(&run).await, Settled::Stopped(_)));

    broken.store(false, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(3)).await;

    assert_eq!(waits(&run).await, ["Work/0.2"]);
    assert!(matches!(drive(&bench, &run).await, Settled::Completed(_)));
}

#[tokio::test(start_paused = true)]
async fn promise_14_temporarily_unreadable_run_is_served_later() {
    let broken = Arc::<AtomicBool>::default();
    let is_broken = Arc::clone(&broken);
    let store = FaultyStore::new(MemoryStore::new(), |_, _| None)
        .reading(move |method| (method == "read" && is_broken.load(Ordering::SeqCst)).then(full));
    let bench = Bench::on(store);
    let journal = Journal::default();
    let first = bench.lingering("first", Duration::ZERO, says);
    let run = bench.start(&first, &shop(&journal)).await;
    assert_eq!(waits(&run).await, ["Work/0.2"]);
    drop(run);
    bench.client("people").approve(&run_id(), &path("Work/0.2"), by("ann")).await.unwrap();
    broken.store(true, Ordering::SeqCst);

    let _service = bench.process("second", says).brain(shop(&journal)).serve();

    tokio::time::sleep(Duration::from_secs(60)).await;
    broken.store(false, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(bench.store.run(&run_id()).await.unwrap().status, Status::Completed);
}

/// Panics when the engine asks for the delay.
#[derive(Debug)]
struct NoJitter(OwnIds);

impl Ids for NoJitter {
    fn run(&self) -> RunId {
        self.0.run()
    }

    fn signal(&self) -> SignalId {
        self.0.signal()
    }

    fn jitter(&self) -> f64 {
        panic!("there is no chance here")
    }
}

#[tokio::test(start_paused = true)]
async fn promise_14_repeatedly_failing_run_backs_off_longer_each_time() {
    let store = MemoryStore::new();
    let brain = brain("Fails").step("Only", async |_| Err::<Board, _>(Error::transient("not now")));
    let runner = positronic_core::runner::Runner::new(positronic_core::model::scripted::ScriptedModel::new([]))
        .store(store.clone())
        .ids(NoJitter(OwnIds::of("only")))
        .brain(&brain);
    let _service = runner.serve();
    let run = runner.start(&brain, ()).await.unwrap();

    tokio::time::sleep(Duration::from_secs(600)).await;

    let log = store.read(run.id(), Seq(0), usize::MAX).await.unwrap();
    let tries = named(&log, "RUN_CLAIMED").len();
    assert!((5..=11).contains(&tries), "{tries} tries in ten minutes");
    assert!(matches!(crate::support::settled(&run).await, Settled::Stopped(_)));
}

#[tokio::test(start_paused = true)]
async fn promise_03_transient_append_failure_costs_no_effect_in_flight() {
    let says = |place: &str| if place == "Work/0" { slow_batch([("safe", "a", 5), ("safe", "b", 60)]) } else { done() };
    for fault in [Fault::Refused(full()), Fault::Unanswered(full())] {
        let failed = AtomicBool::new(false);
        let store = FaultyStore::new(MemoryStore::new(), move |_, append| {
            let result = append.events.iter().any(|event| matches!(event.kind, EventKind::LoopToolResult { .. }));
            (result && !failed.swap(true, Ordering::SeqCst)).then(|| fault.clone())
        });
        let bench = Bench::on(store).free();
        let journal = Journal::default();
        let run = bench.start(&bench.process("work", says), &workshop(&journal, crate::support::tools)).await;

        assert!(matches!(crate::support::settled(&run).await, Settled::Completed(_)));

        assert_eq!(journal.take(), ["a", "b", "a-", "b-"]);
        let log = bench.checked().await;
        assert_eq!(named(&log, "LOOP_TOOL_RESULT"), ["Work/0.0", "Work/0.1"]);
        assert!(named(&log, "RUN_RELEASED").is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn promise_14_abandoned_start_or_resume_leaves_no_run_behind() {
    let store = FaultyStore::new(MemoryStore::new(), |_, append| {
        let claims = append.events.iter().any(|event| matches!(event.kind, EventKind::RunClaimed { .. }));
        claims.then_some(Fault::Late(Duration::from_secs(1)))
    });
    let bench = Bench::on(store);
    let brain = shop(&Journal::default());
    let process = bench.lingering("work", Duration::ZERO, says).brain(&brain);

    let start = bench.start(&process, &brain);
    assert!(tokio::time::timeout(Duration::from_millis(1), start).await.is_err());
    tokio::time::sleep(Duration::from_secs(10)).await;

    let row = bench.store.run(&run_id()).await.unwrap();
    assert_eq!((row.status, row.claim.unwrap().released), (Status::Waiting, true));
    bench.client("people").approve(&run_id(), &path("Work/0.2"), by("ann")).await.unwrap();
    let id = run_id();
    let resume = process.resume(&id);
    assert!(tokio::time::timeout(Duration::from_millis(1), resume).await.is_err());
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(bench.store.run(&run_id()).await.unwrap().status, Status::Completed);
}
