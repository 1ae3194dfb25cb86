//! Effects in flight when a process dies: promises 3 and 5.

use std::sync::Arc;

use positronic_core::dsl::Runnable;
use positronic_core::model::scripted::Reply;
use positronic_core::prelude::*;
use positronic_core::record::{Event, EventKind, ModelRequest, SignalKind, ToolResult};
use positronic_core::runner::{RunHandle, Settled};
use serde_json::json;
use tokio::sync::{Notify, mpsc};

use crate::bench::{Bench, behind, by, named, result_of, run_id};
use crate::stores::{Fresh, on_both_stores};
use crate::support::{
    Board, Job, Journal, Shop, ShopBuilder, ShopLoop, batch, done, path, result, settled, waits, worker, workshop,
};

on_both_stores! {
    promise_03_resume_skips_effects_with_an_outcome
    promise_05_only_repeatable_tools_run_again_and_others_report_an_unknown_outcome
    promise_05_unanswered_request_is_sent_again_unchanged
    promise_05_recorded_values_are_reused_when_a_step_or_tool_runs_again
}

/// Does a job and records its key.
fn keyed(name: &str, flags: impl FnOnce(ShopBuilder) -> ShopBuilder) -> crate::support::ShopTool {
    Tool::new(name, |t| {
        flags(t).execute(async |job: Job, cx: Shop| {
            cx.services.note(cx.idempotency_key());
            let reply = cx.result(format!("{} done", job.id));
            Ok(reply.update(|board: &mut Board| board.done.push(job.id)))
        })
    })
}

fn three(config: ShopLoop) -> ShopLoop {
    config.tools([keyed("look", ShopBuilder::read_only), keyed("set", ShopBuilder::idempotent), keyed("pay", |t| t)])
}

fn says(place: &str) -> Reply {
    if place == "Work/0" { batch([("look", "a"), ("set", "b"), ("pay", "c")]) } else { done() }
}

/// Continues a prefix of a run's log in another process, to the run's end.
async fn continue_run<S: Fresh>(
    baseline: &Bench<S>,
    until: usize,
    brain: &impl Runnable<Options = (), Result = Board>,
) -> (Bench<S>, RunHandle<serde_json::Value>) {
    let cut = baseline.cut(until).await;
    let run = cut.process("second", says).brain(brain).resume(&run_id()).await.unwrap();
    assert!(matches!(settled(&run).await, Settled::Completed(_)), "{:?}", settled(&run).await);
    cut.checked().await;
    (cut, run)
}

async fn promise_05_only_repeatable_tools_run_again_and_others_report_an_unknown_outcome<S: Fresh>() {
    let (baseline, journal) = (Bench::<S>::fresh(), Journal::default());
    let shop = workshop(&journal, three);
    let first = baseline.process("first", says);
    let run = baseline.start(&first, &shop).await;
    settled(&run).await;
    let keys = journal.take();
    assert_eq!(keys, ["run:Work/0.0", "run:Work/0.1", "run:Work/0.2"]);

    let (cut, run) = continue_run(&baseline, behind(&baseline.log().await, "Work/0.2", "LOOP_TOOL_START"), &shop).await;

    assert_eq!(journal.take(), keys[..2], "under the same keys");
    let log = cut.log().await;
    assert_eq!(named(&log, "LOOP_TOOL_START").len(), 5);
    assert!(matches!(result_of(&log, "Work/0.2"), ToolResult::Interrupted { .. }));
    assert_eq!(
        cut.last_results(),
        [
            "a done",
            "b done",
            "Interrupted: the worker went away while the tool ran; whether it had its effect is unknown"
        ]
    );
    assert_eq!(run.document(), json!({"done": ["a", "b"]}));
}

#[tokio::test(start_paused = true)]
async fn promise_05_announced_call_that_did_not_start_runs_as_if_uninterrupted() {
    let (baseline, journal) = (Bench::new(), Journal::default());
    let shop = workshop(&journal, three);
    let first = baseline.process("first", says);
    settled(&baseline.start(&first, &shop).await).await;
    journal.take();

    let (_, run) = continue_run(&baseline, behind(&baseline.log().await, "Work/0.2", "LOOP_TOOL_CALL"), &shop).await;

    assert_eq!(journal.take().len(), 3);
    assert_eq!(run.document(), json!({"done": ["a", "b", "c"]}));
}

