//! Active time, where the machines that write to a log have different clocks.

use std::time::Duration;

use positronic_core::machine::RunState;
use positronic_core::model::scripted::ScriptedModel;
use positronic_core::prelude::*;
use positronic_core::record::{Actor, BudgetRequest, Event, EventKind, LimitKind, RunId, Seq, SignalKind, Timestamp};
use positronic_core::runner::{Client, Clock, Fork};
use positronic_core::store::MemoryStore;
use positronic_core::testing::TestClock;

use crate::support::{Board, Journal, batch, done, path, slow_batch, tools, waits, workshop};

const HOUR: Duration = Duration::from_hours(1);

/// The same time everywhere, and how much a machine's clock differs from it.
#[derive(Clone)]
struct Machine {
    time: TestClock,
    ahead: Duration,
    behind: Duration,
}

impl Clock for Machine {
    fn now(&self) -> Timestamp {
        Timestamp(self.time.now().after(self.ahead).0 - i64::try_from(self.behind.as_micros()).unwrap())
    }
}

struct Bench {
    store: MemoryStore,
    time: TestClock,
}

impl Bench {
    fn new() -> Self {
        let time = TestClock::default();
        time.now();
        Self { store: MemoryStore::new(), time }
    }

    fn machine(&self, ahead: Duration, behind: Duration) -> Runner {
        let says = |request: &positronic_core::record::ModelRequest| match request.path.as_str() {
            "Work/0" => slow_batch([("safe", "a", 30_000), ("gated", "b", 20_000)]),
            "Work/1" => batch([("gated", "c")]),
            _ => done(),
        };
        let clock = Machine { time: self.time.clone(), ahead, behind };
        let model = ScriptedModel::from_fn(says);
        Runner::new(model).store(self.store.clone()).clock(clock)
    }

    fn exact(&self) -> Runner {
        self.machine(Duration::ZERO, Duration::ZERO)
    }

    /// The seconds that the loop was active.
    async fn active(&self, client: &Client, run: &RunId) -> u64 {
        let state = client.state(run).await.unwrap();
        let log = client.events(run, Seq(0)).await.unwrap();
        assert_eq!(state, RunState::replay(log.iter().map(|event| &**event)).unwrap());
        state.loop_at(&path("Work")).unwrap().active / 1_000_000
    }
}

fn shop() -> Brain<(), Board> {
    workshop(&Journal::default(), |config| tools(config).unlimited().max_time(Duration::from_secs(600)))
}

