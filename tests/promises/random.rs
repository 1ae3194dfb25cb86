//! Random stories with crashes: the promises hold for any calls, decisions, webhooks, messages and pauses, wherever
//! processes die.
//!
//! A life is a runtime with one process in it. It dies at one of its appends, which is written or not, together with
//! all its effects in flight. People repeat their unacknowledged signals in the next life under the same
//! id.

mod script;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use positronic_core::machine::RunState;
use positronic_core::model::Model as _;
use positronic_core::model::scripted::ScriptedModel;
use positronic_core::record::{
    Amounts, BatchPolicy, BudgetRequest, Decision, Event, EventKind, LimitKind, ModelRequest, Pending, PendingKind,
    Seq, Signal, SignalId, SignalKind, Start, Timestamp,
};
use positronic_core::runner::{Client, RunHandle, Runner, Settled, SignalError};
use positronic_core::store::MemoryStore;
use positronic_core::store::prelude::*;
use positronic_core::testing::{Lockstep as _, TestClock};
use positronic_store_suite::{Fault, FaultyStore};
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use self::script::{Limited, Script, says, scripts, story};
use crate::asks::Ask;
use crate::bench::{by, run_id};
use crate::support::boundaries::{Later, Ledger, OwnIds};
use crate::support::checks::{check_order, check_requests};
use crate::support::{done, path};

/// Number of actions after which people stop sending signals.
const PATIENCE: usize = 300;

/// The answer that ends a story: pending calls are approved, and requests for more are refused.
const FIRM: u8 = 250;

/// State that outlives the processes.
struct World {
    script: Script,
    store: MemoryStore,
    ledger: Ledger,
    sent: Arc<Mutex<Vec<ModelRequest>>>,
    people: Mutex<People>,
    /// Number of requests for more.
    asked: AtomicU64,
}

/// The signals of people, with their outcomes.
#[derive(Default)]
struct People {
    next: usize,
    unanswered: Option<Signal>,
    accepted: BTreeMap<SignalId, (Signal, Seq)>,
    refused: BTreeSet<SignalId>,
}

/// Long enough for every worker to be dead.
const FOREVER: Duration = Duration::from_secs(1_000_000_000);