async fn promise_05_unanswered_request_is_sent_again_unchanged<S: Fresh>() {
    let (baseline, journal) = (Bench::<S>::fresh(), Journal::default());
    // The closure yields something else each time, and runs again after a restart.
    let shop = brain("Moody")
        .services::<Journal>()
        .state(Board::default())
        .r#loop("Work", |cx| three(cx.system(format!("Mood {}.", cx.services.count())).input("begin")))
        .bind(journal.clone());
    let first = baseline.process("first", says);
    settled(&baseline.start(&first, &shop).await).await;
    let log = baseline.log().await;
    for iteration in ["Work/0", "Work/1"] {
        let cut = baseline.cut(behind(&log, iteration, "LOOP_MODEL_CALL")).await;
        let message = SignalKind::message("Meanwhile.");
        cut.client("people").signal(&run_id(), message, by("ann")).await.unwrap();

        let run = cut.process("second", says).brain(shop.clone()).resume(&run_id()).await.unwrap();

        assert!(matches!(settled(&run).await, Settled::Completed(_)));
        cut.checked().await;
        let last = cut.last_messages();
        assert!(format!("{last:?}").contains("Meanwhile."), "a later iteration reads it: {last:?}");
        let wire = |sent: &[ModelRequest]| {
            let sent = sent.iter().find(|request| request.path == path(iteration)).unwrap().clone();
            serde_json::to_string(&(sent.system, sent.context, sent.messages.messages(), sent.settings)).unwrap()
        };
        assert_eq!(wire(&cut.sent()), wire(&baseline.sent()));
        assert_eq!(named(&cut.log().await, "LOOP_MODEL_CALL").iter().filter(|path| *path == iteration).count(), 2);
    }
}

/// A step with two recorded effects, and a tool with two.
fn of_two_deeds(journal: &Journal) -> Brain<(), Board> {
    brain("Twice")
        .services::<Journal>()
        .state(Board::default())
        .step("Send", async |cx| {
            let mut board = cx.state.clone();
            for name in ["letter", "parcel"] {
                let sent = cx.once(name, async {
                    cx.services.note(name);
                    Ok(format!("{name} {}", cx.services.count()))
                });
                board.done.push(sent.await?);
            }
            cx.services.note("sent");
            Ok(board)
        })
        .r#loop("Work", |cx| {
            cx.system("").tool("pay", |t| {
                t.idempotent().execute(async |_: Job, cx: Shop| {
                    let mut sums = Vec::new();
                    for name in ["debit", "credit"] {
                        let booked = cx.once(name, async {
                            cx.services.note(name);
                            Ok(cx.services.count())
                        });
                        sums.push(booked.await?);
                    }
                    Ok(sums)
                })
            })
        })
        .bind(journal.clone())
}

async fn promise_05_recorded_values_are_reused_when_a_step_or_tool_runs_again<S: Fresh>() {
    let (baseline, journal) = (Bench::<S>::fresh(), Journal::default());
    let twice = of_two_deeds(&journal);
    let says = |place: &str| if place == "Work/0" { batch([("pay", "a")]) } else { done() };
    let first = baseline.process("first", says);
    let run = baseline.start(&first, &twice).await;
    settled(&run).await;
    assert_eq!(journal.take(), ["letter", "parcel", "sent", "debit", "credit"]);
    let log = baseline.log().await;
    let values: Vec<usize> =
        (0..log.len()).filter(|n| matches!(log[*n].kind, EventKind::ValueRecorded { .. })).collect();
    assert_eq!(values.len(), 4);
    for (value, again) in values.into_iter().zip([
        &["parcel", "sent", "debit", "credit"][..],
        &["sent", "debit", "credit"],
        &["credit"],
        &[],
    ]) {
        let cut = baseline.cut(value + 1).await;
        let second = cut.process("second", says).brain(twice.clone());
        let run = second.resume(&run_id()).await.unwrap();
        assert!(matches!(settled(&run).await, Settled::Completed(_)));
        assert_eq!(journal.take(), again);
        // The recorded value, not an equal one.
        let cut = cut.checked().await;
        let recorded = |log: &[Arc<Event>]| -> Vec<String> {
            log.iter()
                .filter(|event| event.kind.name() == "VALUE_RECORDED")
                .map(|event| format!("{:?}", event.kind))
                .collect()
        };
        assert_eq!(cut[..=value], log[..=value]);
        assert_eq!(recorded(&cut).len(), 4, "none is recorded twice");
    }
}