async fn say(client: &Client, run: &RunId, what: SignalKind) {
    let signal = positronic_core::record::Signal {
        id: format!("{:?}", client.events(run, Seq(0)).await.unwrap().len()).as_str().into(),
        actor: Actor::builder().by("ann").build(),
        kind: what,
    };
    client.send(run, signal).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn time_of_a_signal_from_another_clock_does_not_count() {
    for (ahead, behind) in [(HOUR, Duration::ZERO), (Duration::ZERO, HOUR)] {
        let bench = Bench::new();
        let (worker, people) = (bench.exact(), bench.machine(ahead, behind).client());
        let run = worker.start(&shop(), ()).await.unwrap();
        tokio::time::sleep(Duration::from_secs(10)).await;

        say(&people, run.id(), SignalKind::message("hurry")).await;

        // The loop was active before and after the message.
        assert_eq!(waits(&run).await, ["Work/0.1"]);
        assert_eq!(bench.active(&people, run.id()).await, 30, "{ahead:?} ahead, {behind:?} behind");
    }
}

#[tokio::test(start_paused = true)]
async fn wait_for_an_approval_from_another_clock_does_not_count() {
    for (ahead, behind) in [(HOUR, Duration::ZERO), (Duration::ZERO, HOUR)] {
        let bench = Bench::new();
        let (worker, people) = (bench.exact(), bench.machine(ahead, behind).client());
        let run = worker.start(&shop(), ()).await.unwrap();
        assert_eq!(waits(&run).await, ["Work/0.1"]);
        tokio::time::sleep(2 * HOUR).await;

        people.approve(run.id(), &path("Work/0.1"), "ann").await.unwrap();
        tokio::time::sleep(Duration::from_secs(60)).await;

        assert_eq!(waits(&run).await, ["Work/1.0"]);
        assert_eq!(bench.active(&people, run.id()).await, 50, "{ahead:?} ahead, {behind:?} behind");
    }
}

#[tokio::test(start_paused = true)]
async fn pause_from_another_clock_counts_at_most_what_was_in_flight() {
    for (ahead, behind, counted) in
        [(Duration::ZERO, Duration::ZERO, 10), (HOUR, Duration::ZERO, 30), (Duration::ZERO, HOUR, 0)]
    {
        let bench = Bench::new();
        let (worker, people) = (bench.exact(), bench.machine(ahead, behind).client());
        let run = worker.start(&shop(), ()).await.unwrap();
        tokio::time::sleep(Duration::from_secs(10)).await;
        say(&people, run.id(), SignalKind::Pause).await;
        tokio::time::sleep(3 * HOUR).await;

        say(&people, run.id(), SignalKind::Resume).await;

        assert_eq!(bench.active(&people, run.id()).await, counted, "{ahead:?} ahead, {behind:?} behind");
    }
}

#[tokio::test(start_paused = true)]
async fn worker_with_another_clock_counts_its_own_time() {
    for (ahead, behind) in [(HOUR, Duration::ZERO), (Duration::ZERO, HOUR)] {
        let bench = Bench::new();
        let first = bench.exact();
        let run = first.start(&shop(), ()).await.unwrap();
        assert_eq!(waits(&run).await, ["Work/0.1"]);
        let id = run.id().clone();
        drop(run);
        bench.store.declare_dead("worker-1");
        tokio::time::sleep(2 * HOUR).await;
        let second = bench.machine(ahead, behind).brain(shop());
        second.client().approve(&id, &path("Work/0.1"), "ann").await.unwrap();

        let run = second.resume(&id).await.unwrap();

        assert_eq!(waits(&run).await, ["Work/1.0"]);
        assert_eq!(bench.active(&second.client(), &id).await, 50, "{ahead:?} ahead, {behind:?} behind");
    }
}

#[tokio::test(start_paused = true)]
async fn worker_whose_clock_is_behind_the_log_records_its_own_time() {
    let bench = Bench::new();
    let (worker, people) = (bench.exact(), bench.machine(HOUR, Duration::ZERO).client());
    let run = worker.start(&shop(), ()).await.unwrap();

    say(&people, run.id(), SignalKind::message("hurry")).await;

    assert_eq!(waits(&run).await, ["Work/0.1"]);
    let log = run.events(Seq(0)).await.unwrap();
    let said = log.iter().position(|event| event.kind.name() == "LOOP_MESSAGE").unwrap();
    assert!(log[..=said].iter().all(|event| event.clock.is_none() && event.clock() == event.at));
    let result = log.iter().find(|event| event.kind.name() == "LOOP_TOOL_RESULT").unwrap();
    assert_eq!((result.at, result.clock), (log[said].at, Some(TestClock::BEGIN.after(Duration::from_secs(30)))));
    assert_eq!(Event::from_json(&result.to_json().unwrap()).unwrap(), **result);
}

#[tokio::test(start_paused = true)]
async fn time_before_a_fork_does_not_count_in_it() {
    let bench = Bench::new();
    let runner = bench.exact();
    let run = runner.start(&shop(), ()).await.unwrap();
    assert_eq!(waits(&run).await, ["Work/0.1"]);
    let log = run.events(Seq(0)).await.unwrap();
    let begun = log.iter().find(|event| event.kind.name() == "LOOP_TOOL_START").unwrap().seq;
    tokio::time::sleep(10 * HOUR).await;

    let fork = runner.client().fork(run.id(), begun, Fork::default()).await.unwrap();

    assert_eq!(bench.active(&runner.client(), &fork).await, 0);
}

#[tokio::test(start_paused = true)]
async fn question_for_more_time_of_a_release_that_counted_more_is_legal() {
    let bench = Bench::new();
    let asking = workshop(&Journal::default(), |config| {
        tools(config).unlimited().max_time(Duration::from_secs(600)).max_tokens(1_000_000).ask_for_more()
    });
    let run = bench.exact().start(&asking, ()).await.unwrap();
    assert_eq!(waits(&run).await, ["Work/0.1"]);
    let state = run.state();
    let ask = |kind| {
        let request = BudgetRequest { kind, limit: 600_000_000, used: 600_000_000, shared: false, expires: None };
        let (epoch, kind) = (state.claim.as_ref().map(|claim| claim.epoch), EventKind::BudgetRequested(request));
        state.clone().apply(&Event {
            seq: state.next,
            at: state.at,
            epoch,
            clock: None,
            with_next: false,
            path: path("Work"),
            kind,
        })
    };

    assert_eq!(ask(LimitKind::Time), Ok(()));
    assert!(ask(LimitKind::Tokens).is_err());
    assert!(ask(LimitKind::Money).is_err());
}