impl World {
    /// Lives once, and returns whether the run has ended.
    fn live(&self, life: usize) -> bool {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let (dead, died) = (Arc::new(AtomicBool::new(false)), Arc::new(tokio::sync::Notify::new()));
            let (is_dead, dies, appends) = (Arc::clone(&dead), Arc::clone(&died), AtomicU64::new(0));
            let span = self.script.lives.get(life).copied();
            let store = FaultyStore::new(self.store.clone(), move |_, _| {
                if is_dead.load(Ordering::SeqCst) {
                    return Some(Fault::Slow(FOREVER));
                }
                let (most, written) = span?;
                if appends.fetch_add(1, Ordering::SeqCst) < most {
                    return None;
                }
                is_dead.store(true, Ordering::SeqCst);
                dies.notify_one();
                (!written).then_some(Fault::Slow(FOREVER))
            });
            let (script, sent) = (self.script.clone(), Arc::clone(&self.sent));
            let model = ScriptedModel::from_fn(move |request| {
                sent.lock().unwrap().push(request.clone());
                says(&script, request)
            });
            let log = self.log().await;
            let runner = Runner::new(model)
                .store(store)
                .clock(Later::than(log.last().map_or(TestClock::BEGIN, |event| event.at)))
                .ids(OwnIds::of(format!("life {life}")))
                .lockstep(self.script.lockstep)
                .linger(if self.script.linger { Duration::ZERO } else { Duration::MAX })
                .definition(positronic_core::dsl::IntoBrain::definition(&story(&self.script, &self.ledger)));
            tokio::select! {
                biased;
                () = died.notified() => false,
                () = self.play(&runner, life) => true,
            }
        })
    }

    async fn log(&self) -> Vec<Arc<Event>> {
        self.store.read(&run_id(), Seq(0), usize::MAX).await.unwrap_or_default()
    }

    async fn play(&self, runner: &Runner, life: usize) {
        let log = self.log().await;
        let run = if log.is_empty() {
            let start = Start { id: Some(SignalId::new("run")), ..Start::default() };
            runner
                .start_definition(
                    positronic_core::dsl::IntoBrain::definition(&story(&self.script, &self.ledger)),
                    Value::Null,
                    start,
                )
                .await
                .unwrap()
        } else if RunState::replay(log.iter().map(|event| &**event)).unwrap().has_ended() {
            return;
        } else {
            runner.resume(&run_id()).await.unwrap()
        };
        let unanswered = self.people.lock().unwrap().unanswered.clone();
        if let Some(signal) = unanswered {
            self.send(&run, signal).await;
        }
        let mut deeds = self.script.deeds.iter().copied().cycle().skip(life * 3);
        for turn in 0..400 {
            let (what, whom, wait) = deeds.next().unwrap();
            // In the end people only answer questions, and then the run must end.
            let resolute = turn >= PATIENCE;
            if wait % 3 == 0 && !resolute {
                tokio::time::sleep(Duration::from_millis(u64::from(wait % 20))).await;
                self.deed(&run, what, whom).await;
                continue;
            }
            match crate::support::settled(&run).await {
                Settled::Completed(_) => {
                    self.check(&run).await;
                    return;
                }
                Settled::Paused => {
                    if !resolute {
                        self.deed(&run, what, whom).await;
                    }
                    self.say(&run, SignalKind::Resume).await;
                }
                Settled::Waiting(pending) => {
                    assert!(!pending.is_empty(), "the run hangs");
                    if resolute {
                        self.answer(&run, &pending[0], FIRM).await;
                        continue;
                    }
                    self.deed(&run, what, whom).await;
                    if whom % 2 == 0 {
                        self.answer(&run, &pending[0], what).await;
                    }
                }
                other => panic!("{other:?}"),
            }
        }
        panic!("the story does not end after {} events", self.log().await.len());
    }

    /// Performs an action, valid or not.
    async fn deed(&self, run: &RunHandle<Value>, what: u8, whom: u8) {
        let pending = run.pending();
        let chosen = pending.get(usize::from(whom) % pending.len().max(1));
        match what % 10 {
            0 => self.say(run, SignalKind::message(format!("{whom}?"))).await,
            1 => self.say(run, SignalKind::Pause).await,
            2 => self.say(run, SignalKind::Resume).await,
            3 => {
                let call = path(&format!("Work/{}.{}", whom % 3, whom % 5));
                self.say(run, SignalKind::Approve { call, arguments: None }).await;
            }
            4 => {
                let known = self.people.lock().unwrap().accepted.values().last().cloned();
                if let Some((signal, seq)) = known {
                    assert_eq!(run.send(signal).await.unwrap(), seq, "the same signal is the same answer");
                }
            }
            5 => self.deliver(run, whom).await,
            _ => {
                if let Some(chosen) = chosen {
                    self.answer(run, chosen, whom).await;
                }
            }
        }
    }

    async fn answer(&self, run: &RunHandle<Value>, pending: &Pending, how: u8) {
        let call = pending.call.clone();
        let kind = match &pending.kind {
            PendingKind::Approval { .. } => match how % 4 {
                0 => SignalKind::Approve { call, arguments: Some(json!({"id": "edited"})) },
                1 => SignalKind::Reject { call, reason: None },
                _ => SignalKind::Approve { call, arguments: None },
            },
            PendingKind::Budget(BudgetRequest { kind, .. }) => match (how % 5, kind) {
                (0, _) => SignalKind::Reject { call, reason: None },
                (1, _) => SignalKind::Grant { to: call, more: Amounts::tokens(1) },
                (_, LimitKind::Iterations) => SignalKind::Grant { to: call, more: Amounts::iterations(2) },
                _ => SignalKind::Grant { to: call, more: Amounts::tokens(25) },
            },
            PendingKind::Answer { waits } => {
                let (name, identifier) = (waits[0].webhook.clone(), waits[0].identifier.clone());
                SignalKind::Webhook { name, identifier, payload: json!({}) }
            }
        };
        self.say(run, kind).await;
    }

    /// Delivers a webhook, expected or not; some twice.
    async fn deliver(&self, run: &RunHandle<Value>, whom: u8) {
        let client = self.client(run.state().at);
        let (id, identifier) = (SignalId::from(format!("hook {}", whom % 8)), (whom % 3).to_string());
        client.deliver(id, "go", &identifier, json!({}), by("machine")).await.unwrap();
    }

    /// Creates the client of another process.
    fn client(&self, now: Timestamp) -> Client {
        Runner::new(ScriptedModel::new([]))
            .store(self.store.clone())
            .clock(Later::than(now))
            .ids(OwnIds::of("hooks"))
            .client()
    }

    async fn say(&self, run: &RunHandle<Value>, kind: SignalKind) {
        let id = {
            let mut people = self.people.lock().unwrap();
            people.next += 1;
            SignalId::from(format!("say {}", people.next))
        };
        self.send(run, Signal { id, actor: by("ann"), kind }).await;
    }

    async fn send(&self, run: &RunHandle<Value>, signal: Signal) {
        self.people.lock().unwrap().unanswered = Some(signal.clone());
        let told = run.send(signal.clone()).await;
        let mut people = self.people.lock().unwrap();
        people.unanswered = None;
        match told {
            Ok(seq) => drop(people.accepted.insert(signal.id.clone(), (signal, seq))),
            Err(SignalError::Refused(_)) => drop(people.refused.insert(signal.id)),
            Err(error) => panic!("{error}"),
        }
    }

    /// Checks every promise that the log and the outside world can prove.
    async fn check(&self, run: &RunHandle<Value>) {
        let log = self.log().await;
        check_order(&log, true);
        let replayed = RunState::replay(log.iter().map(|event| &**event)).unwrap();
        let live = run.state();
        assert_eq!(serde_json::to_string(&replayed).unwrap(), serde_json::to_string(&live).unwrap(), "promise 21");
        let sent = self.sent.lock().unwrap().clone();
        check_requests(&log, &sent);
        let model = ScriptedModel::from_fn(|_| done());
        let mut wires: BTreeMap<String, String> = BTreeMap::new();
        for request in &sent {
            let wire = model.wire(request);
            let first = wires.entry(request.path.to_string()).or_insert_with(|| wire.clone());
            assert_eq!(*first, wire, "promise 5: {} is sent again as it was", request.path);
        }
        let asks = |event: &&Arc<Event>| matches!(event.kind, EventKind::BudgetRequested(_));
        self.asked.fetch_add(log.iter().filter(asks).count() as u64, Ordering::SeqCst);
        self.check_calls(&log);
        self.check_signals(&log);
    }

    fn check_calls(&self, log: &[Arc<Event>]) {
        let mut repeats = BTreeMap::new();
        let mut gates = BTreeSet::new();
        let mut decided: BTreeMap<String, Decision> = BTreeMap::new();
        for event in log {
            let place = event.path.to_string();
            match &event.kind {
                EventKind::LoopToolCall(call) => {
                    repeats.insert(place.clone(), call.flags.read_only || call.flags.idempotent);
                    if call.gate.is_some() {
                        gates.insert(place);
                    }
                }
                EventKind::LoopApprovalDecided { decision, .. } => {
                    assert!(decided.insert(place, *decision).is_none(), "promise 4: one decision a call");
                }
                EventKind::LoopToolStart { .. } => {
                    let approved = !gates.contains(&place) || decided.get(&place) == Some(&Decision::Approved);
                    assert!(approved, "promise 18: {place} runs without an approval");
                }
                _ => {}
            }
        }
        let mut times: BTreeMap<String, usize> = BTreeMap::new();
        for (place, key) in self.ledger.deeds() {
            assert_eq!(key, format!("run:{place}"), "promise 5: the key is the same for every try");
            *times.entry(place).or_default() += 1;
        }
        for (place, times) in times {
            assert!(times == 1 || repeats[&place], "promise 3: {place} ran {times} times");
            let approved = !gates.contains(&place) || decided.get(&place) == Some(&Decision::Approved);
            assert!(approved, "promise 18: {place} ran without an approval");
        }
    }

    fn check_signals(&self, log: &[Arc<Event>]) {
        let mut events: BTreeMap<SignalId, Seq> = BTreeMap::new();
        for event in log {
            if let Some(id) = event.kind.to_value()["signal"].as_str() {
                assert!(events.insert(SignalId::from(id), event.seq).is_none(), "promise 22: {id} counts once");
            }
        }
        let people = self.people.lock().unwrap();
        for (id, (_, seq)) in &people.accepted {
            assert_eq!(events.get(id), Some(seq), "promise 4: {id}");
        }
        for id in &people.refused {
            assert!(!events.contains_key(id), "promise 1: {id} was refused");
        }
    }
}