#[tokio::test(start_paused = true)]
async fn promise_05_value_after_its_tool_returned_is_refused_and_stops_nothing() {
    let (go, (said, mut says_so)) = (Arc::new(Notify::new()), mpsc::unbounded_channel());
    let may_go = Arc::clone(&go);
    let shop = workshop(&Journal::default(), move |config| {
        let (may_go, said) = (Arc::clone(&may_go), said.clone());
        config.tool("hasty", |t| {
            t.execute(move |_: Job, cx: Shop| {
                let (may_go, said, late) = (Arc::clone(&may_go), said.clone(), cx.clone());
                tokio::spawn(async move {
                    may_go.notified().await;
                    said.send(late.once("late", async { Ok(1) }).await.map_err(|error| error.to_string()))
                });
                std::future::ready(Ok(cx.result("asked").wait_for([webhook::<NoArgs>("slack").on("a")])))
            })
        })
    });
    let bench = Bench::new();
    let says = |place: &str| if place == "Work/0" { batch([("hasty", "a")]) } else { done() };
    let run = bench.start(&bench.process("first", says), &shop).await;
    assert_eq!(waits(&run).await, ["Work/0.0"]);

    go.notify_one();

    let refused = says_so.recv().await.unwrap().unwrap_err();
    assert_eq!(refused, "`Work/0.0` is not running, so its value is not recorded");
    run.webhook("slack", "a", json!({})).await.unwrap();
    assert!(matches!(settled(&run).await, Settled::Completed(_)), "{:?}", settled(&run).await);
    assert_eq!(named(&bench.checked().await, "VALUE_RECORDED"), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn promise_05_step_reruns_under_the_same_key_without_repeating_its_questions() {
    let (baseline, journal) = (Bench::new(), Journal::default());
    let asking = brain("Asking")
        .services::<Journal>()
        .step("Ask", async |cx| {
            cx.services.note(cx.idempotency_key());
            let one = cx.model().ask("One?").await?;
            let two = cx.model().ask("Two?").await?;
            Ok(vec![one, two])
        })
        .bind(journal.clone());
    let process = baseline.process("first", |place| Reply::text(place));
    let run = baseline.start(&process, &asking).await;
    assert_eq!(result(&run).await, ["Ask/0", "Ask/1"]);
    journal.take();
    for (until, again) in [("LOOP_MODEL_CALL", &["Ask/0", "Ask/1"][..]), ("LOOP_MODEL_RESULT", &["Ask/1"])] {
        let cut = baseline.cut(behind(&baseline.log().await, "Ask/0", until)).await;
        let second = cut.process("second", |place| Reply::text(place)).brain(asking.clone());

        let run = second.resume(&run_id()).await.unwrap();

        assert!(matches!(settled(&run).await, Settled::Completed(_)));
        assert_eq!(run.document(), json!(["Ask/0", "Ask/1"]));
        assert_eq!(journal.take(), ["run:Ask"]);
        let sent: Vec<_> = cut.sent().iter().map(|request| request.path.to_string()).collect();
        assert_eq!(sent, again, "after {until}");
        cut.checked().await;
    }
}

async fn promise_03_resume_skips_effects_with_an_outcome<S: Fresh>() {
    let journal = Journal::default();
    let inner = || {
        brain("Inner")
            .services::<Journal>()
            .state(Board::default())
            .step("Begin", async |cx| {
                cx.services.note("begin");
                Ok(cx.state)
            })
            .r#loop("Deep", |cx| {
                cx.services.note("deep");
                cx.system("").tools([
                    worker("safe", ShopBuilder::idempotent),
                    worker("gated", |t| t.idempotent().requires_approval("sure?")),
                ])
            })
    };
    let outer = brain("Outer")
        .services::<Journal>()
        .state(Board::default())
        .step("First", async |cx| {
            cx.services.note("first");
            Ok(cx.state)
        })
        .r#loop("Work", move |cx| {
            cx.system("")
                .tools([worker("safe", ShopBuilder::idempotent)])
                .tool("inner", |t| t.brain(inner()).map_output(|board, inner| board.done.extend(inner.done)))
        })
        .bind(journal.clone());
    let says = |place: &str| match place {
        "Work/0" => Reply::calls([
            ("safe", json!({"id": "a"})),
            ("inner", json!({})),
            ("safe", json!({"id": "f", "fails": true})),
        ]),
        "Work/0.1/Deep/0" => batch([("safe", "b"), ("gated", "c")]),
        _ => done(),
    };
    let baseline = Bench::<S>::fresh();
    let first = baseline.process("first", says);
    let run = baseline.start(&first, &outer).await;
    assert_eq!(waits(&run).await, ["Work/0.1/Deep/0.1"]);
    assert_eq!(journal.take(), ["first", "a", "f", "begin", "deep", "b"]);
    let waiting = baseline.log().await;

    // Reading the log repeatedly runs nothing.
    let client = baseline.client("reader");
    for event in &waiting {
        client.state_at(&run_id(), event.seq).await.unwrap();
    }
    assert_eq!(journal.take(), Vec::<String>::new());

    // Three more processes claim the run and die; then the call is approved, and the parent continues.
    let mut bench = baseline;
    for name in ["second", "third", "fourth"] {
        bench = bench.cut(bench.log().await.len()).await;
        let process = bench.process(name, says).brain(outer.clone());
        let run = process.resume(&run_id()).await.unwrap();
        assert!(matches!(settled(&run).await, Settled::Waiting(_)));
        assert_eq!(bench.log().await, waiting, "there is nothing to do");
        if name == "fourth" {
            run.approve(&path("Work/0.1/Deep/0.1"), "ann").await.unwrap();
            assert!(matches!(settled(&run).await, Settled::Completed(_)));
        }
    }
    let noted = journal.take();
    let effects: Vec<_> = noted.iter().filter(|what| *what != "deep").collect();
    assert_eq!(effects, ["c"], "neither steps nor siblings nor what had failed");
    let asked: Vec<_> = bench.sent().iter().map(|request| request.path.to_string()).collect();
    assert_eq!(asked, ["Work/0.1/Deep/1", "Work/1"], "nor is a model asked again");
    assert_eq!(bench.last_results().len(), 3);
    assert!(bench.last_results()[2].starts_with("Error: f broke"));
    bench.checked().await;
}

