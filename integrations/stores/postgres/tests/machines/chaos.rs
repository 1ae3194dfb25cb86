//! Real dialogues on three workers that are killed, stopped and replaced at random.
//!
//! `POSITRONIC_TEST_RUNS` sets the number of runs, `POSITRONIC_TEST_SEED` the seed of the faults, and
//! `POSITRONIC_TEST_DIALOGUES` a file with more dialogues than the repository has.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use positronic_core::record::{Actor, EventKind, Path, RunId, Seq, SignalKind, ToolResult};
use positronic_core::store::PendingFilter;
use positronic_core::store::prelude::*;
use serde_json::json;

use crate::brains::script;
use crate::checks::{calls, check, log};
use crate::cluster::{Cluster, Process, Stopped, dialogues_of_the_core};
use crate::dialogues::{Dialogue, read};

const TTL: Duration = Duration::from_secs(2);
/// How long an answer of a worker may take that is neither dead nor stopped.
const ANSWER: Duration = Duration::from_secs(20);

/// A source of numbers that look random.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// A worker, and until when it is stopped.
struct Machine {
    process: Process,
    stopped: Option<(Stopped, Instant)>,
}

struct Chaos {
    cluster: Cluster,
    dice: Dice,
    dialogues: Vec<Dialogue>,
    machines: Vec<Machine>,
    next_fault: Instant,
    faults: BTreeMap<&'static str, usize>,
    /// The replies that the store has confirmed.
    confirmed: BTreeMap<(RunId, Seq), Path>,
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

impl Chaos {
    async fn boot(&self) -> Machine {
        Machine { process: self.cluster.boot().await, stopped: None }
    }

