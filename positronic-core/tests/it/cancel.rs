//! Cancel stops effects in flight and answers every call; pause starts no new effect.

use std::time::Duration;

use futures::future::BoxFuture;
use positronic_core::machine::Refusal;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::model::{DeltaSink, Model, Piece};
use positronic_core::prelude::*;
use positronic_core::record::Status;
use positronic_core::record::{DeltaKind, LoopOutcome, ModelError, ModelRequest, ModelResponse, ToolResult};
use positronic_core::runner::{RunError, Settled, SignalError};
use positronic_core::testing::{CountedIds, Lockstep as _, Story, Test, TestClock};
use serde_json::json;

use crate::support::checks::check_log;
use crate::support::{
    Board, Job, Journal, Play, Shop, ShopLoop, batch, done, events_named, path, prompt, results, slow_batch, tools,
    waits, workshop,
};

/// Records that it was dropped before its work was done.
struct Guard {
    journal: Journal,
    what: String,
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.journal.note(format!("{} dropped", self.what));
    }
}

/// Works for a minute with a drop guard.
async fn guarded(job: Job, cx: Shop) -> Result<()> {
    cx.services.note(&job.id);
    let _guard = Guard { journal: cx.services.as_ref().clone(), what: job.id };
    tokio::time::sleep(Duration::from_secs(60)).await;
    Ok(())
}

fn with_guarded(config: ShopLoop) -> ShopLoop {
    tools(config).tool("guarded", |t| t.execute(guarded))
}

async fn a_while() {
    tokio::time::sleep(Duration::from_secs(1)).await;
}

/// A model that streams forever.
#[derive(Debug)]
struct Babbling(Journal);

impl Model for Babbling {
    fn name(&self) -> String {
        "test/babbling".to_owned()
    }

    fn call<'a>(
        &'a self,
        _: &'a ModelRequest,
        deltas: &'a dyn DeltaSink,
    ) -> BoxFuture<'a, std::result::Result<ModelResponse, ModelError>> {
        Box::pin(async move {
            let _guard = Guard { journal: self.0.clone(), what: "stream".to_owned() };
            loop {
                let text = "bla ".to_owned();
                deltas.piece(Piece { part: 0, kind: DeltaKind::Text, call: None, tool: None, text });
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        })
    }

    fn wire(&self, request: &ModelRequest) -> String {
        request.system.to_string()
    }
}

