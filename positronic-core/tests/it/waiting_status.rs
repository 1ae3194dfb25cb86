//! The reasons why a run waits, for every prefix of a few logs.

use std::time::Duration;

use positronic_core::dsl::IntoBrain as _;
use positronic_core::machine::{RunState, why};
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::record::{ModelError, ModelErrorKind, Start, Status};
use positronic_core::runner::{RunHandle, Settled};
use positronic_core::store::prelude::*;
use positronic_core::store::{MemoryStore, RunFilter};
use positronic_core::testing::{CountedIds, Story, TestClock};
use serde_json::json;

use crate::support::{
    Job, Journal, Play, Shop, ShopBuilder, ShopLoop, ShopTool, batch, done, path, tools, waits, workshop,
};

/// Writes the reasons after each event at which the run waits.
fn waiting_texts(story: &Story) -> String {
    let mut state = RunState::default();
    let mut lines = Vec::new();
    let mut begin = None;
    for event in story.log() {
        state.apply(event).unwrap();
        let begin = begin.get_or_insert(event.at);
        if let Some(why) = why(&state) {
            let until = why.until.map_or_else(String::new, |until| format!(" until {:?}", until.since(*begin)));
            let calls: Vec<_> = why.calls.iter().map(ToString::to_string).collect();
            let name = event.kind.name();
            lines.push(format!("{} {name}: {}\n  {:?} {calls:?}{until}", event.seq, why.sentence, why.whom));
        }
    }
    lines.join("\n")
}

/// Waits for the events that its id names.
fn asking() -> ShopTool {
    Tool::new("ask", |t: ShopBuilder| {
        t.execute(async |job: Job, cx: Shop| {
            let reply = cx.result(&job.id);
            let slack = || webhook::<NoArgs>("slack").on(&job.id);
            Ok(match job.id.as_str() {
                "reply" => reply.wait_for_reply::<NoArgs>("Well?"),
                "either" => reply.wait_for([slack(), webhook::<NoArgs>("form").on("1").person().prompt("Name it")]),
                _ => reply.wait_for([slack().timeout(Duration::from_secs(60))]),
            })
        })
    })
}

async fn settled<R>(run: &RunHandle<R>) {
    assert!(matches!(run.settled().await, Settled::Waiting(_)));
}