    /// Starts a run on any worker that is not stopped, until one confirms it.
    async fn start(&mut self, number: usize) -> RunId {
        let (run, title) = (format!("run-{number}"), self.dialogues[number % self.dialogues.len()].id.clone());
        let command = format!("start {run} {title}");
        loop {
            let index = self.dice.below(self.machines.len() as u64) as usize;
            if self.machines[index].stopped.is_none() {
                let answer = tokio::time::timeout(ANSWER, self.machines[index].process.ask(&command)).await;
                if answer.is_ok_and(|answer| answer == "ok") {
                    return RunId::from(run);
                }
            }
            self.disturb().await;
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Replies to every question that waits.
    async fn reply(&mut self) {
        let pending = self.cluster.store.pending(&PendingFilter::builder().person(true).build()).await.unwrap();
        for item in pending {
            let number: usize = item.run.as_str().trim_start_matches("run-").parse().unwrap();
            let dialogue = &self.dialogues[number % self.dialogues.len()];
            let place: usize = item.pending.call.as_str().split(['/', '.']).nth(1).unwrap().parse().unwrap();
            let turn = script(dialogue)[..=place].iter().filter(|(tool, _)| tool == "say").count();
            let (call, payload) = (item.pending.call, json!(dialogue.turns[turn].user));
            let kind = SignalKind::Reply { call: call.clone(), payload };
            if let Ok(seq) = self.cluster.client.signal(&item.run, kind, Actor::default()).await {
                self.confirmed.insert((item.run, seq), call);
            }
        }
    }

    /// Lets stopped workers go on, and sometimes lets a fault happen.
    async fn disturb(&mut self) {
        let now = Instant::now();
        for machine in &mut self.machines {
            machine.stopped.take_if(|(_, until)| *until <= now);
        }
        if now < self.next_fault {
            return;
        }
        self.next_fault = now + Duration::from_millis(100 + self.dice.below(900));
        let index = self.dice.below(self.machines.len() as u64) as usize;
        let fault = match self.dice.below(6) {
            0 | 1 => {
                self.machines[index].process.kill();
                self.machines[index] = self.boot().await;
                "killed"
            }
            2 | 3 if self.machines[index].stopped.is_none() => {
                // Shorter or longer than its lease.
                let time = Duration::from_millis(500 + self.dice.below(4000));
                self.machines[index].stopped = Some((self.machines[index].process.stop(), now + time));
                if time > TTL { "stopped for longer than the lease" } else { "stopped for less than the lease" }
            }
            4 if self.machines[index].stopped.is_none() => {
                let released = self.machines[index].process.ask("release");
                let released = tokio::time::timeout(ANSWER, released).await;
                self.machines[index] = self.boot().await;
                if released.is_ok() { "released" } else { "killed in a release" }
            }
            _ => return,
        };
        *self.faults.entry(fault).or_default() += 1;
    }

    async fn open(&self, runs: &mut Vec<RunId>) {
        let mut open = Vec::with_capacity(runs.len());
        for run in runs.drain(..) {
            if !self.cluster.row(&run).await.status.is_over() {
                open.push(run);
            }
        }
        *runs = open;
    }

    /// Checks the promises, and that each run made the calls of its dialogue in order with the replies of its user.
    async fn check(&self, runs: &[RunId]) {
        let figures = check(&self.cluster, runs).await;
        for (number, run) in runs.iter().enumerate() {
            let dialogue = &self.dialogues[number % self.dialogues.len()];
            let log = log(&self.cluster, run).await;
            let made = calls(&log);
            let asked: Vec<_> = made.iter().map(|made| (made.tool.clone(), made.arguments.clone())).collect();
            assert_eq!(asked, script(dialogue), "`{run}`");
            let said: Vec<_> = made.iter().filter(|made| made.tool == "say").map(|made| made.result.clone()).collect();
            let turns = dialogue.turns[1..].iter();
            let turns = turns.map(|turn| ToolResult::Success { output: json!(turn.user), brief: None });
            assert_eq!(said, turns.collect::<Vec<_>>(), "`{run}`");
            for ((_, seq), call) in self.confirmed.iter().filter(|((confirmed, _), _)| confirmed == run) {
                let event = &log[seq.index()];
                let is_reply = event.path == *call && !matches!(event.kind, EventKind::RunClaimed { .. });
                assert!(is_reply, "a confirmed reply is not in the log: {event:?}");
            }
        }
        println!("{figures:?}, {} replies, {:?}", self.confirmed.len(), self.faults);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dialogues_end_on_workers_that_are_killed_and_stopped() {
    let Some(mut cluster) = Cluster::new(TTL).await else { return };
    let number = |name, default| variable(name).map_or(default, |text| text.parse().unwrap());
    let file = variable("POSITRONIC_TEST_DIALOGUES").map_or_else(dialogues_of_the_core, PathBuf::from);
    let dialogues = read(&std::fs::read_to_string(&file).unwrap());
    cluster.setup.dialogues = Some(file);
    let count = number("POSITRONIC_TEST_RUNS", 60) as usize;
    // Enough for all workers, and few enough that faults hit many of them.
    let at_once = (count / 40).max(12);
    let (dice, began) = (Dice(number("POSITRONIC_TEST_SEED", 7)), Instant::now());
    let (machines, next_fault) = (Vec::new(), began + Duration::from_secs(1));
    let (faults, confirmed) = (BTreeMap::new(), BTreeMap::new());
    let mut chaos = Chaos { cluster, dice, dialogues, machines, next_fault, faults, confirmed };
    for _ in 0..3 {
        let machine = chaos.boot().await;
        chaos.machines.push(machine);
    }
    let patience = Duration::from_secs(120) + Duration::from_secs(3) * u32::try_from(count).unwrap();

    let (mut runs, mut open) = (Vec::new(), Vec::new());
    while runs.len() < count || !open.is_empty() {
        assert!(began.elapsed() < patience, "{} runs do not end: {open:?}", open.len());
        if runs.len() < count && open.len() < at_once {
            let run = chaos.start(runs.len()).await;
            runs.push(run.clone());
            open.push(run);
        } else {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        chaos.reply().await;
        chaos.disturb().await;
        chaos.open(&mut open).await;
    }

    println!("{count} runs ended in {:?}", began.elapsed());
    chaos.check(&runs).await;
}
