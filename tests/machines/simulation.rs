//! A simulation of many machines: seeded partitions, lost messages, delays, skewed clocks and machines that die.
//!
//! The machines are real runners on tokio's paused clock. Each has its own connection to the store and its own clock. In
//! the end everything is connected, and each run must have completed. `POSITRONIC_TEST_SEEDS` sets the number of seeds,
//! and `POSITRONIC_TEST_SEED` chooses one. A seed determines the faults; the order of tasks may differ.

use std::collections::BTreeMap;
use std::time::Duration;

use positronic_core::machine::RunState;
use positronic_core::record::{Actor, Event, EventKind, Path, RunId, Seq, SignalId, Start, Status, Timestamp};
use positronic_core::runner::{Client, Clock, Runner, Service};
use positronic_core::store::prelude::*;
use positronic_core::store::{MemoryStore, PendingFilter};
use positronic_core::testing::TestClock;

use crate::network::{Connection, Dice};
use crate::shop::{Ledger, machine, shop};

const TTL: Duration = Duration::from_secs(15);
/// How long faults occur.
const STORMY: u64 = 180;

/// A clock that is ahead of the others, or behind them.
#[derive(Debug, Clone)]
struct SkewedClock {
    clock: TestClock,
    micros: i64,
}

impl Clock for SkewedClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.clock.now().0 + self.micros)
    }
}

/// A machine of the simulation; `None` while it is dead.
struct Machine {
    line: Connection,
    clock: SkewedClock,
    alive: Option<(Runner, Service)>,
}

impl Machine {
    fn boot(&mut self, ledger: &Ledger) {
        let runner = machine(self.line.clone(), self.clock.clone(), ledger, 9000);
        let service = runner.serve();
        self.alive = Some((runner, service));
    }
}

