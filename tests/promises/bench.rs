//! Several processes over one store.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use positronic_core::dsl::Runnable;
use positronic_core::machine::{Refusal, RunState};
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prices::PriceTable;
use positronic_core::projection::timeline::Timeline;
use positronic_core::projection::transcript;
use positronic_core::record::{
    Actor, Event, EventKind, Message, ModelRequest, Path, RunId, Seq, Signal, SignalId, SignalKind, Start, ToolResult,
};
use positronic_core::runner::{Client, RunHandle, Runner, Settled, SignalError};
use positronic_core::store::{EventStore, MemoryStore};
use positronic_core::testing::{Lockstep as _, TestClock};
use serde_json::{Value, json};

use crate::stores::Fresh;
use crate::support::boundaries::OwnIds;
use crate::support::checks::{check_order, check_requests};
use crate::support::watchdog::watch;
use crate::support::{path, paths, tool_texts};

/// A store, and all requests of the processes over it.
#[derive(Clone)]
pub(crate) struct Bench<S = MemoryStore> {
    pub(crate) store: S,
    clock: TestClock,
    sent: Arc<Mutex<Vec<ModelRequest>>>,
    lockstep: bool,
    prices: Option<PriceTable>,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::on(MemoryStore::new())
    }
}

/// Id of the run that [`Bench::start`] starts.
pub(crate) fn run_id() -> RunId {
    RunId::new("run")
}

impl<S: Fresh> Bench<S> {
    pub(crate) fn fresh() -> Self {
        Self::on(S::fresh())
    }

    /// Copies a prefix of the run's log into a fresh store, as a process that died there would have left it.
    pub(crate) async fn cut(&self, until: usize) -> Self {
        let cut = Self { prices: self.prices.clone(), clock: self.clock.clone(), ..Self::fresh() };
        cut.client("copy").import(&run_id(), &self.log().await[..until]).await.unwrap();
        cut
    }

    /// Makes the worker that has claimed the run look dead to the others, although it is alive.
    pub(crate) async fn declare_dead(&self) {
        let claim = self.store.run(&run_id()).await.unwrap().claim.unwrap();
        self.store.declare_dead(&claim.owner);
    }
}

impl<S: EventStore + Clone> Bench<S> {
    pub(crate) fn on(store: S) -> Self {
        watch();
        Self { store, clock: TestClock::default(), sent: Arc::default(), lockstep: true, prices: None }
    }

    /// Records outcomes in the order of their arrival.
    pub(crate) fn free(self) -> Self {
        Self { lockstep: false, ..self }
    }

    /// Prices each token of an answer at a millionth.
    pub(crate) fn priced(self) -> Self {
        let table =
            json!({"as_of": "2026-01-01", "currency": "EUR", "prices": {"scripted/*": {"input": 1, "output": 1}}});
        Self { prices: Some(serde_json::from_value(table).unwrap()), ..self }
    }