/// A regression found by random stories: people keep sending messages and grant a little more each time.
#[test]
fn promise_14_run_with_endless_messages_ends_when_they_stop() {
    let mut deeds = vec![(191, 0, 0)];
    deeds.extend([(0, 0, 0); 16]);
    deeds.extend([
        (0, 0, 110),
        (5, 86, 174),
        (154, 93, 161),
        (57, 114, 138),
        (98, 173, 45),
        (112, 194, 177),
        (203, 84, 29),
    ]);
    let script = Script {
        policy: BatchPolicy::Gated,
        lockstep: false,
        linger: false,
        iterations: vec![vec![Ask { tool: "safe", takes: 0, fails: false }]],
        inner: Vec::new(),
        lives: Vec::new(),
        deeds,
        limits: Limited { outer: Some(8), inner: Some(19), iterations: None, whole: Some(29) },
    };
    let (store, ledger, sent) = (MemoryStore::new(), Ledger::default(), Arc::default());
    let world = World { script, store, ledger, sent, people: Mutex::default(), asked: AtomicU64::new(0) };
    assert!(world.live(0));
}

#[test]
fn promise_14_any_events_in_any_order_survive_crashes_anywhere() {
    let config = Config { cases: 96, failure_persistence: None, ..Config::default() };
    let asked = std::cell::Cell::new(0);
    TestRunner::new(config)
        .run(&scripts(), |script| {
            let lives = script.lives.len();
            let (store, ledger, sent) = (MemoryStore::new(), Ledger::default(), Arc::default());
            let world = World { script, store, ledger, sent, people: Mutex::default(), asked: AtomicU64::new(0) };
            let ended = (0..=lives).any(|life| world.live(life));
            assert!(ended, "the last life is long enough");
            asked.set(asked.get() + world.asked.load(Ordering::SeqCst));
            Ok(())
        })
        .unwrap();
    assert!(asked.get() > 50, "people were asked for more {} times", asked.get());
}