#[tokio::test(start_paused = true)]
async fn waiting_run_reports_its_pending_decision_and_its_pause() {
    let play = Play::new([batch([("gated", "a")]), done()]);
    let run = play.start(&workshop(&Journal::default(), tools), ()).await;
    waits(&run).await;
    assert_eq!(run.why().unwrap().calls, [path("Work/0.0")]);
    run.pause().await.unwrap();
    run.resume().await.unwrap();
    run.approve(&path("Work/0.0"), "ann").await.unwrap();
    run.settled().await;

    insta::assert_snapshot!(waiting_texts(&play.story(&run).await), @r#"
    7 LOOP_APPROVAL_REQUESTED: The run has been waiting since event 7 for a person's decision about `gated` at `Work/0.0` (it is dangerous).
      [Person] ["Work/0.0"]
    8 BRAIN_PAUSED: The run is paused since event 8, until a person resumes it.
      [Person] []
    9 BRAIN_RESUMED: The run has been waiting since event 7 for a person's decision about `gated` at `Work/0.0` (it is dangerous).
      [Person] ["Work/0.0"]
    "#);
    assert_eq!(run.why(), None, "it has ended");
}

#[tokio::test(start_paused = true)]
async fn waiting_run_reports_whose_answers_it_needs() {
    let play =
        Play::new([batch([("ask", "reply"), ("ask", "either"), ("ask", "hook"), ("gated", "g"), ("gated", "h")])]);
    let asks = |config: ShopLoop| tools(config).tools([asking()]);
    let run = play.start(&workshop(&Journal::default(), asks), ()).await;
    settled(&run).await;
    run.reply(&path("Work/0.0"), json!({}), "ann").await.unwrap();
    settled(&run).await;

    insta::assert_snapshot!(waiting_texts(&play.story(&run).await), @r#"
    18 LOOP_WAIT: The run has been waiting since event 14 for a person's reply (Well?) to `ask` at `Work/0.0`, the webhook `slack` or a person's answer (Name it) over `form` to `ask` at `Work/0.1`, the webhook `slack` to `ask` at `Work/0.2` and 2 more.
      [Person, Machine] ["Work/0.0", "Work/0.1", "Work/0.2", "Work/0.3", "Work/0.4"] until 60s
    20 LOOP_TOOL_RESULT: The run has been waiting since event 14 for the webhook `slack` or a person's answer (Name it) over `form` to `ask` at `Work/0.1`, the webhook `slack` to `ask` at `Work/0.2`, a person's decision about `gated` at `Work/0.3` (it is dangerous) and 1 more.
      [Machine, Person] ["Work/0.1", "Work/0.2", "Work/0.3", "Work/0.4"] until 60s
    "#);
}

#[tokio::test(start_paused = true)]
async fn retrying_run_reports_its_retry() {
    let down = || Reply::error(ModelError::new(ModelErrorKind::Server, "down"));
    let play = Play::new([down(), batch([("flaky", "a"), ("gated", "b")]), done()]);
    let flaky = |config: ShopLoop| {
        tools(config).tool("flaky", |t| {
            t.read_only().execute(async |_: Job, cx: Shop| match cx.services.count() {
                1 => Err(Error::transient("again")),
                _ => Ok("done"),
            })
        })
    };
    let run = play.start(&workshop(&Journal::default(), flaky), ()).await;
    settled(&run).await;

    insta::assert_snapshot!(waiting_texts(&play.story(&run).await), @r#"
    5 LOOP_MODEL_RETRY: The run waits for another try of the model of `Work`.
      [Time] [] until 500ms
    12 LOOP_TOOL_RETRY: The run has been waiting since event 11 for a person's decision about `gated` at `Work/0.1` (it is dangerous) and another try of `flaky` at `Work/0.0`.
      [Person, Time] ["Work/0.1"] until 1s
    14 LOOP_TOOL_RESULT: The run has been waiting since event 11 for a person's decision about `gated` at `Work/0.1` (it is dangerous).
      [Person] ["Work/0.1"]
    "#);
}

/// A runner whose model asks to wait a minute before its first answer, and a brain that asks it.
fn slow(store: &MemoryStore) -> (Runner, Brain<(), ()>) {
    let retry_after = Some(Duration::from_secs(60));
    let busy = ModelError { retry_after, ..ModelError::new(ModelErrorKind::RateLimited, "slow down") };
    let model = ScriptedModel::new([Reply::error(busy), Reply::text("Done.")]);
    let runner = Runner::new(model).store(store.clone()).clock(TestClock::default());
    let runner = runner.ids(CountedIds::default()).linger(Duration::ZERO);
    (runner, brain("Slow").r#loop("Ask", |cx| cx.system("Ask.").input("Go.")).build())
}

#[tokio::test(start_paused = true)]
async fn run_with_only_a_distant_retry_waits_without_a_worker_and_has_not_settled() {
    let store = MemoryStore::new();
    let (runner, slow) = slow(&store);
    let run = runner.start(&slow, ()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(30)).await;

    let row = store.run(run.id()).await.unwrap();

    let wake = row.wake.unwrap();
    assert_eq!(row.status, Status::Waiting);
    assert!(row.claim.as_ref().unwrap().released);
    assert_eq!((row.has_work(row.at), row.has_work(wake)), (false, true));
    assert_eq!(row.why.unwrap(), "The run waits for another try of the model of `Ask`.");
    assert!(matches!(run.settled().await, Settled::Completed(_)));
    assert!(runner.client().now() >= wake);
}

#[tokio::test(start_paused = true)]
async fn driven_run_with_only_a_distant_retry_returns_its_time() {
    let store = MemoryStore::new();
    let (runner, slow) = slow(&store);
    let definition = slow.definition();
    let runner = runner.brain(slow);

    let driven = runner.start_driven(definition, json!(null), Start::default()).await.unwrap();

    assert_eq!(driven.settled, Settled::Waiting(Vec::new()));
    tokio::time::sleep(driven.wake.unwrap().since(runner.client().now())).await;
    let run = store.runs(&RunFilter::default()).await.unwrap().remove(0).run;
    assert!(matches!(runner.drive(&run).await.unwrap().settled, Settled::Completed(_)));
}
