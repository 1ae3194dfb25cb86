//! A gardener whose model sets and fires triggers, and its processes.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{Event, EventKind, Fired, Message, ModelRequest, RunId, Seq, Timer, Timestamp, Trigger};
use positronic_core::runner::{Client, Clock, FireError};
use positronic_core::store::{EventStore, RunFilter, StoreError, TimerFilter};
use positronic_core::testing::{Lockstep as _, TestClock};
use positronic_plugins::Triggers;
use positronic_store_suite::{Fault, FaultyStore};
use serde_json::Value;

use crate::support::boundaries::OwnIds;
use crate::support::path;

/// A manual clock.
#[derive(Debug, Clone)]
pub(super) struct ManualClock(Arc<AtomicI64>);

impl ManualClock {
    pub(super) fn new() -> Self {
        Self(Arc::new(AtomicI64::new(TestClock::BEGIN.0)))
    }

    pub(super) fn passes(&self, time: Duration) {
        self.0.fetch_add(i64::try_from(time.as_micros()).unwrap(), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }
}

pub(super) const MINUTE: Duration = Duration::from_mins(1);

/// Calls the tool that the last message of a person names, with the JSON after it; otherwise names the run's trigger.
pub(super) fn obeying(request: &ModelRequest) -> Reply {
    let messages = request.messages.messages();
    match messages.last() {
        Some(Message::Tool { text, .. }) => Reply::text(text.clone()),
        Some(Message::User { text, .. }) => {
            let called = text.split_once(' ').and_then(|(tool, rest)| Some((tool, serde_json::from_str(rest).ok()?)));
            let context: String = request.context.iter().map(|item| format!("{}: {}", item.name, item.text)).collect();
            match called {
                Some((tool, arguments)) => Reply::call(tool, arguments),
                None if request.context.is_empty() => Reply::text(text.clone()),
                None => Reply::text(context),
            }
        }
        other => panic!("no provider accepts a dialogue that ends with {other:?}"),
    }
}

pub(super) fn gardener(triggers: Triggers) -> Brain<(), ()> {
    brain("Gardener")
        .r#loop("Chat", move |cx| {
            cx.system("You look after a garden.")
                .plugin(triggers.clone())
                .tool("pay", |t| t.requires_approval("it costs").execute(async |_: NoArgs, _| Ok("paid")))
        })
        .build()
}

/// A process: its own runner over a store.
pub(super) fn process(name: &str, store: impl EventStore, clock: impl Clock) -> Runner {
    process_with(name, store, clock, Triggers::new())
}

pub(super) fn process_with(name: &str, store: impl EventStore, clock: impl Clock, triggers: Triggers) -> Runner {
    Runner::new(ScriptedModel::from_fn(obeying))
        .store(store)
        .clock(clock)
        .ids(OwnIds::of(name))
        .lockstep(true)
        .linger(Duration::ZERO)
        .brain(gardener(triggers))
}

/// Sends a message in Ann's conversation and returns the final answer.
pub(super) async fn says(runner: &Runner, text: &str) -> String {
    let chat = runner.conversation("c").user("ann");
    let run = chat.send(gardener(Triggers::new()), (), text).await.unwrap();
    run.result().await.unwrap();
    said(&runner.client(), run.id()).await
}

pub(super) async fn said(client: &Client, run: &RunId) -> String {
    let (_, prompts) = client.state_at(run, client.store().run(run).await.unwrap().next).await.unwrap();
    let prompt = prompts.get(&path("Chat")).unwrap();
    prompt.output.iter().rev().find_map(|output| output.kind.text()).unwrap_or_default()
}

pub(super) async fn create(runner: &Runner, arguments: Value) -> Trigger {
    let said = says(runner, &format!("trigger.create {arguments}")).await;
    let told: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}"));
    let all = timers(runner).await;
    all.into_iter().map(|timer| timer.trigger).find(|trigger| trigger.id.as_str() == told["id"]).unwrap()
}

pub(super) async fn timers(runner: &Runner) -> Vec<Timer> {
    runner.client().triggers(&TimerFilter::default()).await.unwrap()
}

/// Fires due triggers and waits for their runs.
pub(super) async fn fire(runner: &Runner) -> Vec<Result<RunId, FireError>> {
    let mut fired = Vec::new();
    for timer in runner.client().due_triggers().await.unwrap() {
        fired.push(match runner.fire(&timer).await {
            Ok(run) => {
                run.settled().await;
                Ok(run.id().clone())
            }
            Err(error) => Err(error),
        });
    }
    fired
}

pub(super) async fn fired_alone(runner: &Runner) -> RunId {
    match <[_; 1]>::try_from(fire(runner).await) {
        Ok([Ok(run)]) => run,
        other => panic!("{other:?}"),
    }
}

pub(super) async fn log(runner: &Runner, run: &RunId) -> Vec<Arc<Event>> {
    runner.client().events(run, Seq(0)).await.unwrap()
}

pub(super) async fn because(runner: &Runner, run: &RunId) -> Option<Fired> {
    match &log(runner, run).await[0].kind {
        EventKind::BrainStart(begin) => begin.start.as_ref()?.fired.clone(),
        other => panic!("{other:?}"),
    }
}

/// Dies at an append: no later write succeeds. If `written`, the append itself succeeds and only its acknowledgement is
/// lost.
pub(super) fn dying<S: EventStore>(store: S, at: usize, written: bool) -> (FaultyStore<S>, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let dead = || StoreError::Unusable { message: "the process is dead".to_owned() };
    let store = FaultyStore::new(store, move |_, _| match counted.fetch_add(1, Ordering::SeqCst) {
        number if number == at && written => Some(Fault::Unanswered(dead())),
        number if number >= at => Some(Fault::Refused(dead())),
        _ => None,
    });
    (store, count)
}

/// Continues the work of a dead process until none is left.
pub(super) async fn continue_runs(runner: &Runner) {
    let client = runner.client();
    for row in client.store().runs(&RunFilter::default()).await.unwrap() {
        if !row.status.is_over() {
            runner.resume(&row.run).await.unwrap().settled().await;
        }
    }
}
