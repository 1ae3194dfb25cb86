//! What every tale bears at any moment: the death of its process, a cancellation, a pause, and a fork.
//!
//! The functions disturb a tale at each boundary of its undisturbed log, at rest, when no process works on the run, and, for cancellations
//! and pauses, also at work, in a race with its worker.

use std::sync::{Arc, Mutex, OnceLock};

use positronic_core::machine::{Refusal, RunState};
use positronic_core::record::{Event, EventKind, RunId, Seq, SignalId, SignalKind, Start};
use positronic_core::runner::{Client, Fork, ResumeError, RunHandle, Runner, Settled, SignalError};
use positronic_core::store::MemoryStore;
use positronic_core::testing::TestClock;
use positronic_store_suite::FaultyStore;
use serde_json::Value;

use super::boundaries::{Baseline, Death, End, Tale};
use super::checks::{check_order, check_timeline};
use super::settled;

/// Ends the same after a crash at every boundary.
pub(crate) async fn crash(tale: &Tale, baseline: &Baseline) {
    for death in &baseline.deaths {
        if let Some((end, log)) = tale.after(baseline, death).await {
            assert_eq!(end, baseline.end, "after {}", death.until);
            check_undone(tale, &log);
        }
    }
}

/// Ends as cancelled, in a complete log, and does nothing afterwards but undo its stages.
pub(crate) async fn cancel(tale: &Tale, baseline: &Baseline) {
    let kind = || SignalKind::Cancel { reason: Some("no longer needed".to_owned()) };
    for death in &baseline.deaths {
        let resting = Resting::import(tale, baseline, death).await;
        if !resting.takes(kind()).await {
            continue;
        }
        match resting.runner.resume(&baseline.run).await {
            Ok(run) => assert_eq!(settled(&run).await, Settled::Cancelled, "after {}", death.until),
            Err(ResumeError::Over { .. }) => {}
            Err(error) => panic!("{error} after {}", death.until),
        }
        assert_eq!(resting.asked(), 0, "a cancelled run asks no model, after {}", death.until);
        let deeds = tale.ledger.deeds();
        assert_eq!(work(&deeds), work(&death.deeds), "a cancelled run only undoes, after {}", death.until);
        let log = resting.runner.client().events(&baseline.run, Seq(0)).await.unwrap();
        assert_eq!(log[..death.until], baseline.log[..death.until], "written events remain");
        check_cancelled(&log);
        check_undone(tale, &log);
    }
    let mut cancelled = 0;
    for until in boundaries(&baseline.log) {
        let (run, is_taken) = at_work(tale, until, kind()).await;
        let log = run.events(Seq(0)).await.unwrap();
        match settled(&run).await {
            Settled::Cancelled => {
                check_cancelled(&log);
                check_undone(tale, &log);
            }
            Settled::Completed(_) => assert!(!is_taken, "it has completed and is cancelled, after {until}"),
            other => panic!("{other:?} after {until}"),
        }
        cancelled += usize::from(is_taken);
    }
    assert!(cancelled > 0, "no cancellation has come in time");
}

/// Does nothing while it is paused, and ends the same once it is resumed.
pub(crate) async fn pause(tale: &Tale, baseline: &Baseline) {
    for death in &baseline.deaths {
        let resting = Resting::import(tale, baseline, death).await;
        if !resting.takes(SignalKind::Pause).await {
            continue;
        }
        let run = resting.runner.resume(&baseline.run).await.unwrap();
        assert_eq!(settled(&run).await, Settled::Paused, "after {}", death.until);
        assert_eq!(resting.asked(), 0, "a paused run asks no model, after {}", death.until);
        assert_eq!(tale.ledger.deeds(), death.deeds, "a paused run does nothing, after {}", death.until);
        tale.drive(&run).await;
        assert_eq!(tale.end(&run).await, baseline.end, "after {}", death.until);
    }
    let mut paused = 0;
    for until in boundaries(&baseline.log) {
        let (run, is_taken) = at_work(tale, until, SignalKind::Pause).await;
        let log = run.events(Seq(0)).await.unwrap();
        assert_eq!(log.iter().any(|event| event.kind.name() == "BRAIN_PAUSED"), is_taken);
        check_order(&log, true);
        assert_eq!(tale.end(&run).await, baseline.end, "after {until}");
        paused += usize::from(is_taken);
    }
    assert!(paused > 0, "no pause has come in time");
}