struct World {
    dice: Dice,
    store: MemoryStore,
    ledger: Ledger,
    machines: Vec<Machine>,
    /// The decisions that the store has confirmed, by run and event.
    confirmed: BTreeMap<(RunId, Seq), Path>,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut dice = Dice(seed);
        let (store, clock) = (MemoryStore::new().lease_ttl(TTL), TestClock::default());
        let count = [2, 3, 5, 10, 100][dice.below(5) as usize];
        let loses = [0, 0, 50, 20][dice.below(4) as usize];
        let machines = (0..count).map(|_| {
            let micros = dice.below(7_200_000_000) as i64 - 3_600_000_000;
            let line = Connection::new(&store, dice.next(), loses, 30);
            Machine { line, clock: SkewedClock { clock: clock.clone(), micros }, alive: None }
        });
        let machines = machines.collect();
        Self { dice, store, ledger: Ledger::default(), machines, confirmed: BTreeMap::new() }
    }

    fn any(&mut self) -> usize {
        self.dice.below(self.machines.len() as u64) as usize
    }

    /// Starts runs, lets faults happen, heals everything, and waits until the runs have ended.
    async fn play(&mut self) -> Vec<RunId> {
        for index in 0..self.machines.len() {
            self.machines[index].boot(&self.ledger);
        }
        let mut runs = Vec::new();
        for second in 0..STORMY {
            tokio::time::sleep(Duration::from_secs(1)).await;
            if second % 12 == 0 {
                runs.extend(self.start(second).await);
            }
            self.decide().await;
            self.disturb();
        }
        for index in 0..self.machines.len() {
            self.machines[index].line.cut(false);
            if self.machines[index].alive.is_none() {
                self.machines[index].boot(&self.ledger);
            }
        }
        for _ in 0..600 {
            tokio::time::sleep(Duration::from_secs(1)).await;
            self.decide().await;
            if self.all_over(&runs).await {
                break;
            }
        }
        runs
    }

    /// Starts a run on any machine, with an id of its own, as often as the machine needs to confirm it.
    async fn start(&mut self, number: u64) -> Option<RunId> {
        let index = self.any();
        let runner = self.machines[index].alive.as_ref()?.0.clone();
        let id = format!("run-{number}");
        let brain = shop(&self.ledger);
        for _ in 0..3 {
            let start = Start { id: Some(SignalId::from(id.as_str())), ..Start::default() };
            if runner.start_with(brain.clone(), (), start).await.is_ok() {
                return Some(RunId::from(id));
            }
        }
        // The store may have it nevertheless.
        self.store.run(&RunId::from(id.as_str())).await.is_ok().then(|| RunId::from(id))
    }

    /// Approves what waits for a person, through any machine.
    async fn decide(&mut self) {
        let pending = self.store.pending(&PendingFilter::builder().person(true).build()).await.unwrap();
        for item in pending {
            let index = self.any();
            let client = Client::new(self.machines[index].line.clone());
            let decided = client.approve(&item.run, &item.pending.call, Actor::default());
            if let Ok(Ok(seq)) = tokio::time::timeout(Duration::from_secs(2), decided).await {
                self.confirmed.insert((item.run, seq), item.pending.call);
            }
        }
    }

    fn disturb(&mut self) {
        let index = self.any();
        let machine = &mut self.machines[index];
        match self.dice.below(12) {
            0 | 1 => machine.line.cut(true),
            2..=4 => machine.line.cut(false),
            // Its tasks end with its runtime in a real death; here its connection is cut for ever.
            5 if machine.alive.take().is_some() => {
                machine.line.cut(true);
                let seed = self.dice.next();
                machine.line = Connection::new(&self.store, seed, 0, 30);
            }
            6 if machine.alive.is_none() => machine.boot(&self.ledger),
            _ => {}
        }
    }

    async fn all_over(&self, runs: &[RunId]) -> bool {
        for run in runs {
            if !self.store.run(run).await.unwrap().status.is_over() {
                return false;
            }
        }
        true
    }

    async fn check(&self, seed: u64, runs: &[RunId]) {
        let mut logs = BTreeMap::new();
        for run in runs {
            let log = self.store.read(run, Seq(0), usize::MAX).await.unwrap();
            let log: Vec<Event> = log.iter().map(|event| (**event).clone()).collect();
            let status = self.store.run(run).await.unwrap().status;
            assert_eq!(status, Status::Completed, "seed {seed}: `{run}` does not end: {:#?}", log.last());
            RunState::replay(&log).unwrap_or_else(|error| panic!("seed {seed}: `{run}`: {error}"));
            check_committers(seed, run, &log);
            logs.insert(run.clone(), log);
        }
        for ((run, seq), call) in &self.confirmed {
            let event = &logs[run][seq.index()];
            assert!(
                matches!(event.kind, EventKind::LoopApprovalDecided { .. }) && event.path == *call,
                "seed {seed}: a confirmed decision is not in the log: {event:?}"
            );
        }
        for ((run, call), effects) in self.ledger.all() {
            let log = &logs[&run];
            let path = Path::parse(&call).unwrap();
            let of_call =
                |name: &str| log.iter().filter(|event| event.path == path && event.kind.name() == name).count();
            let place = format!("seed {seed}: `{run}` `{call}`: {effects:#?}");
            assert_eq!(of_call("LOOP_TOOL_RESULT"), 1, "{place}");
            assert!(effects.len() <= of_call("LOOP_TOOL_START"), "an effect began without its intent: {place}");
            let repeatable = log.iter().any(|event| {
                matches!(&event.kind, EventKind::LoopToolCall(call) if event.path == path && call.tool == "note")
            });
            assert!(repeatable || effects.len() == 1, "it ran twice: {place}");
            for pair in effects.windows(2) {
                let over = pair[0].over.unwrap_or_else(|| panic!("{place}"));
                assert!(over <= pair[1].begun, "two machines worked at the same time: {place}");
            }
        }
    }
}

/// Checks that each event of a worker has the epoch of the last claim.
fn check_committers(seed: u64, run: &RunId, log: &[Event]) {
    let mut held = None;
    for event in log {
        if matches!(event.kind, EventKind::RunClaimed { .. }) {
            assert!(event.epoch > held, "seed {seed}: `{run}`: {event:?}");
            held = event.epoch;
        }
        assert!(event.epoch.is_none() || event.epoch == held, "seed {seed}: `{run}`: {event:?}");
    }
}

fn play(seed: u64) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let mut world = World::new(seed);
        let runs = world.play().await;
        assert!(!runs.is_empty(), "seed {seed} starts no run");
        world.check(seed, &runs).await;
    });
}

#[expect(clippy::disallowed_methods, reason = "the size of the simulation")]
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn many_machines_keep_the_promises_under_faults() {
    if let Some(seed) = number("POSITRONIC_TEST_SEED") {
        return play(seed);
    }
    for seed in 0..number("POSITRONIC_TEST_SEEDS").unwrap_or(12) {
        play(seed);
    }
}