    /// Creates a process whose model answers a request by its path. Its worker's name is `process-0`.
    pub(crate) fn process(&self, name: &str, says: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Runner {
        self.lingering(name, Duration::MAX, says)
    }

    /// Creates a process that releases a run after it has waited for this long.
    pub(crate) fn lingering(
        &self,
        name: &str,
        linger: Duration,
        says: impl Fn(&str) -> Reply + Send + Sync + 'static,
    ) -> Runner {
        let sent = Arc::clone(&self.sent);
        let model = ScriptedModel::from_fn(move |request| {
            sent.lock().unwrap().push(request.clone());
            says(request.path.as_str())
        });
        Runner::new(model)
            .store(self.store.clone())
            .clock(self.clock.clone())
            .ids(OwnIds::of(name))
            .lockstep(self.lockstep)
            .linger(linger)
            .prices(self.prices.clone())
    }

    /// Creates the client of a process without brains.
    pub(crate) fn client(&self, name: &str) -> Client {
        self.process(name, |place| panic!("{place} is asked")).client()
    }

    /// Starts the run `run`.
    pub(crate) async fn start<B>(&self, process: &Runner, brain: B) -> RunHandle<B::Result>
    where
        B: Runnable<Options = ()>,
    {
        let start = Start { id: Some(SignalId::new("run")), ..Start::default() };
        process.start_with(brain, (), start).await.unwrap()
    }

    /// Waits until the worker of a run has read the signals of other processes, and the run has settled.
    pub(crate) async fn settled<R>(&self, run: &RunHandle<R>) -> Settled {
        loop {
            let next = self.store.run(run.id()).await.unwrap().next;
            // No time passes meanwhile, so scheduler turns are counted.
            for turn in 0.. {
                if run.state().next >= next {
                    break;
                }
                assert!(turn < 10_000_000, "the run never reads what is written: {:?}", run.state());
                tokio::task::yield_now().await;
            }
            let settled = crate::support::settled(run).await;
            if self.store.run(run.id()).await.unwrap().next == run.state().next {
                return settled;
            }
        }
    }

    /// Returns the paths of the run's pending calls, after its worker has read the signals of other processes.
    pub(crate) async fn waits<R>(&self, run: &RunHandle<R>) -> Vec<String> {
        match self.settled(run).await {
            Settled::Waiting(pending) => paths(&pending),
            other => panic!("the run does not wait: {other:?}"),
        }
    }

    pub(crate) async fn log(&self) -> Vec<Arc<Event>> {
        self.store.read(&run_id(), Seq(0), usize::MAX).await.unwrap()
    }

    /// Checks the run's log and returns it.
    pub(crate) async fn checked(&self) -> Vec<Arc<Event>> {
        let log = self.log().await;
        let state = RunState::replay(log.iter().map(|event| &**event)).unwrap();
        check_order(&log, state.has_ended());
        check_requests(&log, &self.sent());
        log
    }

    pub(crate) async fn transcript(&self) -> String {
        transcript(&Timeline::of(self.log().await.iter().map(|event| &**event)))
    }

    /// Returns all requests in order.
    pub(crate) fn sent(&self) -> Vec<ModelRequest> {
        self.sent.lock().unwrap().clone()
    }

    /// Returns the messages of the last request.
    pub(crate) fn last_messages(&self) -> Vec<Message> {
        self.sent().pop().unwrap().messages.messages()
    }

    /// Returns the results in the last request.
    pub(crate) fn last_results(&self) -> Vec<String> {
        tool_texts(&self.sent().pop().unwrap())
    }
}

pub(crate) fn by(name: &str) -> Actor {
    Actor::builder().by(name).channel("test").build()
}

pub(crate) fn signal(id: &str, kind: SignalKind) -> Signal {
    Signal { id: SignalId::from(id), actor: by("ann"), kind }
}

pub(crate) fn approve(call: &str) -> SignalKind {
    SignalKind::Approve { call: path(call), arguments: None }
}

pub(crate) fn edit(call: &str, arguments: Value) -> SignalKind {
    SignalKind::Approve { call: path(call), arguments: Some(arguments) }
}

pub(crate) fn reject(call: &str, reason: &str) -> SignalKind {
    SignalKind::Reject { call: path(call), reason: Some(reason.to_owned()) }
}

pub(crate) fn refusal(error: SignalError) -> Refusal {
    match error {
        SignalError::Refused(refusal) => refusal,
        other => panic!("the store failed: {other}"),
    }
}

/// Finds the first event of a name at a path, and returns the number after it.
pub(crate) fn behind(log: &[Arc<Event>], at: &str, name: &str) -> usize {
    let found = log.iter().position(|event| event.path.as_str() == at && event.kind.name() == name);
    found.unwrap_or_else(|| panic!("no {name} at {at}")) + 1
}

/// Returns the paths of the events of one name.
pub(crate) fn named(log: &[Arc<Event>], name: &str) -> Vec<String> {
    log.iter().filter(|event| event.kind.name() == name).map(|event| event.path.to_string()).collect()
}

/// Returns the result of a call.
pub(crate) fn result_of(log: &[Arc<Event>], call: &str) -> ToolResult {
    let found = log.iter().find_map(|event| match &event.kind {
        EventKind::LoopToolResult { result, .. } if event.path == path(call) => Some(result.clone()),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("{call} has no result"))
}

/// Returns the decisions: who, what, and about which call.
pub(crate) fn decisions(log: &[Arc<Event>]) -> Vec<(Path, Option<String>)> {
    let decided = log.iter().filter_map(|event| match &event.kind {
        EventKind::LoopApprovalDecided { actor, .. } => Some((event.path.clone(), actor.by.clone())),
        _ => None,
    });
    decided.collect()
}

/// Answers with text in the first iteration of the loop `Work`, and finishes in all others.
pub(crate) fn in_two_iterations(first: Reply) -> impl Fn(&str) -> Reply + Send + Sync + Clone + 'static {
    move |place| if place == "Work/0" { first.clone() } else { crate::support::done() }
}