/// Ends the same in a fork at every boundary, does what the original did after it, and leaves the original as it is.
pub(crate) async fn fork(tale: &Tale, baseline: &Baseline) {
    for until in boundaries(&baseline.log) {
        // What was done after these events is done again.
        let at_least = baseline.deaths.iter().filter(|death| death.until == until).map(|death| &death.deeds);
        let deeds = at_least.min_by_key(|deeds| deeds.len()).unwrap_or(&baseline.end.deeds).clone();
        let death = Death { until, deeds };
        let (resting, fork) = (Resting::of(tale, baseline, &death), RunId::from("fork"));
        let client = resting.runner.client();
        client.import(&baseline.run, &baseline.log).await.unwrap();
        let at = Seq(u64::try_from(until - 1).unwrap());
        let options = Fork::builder().run(fork.clone()).build();
        client.fork(&baseline.run, at, options).await.unwrap();
        let forked = client.events(&fork, Seq(0)).await.unwrap();
        let has_ended = RunState::replay(forked.iter().map(|event| &**event)).unwrap().has_ended();
        if !has_ended {
            let run = resting.runner.resume(&fork).await.unwrap();
            tale.drive(&run).await;
            let End { transcript, state, deeds } = tale.end(&run).await;
            assert_eq!(state, baseline.end.state, "a fork after {until}");
            assert_eq!(transcript, baseline.end.transcript, "a fork after {until}");
            assert_eq!(whats(&deeds), whats(&baseline.end.deeds), "a fork after {until}");
            check_order(&run.events(Seq(0)).await.unwrap(), true);
        }
        assert_eq!(client.events(&baseline.run, Seq(0)).await.unwrap(), baseline.log, "the original stays");
    }
}

/// Returns how many events the log has at each end of a transition.
fn boundaries(log: &[Arc<Event>]) -> impl Iterator<Item = usize> {
    (1..).zip(log).filter(|(_, event)| !event.with_next).map(|(until, _)| until)
}

/// Returns the deeds, by the paths of what did them, that are no undo of another.
fn work(deeds: &[(String, String)]) -> Vec<&(String, String)> {
    let is_undo = |key: &str| key.rsplit(['/', ':']).next().is_some_and(|stage| stage.starts_with("Undo "));
    deeds.iter().filter(|(key, _)| !is_undo(key)).collect()
}

/// Returns what was done, without the keys, which in a fork are others.
fn whats(deeds: &[(String, String)]) -> Vec<&str> {
    let mut whats: Vec<&str> = deeds.iter().map(|(_, what)| what.as_str()).collect();
    whats.sort_unstable();
    whats
}

/// Checks that each brain with something to undo has done all of it, in that order. The keys of deeds end with the paths of what did them.
fn check_undone(tale: &Tale, log: &[Arc<Event>]) {
    let path = |key: &str| key.rsplit_once(':').map_or(key, |(_, path)| path).to_owned();
    let done: Vec<_> = tale.ledger.deeds().iter().map(|(key, _)| path(key)).collect();
    let undo = |event: &Event| match &event.kind {
        EventKind::UndoStart { steps, .. } => steps.clone(),
        _ => Vec::new(),
    };
    for (place, event) in (1..).zip(log) {
        // What a brain has not undone when it is cancelled, the brain around it undoes.
        let later: Vec<_> = log[place..].iter().flat_map(|event| undo(event)).map(|step| step.undoes).collect();
        let wanted = undo(event).into_iter().filter(|step| !later.contains(&step.undoes));
        let wanted: Vec<_> = wanted.map(|step| event.path.stage(&step.name).to_string()).collect();
        let done: Vec<_> = done.iter().filter(|path| wanted.contains(path)).collect();
        assert_eq!(done, wanted.iter().collect::<Vec<_>>(), "undone in this order");
    }
}