#[tokio::test(start_paused = true)]
async fn promise_14_tools_are_resolved_by_the_state_at_the_start_of_their_iteration() {
    let (baseline, journal) = (Bench::new(), Journal::default());
    // Once something is done, the tool is no longer offered.
    let unfolding = brain("Unfolding")
        .services::<Journal>()
        .state(Board::default())
        .r#loop("Work", |cx| {
            let fresh = cx.state.done.is_empty();
            cx.system("").tools(fresh.then(|| worker("early", |t| t.idempotent().sequential())))
        })
        .bind(journal.clone());
    let says = |place: &str| if place == "Work/0" { batch([("early", "a"), ("early", "b")]) } else { done() };
    let first = baseline.process("first", says);
    settled(&baseline.start(&first, &unfolding).await).await;
    let log = baseline.checked().await;
    assert_eq!(journal.take(), ["a", "b"]);

    for until in behind(&log, "Work/0.0", "LOOP_TOOL_RESULT")..behind(&log, "Work/0.1", "LOOP_TOOL_RESULT") {
        let cut = baseline.cut(until).await;
        let run = cut.process("second", says).brain(unfolding.clone()).resume(&run_id()).await.unwrap();
        assert!(matches!(settled(&run).await, Settled::Completed(_)));
        assert_eq!(cut.transcript().await, baseline.transcript().await, "after {until}");
        assert_eq!(journal.take(), ["b"]);
    }
}
