//! Durable sinks: what a machine that died did not deliver, others deliver.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{Event, RunId, Seq};
use positronic_core::runner::Settled;
use positronic_core::sink::{EventSink, SinkError};
use positronic_core::store::MemoryStore;
use positronic_core::store::prelude::*;
use positronic_core::testing::TestClock;
use serde_json::json;

use crate::support::{done, path};

/// What all machines delivered, in order.
#[derive(Clone, Default)]
struct Audit(Arc<Mutex<Vec<(RunId, Seq)>>>);

impl Audit {
    fn of(&self, run: &RunId) -> Vec<u64> {
        self.0.lock().unwrap().iter().filter(|(of, _)| of == run).map(|(_, seq)| seq.0).collect()
    }

    /// The delivered events without repetitions.
    fn once(&self, run: &RunId) -> Vec<u64> {
        let mut all = self.of(run);
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// A machine's sink, which hangs at an event, as if the machine died there.
struct Machine {
    audit: Audit,
    dies_at: Option<Seq>,
    is_durable: bool,
}

impl EventSink for Machine {
    fn name(&self) -> &str {
        "audit"
    }

    fn is_durable(&self) -> bool {
        self.is_durable
    }

    fn event<'a>(&'a self, run: &'a RunId, event: &'a Arc<Event>) -> BoxFuture<'a, Result<(), SinkError>> {
        Box::pin(async move {
            if self.dies_at.is_some_and(|dies| event.seq >= dies) {
                std::future::pending::<()>().await;
            }
            self.audit.0.lock().unwrap().push((run.clone(), event.seq));
            Ok(())
        })
    }
}

fn gated() -> Brain<(), ()> {
    brain("Gated")
        .r#loop("Work", |cx| {
            let config = cx.system("").input("Pay.");
            config.tool("pay", |t| t.requires_approval("it costs").execute(async |_: NoArgs, _| Ok("paid")))
        })
        .build()
}

struct Bench {
    store: MemoryStore,
    clock: TestClock,
    audit: Audit,
}

impl Bench {
    fn new() -> Self {
        Self { store: MemoryStore::new(), clock: TestClock::default(), audit: Audit::default() }
    }

    fn runner(&self, dies_at: Option<u64>, is_durable: bool) -> Runner {
        let says = |request: &positronic_core::record::ModelRequest| match request.path.as_str() {
            "Work/0" => Reply::call("pay", json!({})),
            _ => done(),
        };
        let sink = Machine { audit: self.audit.clone(), dies_at: dies_at.map(Seq), is_durable };
        Runner::new(ScriptedModel::from_fn(says))
            .store(self.store.clone())
            .clock(self.clock.clone())
            .linger(Duration::ZERO)
            .sink(sink)
            .brain(gated())
    }

    async fn log(&self, run: &RunId) -> Vec<u64> {
        (0..self.store.run(run).await.unwrap().next.0).collect()
    }

    async fn approve(&self, runner: &Runner, run: &RunId) {
        runner.client().approve(run, &path("Work/0.0"), "ann").await.unwrap();
    }
}

async fn moment() {
    tokio::time::sleep(Duration::from_secs(60)).await;
}

#[tokio::test(start_paused = true)]
async fn next_worker_delivers_what_a_dead_one_did_not() {
    for dies_at in [0, 3, 5] {
        let bench = Bench::new();
        let first = bench.runner(Some(dies_at), true);
        let run = first.start(&gated(), ()).await.unwrap();
        assert!(matches!(run.settled().await, Settled::Waiting(_)));
        moment().await;
        let id = run.id().clone();
        bench.store.declare_dead("worker-1");
        let second = bench.runner(None, true);
        bench.approve(&second, &id).await;

        let resumed = second.resume(&id).await.unwrap();

        assert!(matches!(resumed.settled().await, Settled::Completed(_)));
        assert!(resumed.flushed(Duration::from_secs(5)).await);
        assert_eq!(bench.audit.once(&id), bench.log(&id).await, "dead at {dies_at}");
    }
}

#[tokio::test(start_paused = true)]
async fn server_delivers_what_is_left_of_ended_and_of_waiting_runs() {
    let bench = Bench::new();
    let first = bench.runner(Some(4), true);
    let waiting = first.start(&gated(), ()).await.unwrap();
    let ended = first.start(&gated(), ()).await.unwrap();
    assert!(matches!(ended.settled().await, Settled::Waiting(_)));
    bench.approve(&first, ended.id()).await;
    moment().await;
    assert!(matches!(ended.settled().await, Settled::Completed(_)));
    assert_eq!(bench.audit.of(ended.id()), [0, 1, 2, 3]);
    bench.store.declare_dead("worker-1");

    let second = bench.runner(None, true);
    let service = second.serve();
    moment().await;
    drop(service);

    for run in [&waiting, &ended] {
        assert_eq!(bench.audit.once(run.id()), bench.log(run.id()).await);
    }
}

#[tokio::test(start_paused = true)]
async fn sink_that_is_not_durable_gets_only_later_events_from_another_machine() {
    let bench = Bench::new();
    let run = bench.runner(Some(3), false).start(&gated(), ()).await.unwrap();
    assert!(matches!(run.settled().await, Settled::Waiting(_)));
    moment().await;
    let (id, next) = (run.id().clone(), run.state().next.0);
    bench.store.declare_dead("worker-1");
    let second = bench.runner(None, false);
    bench.approve(&second, &id).await;

    let resumed = second.resume(&id).await.unwrap();

    assert!(matches!(resumed.settled().await, Settled::Completed(_)));
    assert!(resumed.flushed(Duration::from_secs(5)).await);
    let delivered = bench.audit.of(&id);
    assert!(delivered.starts_with(&[0, 1, 2]) && delivered.last() == bench.log(&id).await.last(), "{delivered:?}");
    assert!(delivered.iter().all(|seq| *seq < 3 || *seq >= next), "{delivered:?}");
}

#[tokio::test(start_paused = true)]
async fn run_that_moves_between_machines_is_delivered_once() {
    let bench = Bench::new();
    let first = bench.runner(None, true);
    let run = first.start(&gated(), ()).await.unwrap();
    assert!(matches!(run.settled().await, Settled::Waiting(_)));
    let id = run.id().clone();
    moment().await;
    drop(run);
    first.release().await;
    moment().await;
    let second = bench.runner(None, true);
    bench.approve(&second, &id).await;

    let resumed = second.resume(&id).await.unwrap();

    assert!(matches!(resumed.settled().await, Settled::Completed(_)));
    assert!(resumed.flushed(Duration::from_secs(5)).await);
    assert_eq!(bench.audit.of(&id), bench.log(&id).await);
}