#[tokio::test(start_paused = true)]
async fn cancel_stops_a_streaming_model() {
    let journal = Journal::default();
    let runner =
        Runner::new(Babbling(journal.clone())).clock(TestClock::default()).ids(CountedIds::default()).lockstep(true);
    let run = Test::with(runner).start(&workshop(&journal, tools), ()).await;
    a_while().await;
    assert_eq!(run.status(), Status::Running);

    run.cancel("enough").await.unwrap();

    assert_eq!(run.settled().await, Settled::Cancelled);
    tokio::task::yield_now().await;
    assert_eq!(journal.take(), ["stream dropped"]);
    let story = Story::of(&run).await;
    check_log(&story, &run.state());
    assert_eq!(prompt(&story, "Work").outcome, Some(LoopOutcome::Cancelled));
    assert_eq!(run.result().await.unwrap_err(), RunError::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn cancel_stops_tools_and_answers_every_call() {
    let journal = Journal::default();
    let jobs = [("safe", "a", 0), ("guarded", "b", 0), ("gated", "c", 0), ("safe", "d", 0)];
    let play = Play::free([slow_batch(jobs)]);
    let run = play.start(&workshop(&journal, with_guarded), ()).await;
    a_while().await;

    run.cancel("enough").await.unwrap();

    assert_eq!(run.settled().await, Settled::Cancelled);
    tokio::task::yield_now().await;
    assert_eq!(journal.take(), ["a", "b", "b dropped"]);
    let story = play.story(&run).await;
    let results = results(&story, "Work");
    assert!(results[0].is_success(), "completed calls keep their results");
    assert!(matches!(&results[1], ToolResult::Interrupted { reason } if reason.contains("is unknown")), "{results:?}");
    assert!(matches!(&results[2], ToolResult::Skipped { reason } if reason.contains("enough")), "{results:?}");
    assert!(matches!(&results[3], ToolResult::Skipped { .. }), "{results:?}");
    assert_eq!(events_named(&story, "LOOP_APPROVAL_WITHDRAWN"), ["Work/0.2"]);
    assert_eq!(story.state()["done"], json!(["a"]));
}

#[tokio::test(start_paused = true)]
async fn cancel_of_a_suspended_run_answers_pending_calls() {
    let journal = Journal::default();
    let asking = |config: ShopLoop| {
        tools(config).tool("ask", |t| t.wait(|_: &Job, _| [webhook::<NoArgs>("go").on("1")]).execute(unguarded))
    };
    let play = Play::new([batch([("ask", "a"), ("gated", "b")])]);
    let run = play.start(&workshop(&journal, asking), ()).await;
    waits(&run).await;

    run.cancel("no").await.unwrap();

    assert_eq!(run.settled().await, Settled::Cancelled);
    let story = play.story(&run).await;
    assert!(matches!(results(&story, "Work")[..], [ToolResult::Interrupted { .. }, ToolResult::Skipped { .. }]));
    let SignalError::Refused(refusal) = run.approve(&path("Work/0.1"), "ann").await.unwrap_err() else { panic!() };
    assert_eq!(refusal, Refusal::Ended);
}

async fn unguarded(job: Job, cx: Shop) -> Result<String> {
    cx.services.note(&job.id);
    Ok(job.id)
}

#[tokio::test(start_paused = true)]
async fn cancel_answers_nested_calls_deepest_first() {
    let journal = Journal::default();
    let inner = || {
        brain("Inner").services::<Journal>().state(Board::default()).r#loop("Deep", |cx| with_guarded(cx.system("")))
    };
    let outer = brain("Outer")
        .services::<Journal>()
        .state(Board::default())
        .r#loop("Work", move |cx| with_guarded(cx.system("")).brain("inner", inner()))
        .bind(journal.clone());
    let play = Play::of(
        ScriptedModel::new([Reply::calls([("inner", json!({})), ("guarded", json!({"id": "o"}))])])
            .on("Work/0.0/Deep", [batch([("guarded", "i"), ("gated", "g")])]),
        false,
    );
    let run = play.start(&outer, ()).await;
    a_while().await;
    let before = run.state().next.index();

    run.cancel("enough").await.unwrap();

    let story = play.story(&run).await;
    let after: Vec<_> =
        story.log()[before..].iter().map(|event| format!("{} {}", event.path, event.kind.name())).collect();
    assert_eq!(
        after,
        [
            "Work/0.0/Deep/0.0 LOOP_TOOL_RESULT",
            "Work/0.0/Deep/0.1 LOOP_APPROVAL_WITHDRAWN",
            "Work/0.0/Deep/0.1 LOOP_TOOL_RESULT",
            "Work/0.0/Deep LOOP_COMPLETE",
            "Work/0.0 BRAIN_CANCELLED",
            "Work/0.0 LOOP_BRAIN_COMPLETE",
            "Work/0.0 LOOP_TOOL_RESULT",
            "Work/0.1 LOOP_TOOL_RESULT",
            "Work LOOP_COMPLETE",
            " BRAIN_CANCELLED",
        ]
    );
    tokio::task::yield_now().await;
    let mut noted = journal.take();
    noted.sort();
    assert_eq!(noted, ["i", "i dropped", "o", "o dropped"]);
}

#[tokio::test(start_paused = true)]
async fn cancel_stops_a_step() {
    let journal = Journal::default();
    let long = brain("Long")
        .services::<Journal>()
        .step("Sleep", async |cx| {
            let _guard = Guard { journal: cx.services.as_ref().clone(), what: "step".to_owned() };
            tokio::time::sleep(Duration::from_secs(60)).await;
            Ok(())
        })
        .bind(journal.clone());
    let play = Play::new([]);
    let run = play.start(&long, ()).await;
    a_while().await;

    run.cancel("enough").await.unwrap();

    play.story(&run).await;
    tokio::task::yield_now().await;
    assert_eq!(journal.take(), ["step dropped"]);
}

#[tokio::test(start_paused = true)]
async fn paused_run_finishes_effects_in_flight_and_starts_none() {
    let journal = Journal::default();
    let play = Play::free([slow_batch([("safe", "a", 5000), ("alone", "b", 0)]), done()]);
    let run = play.start(&workshop(&journal, tools), ()).await;
    a_while().await;

    run.pause().await.unwrap();
    assert!(matches!(run.pause().await, Err(SignalError::Refused(Refusal::Paused))));

    assert_eq!(run.settled().await, Settled::Paused);
    assert_eq!(journal.take(), ["a", "a-"], "effects in flight finish");
    assert_eq!(run.status(), Status::Paused);
    play.story(&run).await;

    run.resume().await.unwrap();
    let story = play.story(&run).await;
    assert_eq!(journal.take(), ["b"]);
    assert!(matches!(story.settled(), Settled::Completed(_)));
}

#[tokio::test(start_paused = true)]
async fn decision_during_a_pause_is_stored_and_a_paused_run_can_be_cancelled() {
    let journal = Journal::default();
    let play = Play::new([batch([("gated", "a"), ("gated", "b")])]);
    let run = play.start(&workshop(&journal, tools), ()).await;
    waits(&run).await;
    assert!(matches!(run.resume().await, Err(SignalError::Refused(Refusal::NotPaused))));
    run.pause().await.unwrap();

    run.approve(&path("Work/0.0"), "ann").await.unwrap();
    assert_eq!(run.settled().await, Settled::Paused);
    assert_eq!(journal.take(), Vec::<String>::new());
    run.resume().await.unwrap();
    assert_eq!(waits(&run).await, ["Work/0.1"]);
    assert_eq!(journal.take(), ["a"]);

    run.pause().await.unwrap();
    run.cancel("never mind").await.unwrap();
    assert_eq!(*play.story(&run).await.settled(), Settled::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn rapid_signals_are_admitted_against_the_log() {
    let journal = Journal::default();
    let play = Play::new([batch([("gated", "a")]), done()]);
    let run = play.start(&workshop(&journal, tools), ()).await;
    waits(&run).await;

    run.pause().await.unwrap();
    run.resume().await.unwrap();
    run.pause().await.unwrap();
    run.approve(&path("Work/0.0"), "ann").await.unwrap();
    run.resume().await.unwrap();

    play.story(&run).await;
    assert_eq!(journal.take(), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn late_outcome_changes_nothing() {
    let journal = Journal::default();
    let play = Play::free([slow_batch([("safe", "a", 1000)])]);
    let run = play.start(&workshop(&journal, tools), ()).await;
    a_while().await;

    let cancelled = run.cancel("now").await;

    let story = play.story(&run).await;
    assert_eq!(cancelled.is_ok(), *story.settled() == Settled::Cancelled);
    assert_eq!(events_named(&story, "LOOP_TOOL_RESULT").len(), 1, "one call has one result, whichever came first");
    tokio::time::advance(Duration::from_secs(9)).await;
    assert_eq!(run.events(positronic_core::record::Seq(0)).await.unwrap().len(), story.log().len());
}
