//! A brain that schedules start, a clock by hand, and a store that dies.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{Message, ModelRequest, RunId, TickCause, Timestamp};
use positronic_core::runner::{Clock, FireError, RunHandle};
use positronic_core::schedule::{Schedule, ScheduleRecord, Tick, TickOutcome};
use positronic_core::store::{EventStore, StoreError};
use positronic_core::testing::{Lockstep as _, TestClock};
use positronic_store_suite::{Fault, FaultyStore};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::boundaries::OwnIds;

pub(super) const MINUTE: Duration = Duration::from_mins(1);
pub(super) const HOUR: Duration = Duration::from_hours(1);

pub(super) fn at(time: &str) -> Timestamp {
    Timestamp(time.parse::<jiff::Timestamp>().unwrap().as_microsecond())
}

/// A clock that is set by hand.
#[derive(Debug, Clone)]
pub(super) struct ManualClock(Arc<AtomicI64>);

impl ManualClock {
    pub(super) fn new() -> Self {
        Self(Arc::new(AtomicI64::new(TestClock::BEGIN.0)))
    }

    pub(super) fn passes(&self, time: Duration) {
        self.set(self.now().after(time));
    }

    pub(super) fn set(&self, time: Timestamp) {
        self.0.store(time.0, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub(super) struct Job {
    /// `work` completes, `wait` waits for an approval, `fail` fails.
    how: String,
}

/// The options of a run that ends as `how` says.
pub(super) fn job(how: &str) -> Value {
    json!({"how": how})
}

pub(super) fn reporter() -> Brain<Job, ()> {
    brain("Report")
        .options::<Job>()
        .step("Print", async |cx| match cx.options.how.as_str() {
            "fail" => Err(Error::new("the printer is broken")),
            _ => Ok(()),
        })
        .r#loop("Send", |cx| {
            cx.system("You send reports.")
                .input(cx.options.how.clone())
                .tool("pay", |t| t.requires_approval("it costs").execute(async |_: NoArgs, _| Ok("paid")))
        })
        .build()
}

/// A schedule of the brain every hour.
pub(super) fn hourly(how: &str) -> Schedule {
    Schedule::new("Report").every(HOUR).options(job(how))
}

fn obeying(request: &ModelRequest) -> Reply {
    match request.messages.messages().last() {
        Some(Message::User { text, .. }) if text == "wait" => Reply::call("pay", json!({})),
        _ => Reply::text("Sent."),
    }
}

/// A process: its own runner over a store.
pub(super) fn process(name: &str, store: impl EventStore, clock: impl Clock) -> Runner {
    Runner::new(ScriptedModel::from_fn(obeying))
        .store(store)
        .clock(clock)
        .ids(OwnIds::of(name))
        .lockstep(true)
        .linger(Duration::ZERO)
        .brain(reporter())
}

/// Looks once, as a server does, and starts the runs of ticks without waiting for them.
pub(super) async fn look(runner: &Runner) -> Vec<Result<RunHandle<Value>, FireError>> {
    let mut fired = Vec::new();
    for timer in runner.client().schedules().due().await.unwrap() {
        fired.push(runner.fire(&timer).await);
    }
    fired
}

/// Looks once, waits for the started runs, and returns them.
pub(super) async fn fire(runner: &Runner) -> Vec<RunId> {
    let mut runs = Vec::new();
    for run in look(runner).await {
        match run {
            Ok(run) => {
                run.settled().await;
                runs.push(run.id().clone());
            }
            Err(FireError::Gone { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    runs
}

/// Waits until a run has ended.
pub(super) async fn finish(runner: &Runner, run: &RunId) {
    let run = match runner.resume(run).await {
        Ok(run) => run,
        // The runner has noticed first that the run has work.
        Err(_) => runner.open(run).await.unwrap(),
    };
    run.settled().await;
}

pub(super) async fn record(runner: &Runner) -> ScheduleRecord {
    runner.client().schedules().get("report").await.unwrap().unwrap()
}

/// The ticks of the schedule in order: time and outcome in words.
pub(super) async fn ticks(runner: &Runner) -> Vec<String> {
    let mut ticks = runner.client().schedules().ticks("report", None, 1000).await.unwrap();
    ticks.reverse();
    ticks.iter().map(words).collect()
}

/// A tick in words, such as `09:00 started`.
pub(super) fn words(tick: &Tick) -> String {
    let by_hand = if tick.cause == TickCause::Manual { " by hand" } else { "" };
    let what = match &tick.outcome {
        TickOutcome::Due => "due".to_owned(),
        TickOutcome::Buffered => "buffered".to_owned(),
        TickOutcome::Started { .. } => "started".to_owned(),
        TickOutcome::Skipped { reason } => format!("skipped: {reason}"),
        TickOutcome::Missed { reason } => format!("missed: {reason}"),
        other => panic!("{other:?}"),
    };
    format!("{}{by_hand} {what}", &tick.nominal.to_string()[11..16])
}

/// Dies at a write: no later write succeeds. If `written`, an append itself succeeds and only its answer is lost.
pub(super) fn dying<S: EventStore>(store: S, dies_at: usize, written: bool) -> (FaultyStore<S>, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let (appends, entries) = (Arc::clone(&count), Arc::clone(&count));
    let dead = || StoreError::Unusable { message: "the process is dead".to_owned() };
    let store = FaultyStore::new(store, move |_, _| match appends.fetch_add(1, Ordering::SeqCst) {
        number if number == dies_at && written => Some(Fault::Unanswered(dead())),
        number if number >= dies_at => Some(Fault::Refused(dead())),
        _ => None,
    });
    let store = store.reading(move |method| match method {
        "put_entry" | "remove_entry" => (entries.fetch_add(1, Ordering::SeqCst) >= dies_at).then(dead),
        _ => None,
    });
    (store, count)
}