fn check_cancelled(log: &[Arc<Event>]) {
    let last = log.last().unwrap();
    assert!(matches!(last.kind, EventKind::BrainCancelled { .. }) && last.path.is_root(), "it ends with {last:?}");
    check_order(log, true);
    check_timeline(log);
}

/// A run on which no process works, and a process that could.
struct Resting<'t> {
    baseline: &'t Baseline,
    runner: Runner,
    sent: Arc<Mutex<Vec<positronic_core::record::ModelRequest>>>,
}

impl<'t> Resting<'t> {
    fn of(tale: &Tale, baseline: &'t Baseline, death: &Death) -> Self {
        tale.ledger.is_now(&death.deeds);
        let (sent, at) = (Arc::default(), baseline.log[death.until - 1].at);
        Self { baseline, runner: tale.runner(MemoryStore::new(), "second", at, &sent), sent }
    }

    async fn import(tale: &Tale, baseline: &'t Baseline, death: &Death) -> Self {
        let resting = Self::of(tale, baseline, death);
        resting.runner.client().import(&baseline.run, &baseline.log[..death.until]).await.unwrap();
        resting
    }

    /// Sends a signal, and returns whether the run takes it, which it does until it has ended.
    async fn takes(&self, kind: SignalKind) -> bool {
        is_taken(self.runner.client().signal(&self.baseline.run, kind, "ann").await)
    }

    fn asked(&self) -> usize {
        self.sent.lock().unwrap().len()
    }
}

fn is_taken(sent: Result<Seq, SignalError>) -> bool {
    match sent {
        Ok(_) => true,
        Err(SignalError::Refused(Refusal::Ended)) => false,
        Err(error) => panic!("{error}"),
    }
}

/// Plays a tale from its beginning, and sends a signal when its worker appends beyond this many events. Returns the run at its end, and whether
/// it has taken the signal.
async fn at_work(tale: &Tale, until: usize, kind: SignalKind) -> (RunHandle<Value>, bool) {
    tale.ledger.is_now(&[]);
    let sending = Arc::new(Mutex::new(None));
    // A client has the clock of its runner, which has this store.
    let client = Arc::new(OnceLock::<Client>::new());
    let (sender, sends, kind) = (Arc::clone(&sending), Arc::clone(&client), Mutex::new(Some(kind)));
    let store = FaultyStore::new(MemoryStore::new(), move |run, append| {
        let is_there = append.expected.index() + append.events.len() >= until;
        if let Some(kind) = is_there.then(|| kind.lock().unwrap().take()).flatten() {
            let (client, run) = (sends.get().unwrap().clone(), run.clone());
            let sent = tokio::spawn(async move { client.signal(&run, kind, "ann").await });
            *sender.lock().unwrap() = Some(sent);
        }
        None
    });
    let runner = tale.runner(store, "first", TestClock::BEGIN, &Arc::default());
    client.set(runner.client()).unwrap();
    let start = Start { id: Some(SignalId::new("run")), ..Start::default() };
    let run = runner.start_definition(Arc::clone(&tale.definition), tale.options.clone(), start).await.unwrap();
    let mut taken = None;
    loop {
        let now = settled(&run).await;
        let sent = sending.lock().unwrap().take();
        if let Some(sent) = sent {
            taken = Some(is_taken(sent.await.unwrap()));
            continue;
        }
        match now {
            Settled::Waiting(pending) => tale.answer(&run, &pending[0]).await,
            Settled::Paused => tale.send(&run, "resume", SignalKind::Resume).await,
            Settled::Completed(_) | Settled::Cancelled => return (run, taken.unwrap()),
            other => panic!("{other:?} after {until}"),
        }
    }
}
