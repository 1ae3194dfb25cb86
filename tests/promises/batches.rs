//! Results and messages that the model reads, from any depth: promises 6, 10, 11 and 16.

use std::time::Duration;

use positronic_core::model::scripted::Reply;
use positronic_core::prelude::*;
use positronic_core::record::{EventKind, LoopOutcome, Message, Status, ToolResult};
use positronic_core::runner::Settled;
use positronic_core::store::PendingFilter;
use serde_json::json;

use crate::bench::{Bench, behind, by, in_two_iterations, named, result_of, run_id};
use crate::stores::{Fresh, on_both_stores};
use crate::support::{
    Board, Job, Journal, Shop, ShopBuilder, ShopLoop, batch, done, path, settled, slow_batch, tools, waits, work,
    worker, workshop,
};

on_both_stores! {
    promise_10_approvals_and_waits_surface_from_any_depth_and_only_their_frames_continue
    promise_10_waiting_run_is_released_and_a_decision_resumes_it
    promise_11_message_during_a_pause_follows_the_results
    promise_16_cancel_from_another_process_answers_every_call_and_stops_effects_in_flight
}

fn asking(config: ShopLoop) -> ShopLoop {
    tools(config).tool("ask", |t| t.wait(|job: &Job, _: &Shop| [webhook::<NoArgs>("go").on(&job.id)]).execute(work))
}

#[tokio::test(start_paused = true)]
async fn promise_06_model_is_asked_when_every_call_has_a_result_and_reads_them_in_call_order() {
    let (bench, journal) = (Bench::new(), Journal::default());
    let first = Reply::calls([
        ("safe", json!({"id": "a", "takes": 50})),
        ("nope", json!({})),
        ("gated", json!({"id": "b"})),
        ("ask", json!({"id": "c"})),
        ("safe", json!({"id": 7})),
        ("safe", json!("{\"id\"")),
        ("read", json!({"id": "d", "fails": true})),
        ("gated", json!({"id": "e"})),
        ("read", json!({"id": "f"})),
    ]);
    let process = bench.process("work", in_two_iterations(first));
    let run = bench.start(&process, &workshop(&journal, asking)).await;
    assert_eq!(waits(&run).await, ["Work/0.2", "Work/0.7"]);
    run.approve(&path("Work/0.7"), "ann").await.unwrap();
    assert_eq!(waits(&run).await, ["Work/0.2"]);
    run.reject(&path("Work/0.2"), "no", "ann").await.unwrap();
    assert_eq!(waits(&run).await, ["Work/0.3"]);
    assert_eq!(bench.sent().len(), 1, "one call has no result");

    run.webhook("go", "c", json!({})).await.unwrap();

    assert!(matches!(settled(&run).await, Settled::Completed(_)));
    let begins: Vec<_> =
        bench.last_results().iter().map(|text| text.split_whitespace().take(2).collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(
        begins,
        [
            "a done",
            "Error: there",
            "Not run:",
            "{\"answer\":{},\"result\":\"c done\"}",
            "Error: the",
            "Error: the",
            "Error: d",
            "e done",
            "f done"
        ]
        .map(|text| text.split_whitespace().take(2).collect::<Vec<_>>().join(" "))
    );
    let log = bench.checked().await;
    assert_eq!(named(&log, "LOOP_TOOL_CALL").len(), 9);
    assert_eq!(named(&log, "LOOP_TOOL_RESULT").len(), 9);
    let refused = ["Work/0.1", "Work/0.4", "Work/0.5"].map(str::to_owned);
    let begun = named(&log, "LOOP_TOOL_START");
    assert!(begun.iter().all(|call| !refused.contains(call)), "what makes no sense never begins: {begun:?}");
}

#[tokio::test(start_paused = true)]
async fn promise_06_every_call_beside_an_exit_has_a_result() {
    let (bench, journal) = (Bench::new(), Journal::default());
    let asked = batch([("safe", "a"), ("gated", "b"), ("finish", "c"), ("safe", "d"), ("gated", "e")]);
    let process = bench.process("work", in_two_iterations(asked));
    let shop = workshop(&journal, |config| tools(config).tools([worker("finish", ShopBuilder::exit)]));
    let run = bench.start(&process, &shop).await;
    assert_eq!(waits(&run).await, ["Work/0.1", "Work/0.4"]);

    run.approve(&path("Work/0.1"), "ann").await.unwrap();

    assert!(matches!(settled(&run).await, Settled::Completed(_)));
    assert_eq!(journal.take(), ["a", "b", "c"]);
    let log = bench.checked().await;
    for call in ["Work/0.3", "Work/0.4"] {
        assert!(matches!(result_of(&log, call), ToolResult::Skipped { .. }), "{call}");
    }
    assert_eq!(named(&log, "LOOP_APPROVAL_WITHDRAWN"), ["Work/0.4"]);
}

/// A loop whose brain runs a brain whose loop calls brains: approvals and waits at every depth.
fn deep(journal: &Journal) -> Brain<(), Board> {
    let leaf = |title: &str| {
        brain(title)
            .services::<Journal>()
            .state(Board::default())
            .step("Begin", async |cx| {
                cx.services.note("begin");
                Ok(cx.state)
            })
            .r#loop("Deep", |cx| {
                cx.services.note(format!("deep {}", cx.path()));
                asking(cx.system("Inside."))
            })
    };
    let middle = brain("Middle").services::<Journal>().state(Board::default()).r#loop("Mid", move |cx| {
        cx.services.note(format!("mid {}", cx.path()));
        asking(cx.system("Between.")).brain("one", leaf("One")).brain("two", leaf("Two"))
    });
    brain("Outer")
        .services::<Journal>()
        .state(Board::default())
        .brain("Stage", middle)
        .map_output(|board: Board, _: Board| board)
        .bind(journal.clone())
}

fn says_deep(place: &str) -> Reply {
    match place {
        "Stage/Mid/0" => Reply::calls([("one", json!({})), ("two", json!({})), ("safe", json!({"id": "s"}))]),
        "Stage/Mid/0.0/Deep/0" => batch([("gated", "a")]),
        "Stage/Mid/0.1/Deep/0" => batch([("ask", "b")]),
        _ => done(),
    }
}

async fn promise_10_approvals_and_waits_surface_from_any_depth_and_only_their_frames_continue<S: Fresh>() {
    let (bench, journal) = (Bench::<S>::fresh(), Journal::default());
    let outer = deep(&journal);
    let first = bench.process("first", says_deep);
    let run = bench.start(&first, &outer).await;
    let (one, two) = ("Stage/Mid/0.0/Deep/0.0", "Stage/Mid/0.1/Deep/0.0");
    assert_eq!(waits(&run).await, [one, two]);
    let listed = bench.store.pending(&PendingFilter::default()).await.unwrap();
    let listed: Vec<_> = listed.into_iter().map(|waiter| waiter.pending.call.to_string()).collect();
    assert_eq!(listed, [one, two]);
    journal.take();
    let cut = bench.cut(bench.log().await.len()).await;
    let before = cut.log().await.len();
    cut.client("people").approve(&run_id(), &path(one), by("ann")).await.unwrap();

    let second = cut.process("second", says_deep).brain(outer);
    let run = second.resume(&run_id()).await.unwrap();

    assert_eq!(waits(&run).await, [two]);
    // The closures of open loops run to find their tools again; effects run only in the approved call's frame.
    let effects: Vec<_> =
        journal.take().into_iter().filter(|what| !what.starts_with("deep") && !what.starts_with("mid")).collect();
    assert_eq!(effects, ["a"]);
    assert_eq!(cut.sent().iter().map(|request| request.path.to_string()).collect::<Vec<_>>(), ["Stage/Mid/0.0/Deep/1"]);
    let log = cut.checked().await;
    let elsewhere: Vec<_> = log[before..]
        .iter()
        .filter(|event| !event.path.is_root() && !event.path.is_within(&path("Stage/Mid/0.0")))
        .collect();
    assert!(elsewhere.is_empty(), "{elsewhere:?}");

    cut.client("machine").deliver("hook".into(), "go", "b", json!({}), by("machine")).await.unwrap();
    assert!(matches!(cut.settled(&run).await, Settled::Completed(_)));
    cut.checked().await;
}

async fn promise_10_waiting_run_is_released_and_a_decision_resumes_it<S: Fresh>() {
    for serves in [false, true] {
        let (bench, journal) = (Bench::<S>::fresh(), Journal::default());
        let shop = workshop(&journal, tools);
        let process =
            bench.lingering("work", Duration::ZERO, in_two_iterations(batch([("gated", "a")]))).brain(shop.clone());
        let run = bench.start(&process, &shop).await;
        assert_eq!(waits(&run).await, ["Work/0.0"]);
        tokio::time::sleep(Duration::from_secs(1)).await;
        let row = bench.store.run(&run_id()).await.unwrap();
        assert!(row.claim.unwrap().released, "no worker has claimed it");
        // Either a worker still has the run, or a serving process claims it.
        let (held, service) = if serves { (None, Some(process.serve())) } else { (Some(run), None) };

        bench.client("people").approve(&run_id(), &path("Work/0.0"), by("ann")).await.unwrap();
        tokio::time::sleep(Duration::from_secs(2)).await;

        assert_eq!(bench.store.run(&run_id()).await.unwrap().status, Status::Completed, "served: {serves}");
        assert_eq!(journal.take(), ["a"]);
        assert_eq!(named(&bench.checked().await, "RUN_CLAIMED").len(), 2);
        drop((held, service));
    }
}

/// Returns the texts and roles of messages.
fn roles(messages: &[Message]) -> Vec<&str> {
    messages.iter().map(role).collect()
}

fn role(message: &Message) -> &str {
    match message {
        Message::User { text, .. } => text,
        Message::Assistant { .. } => "assistant",
        Message::Tool { .. } => "tool",
    }
}

async fn promise_11_message_during_a_pause_follows_the_results<S: Fresh>() {
    let (bench, journal) = (Bench::<S>::fresh(), Journal::default());
    let says = in_two_iterations(batch([("gated", "a"), ("ask", "b"), ("safe", "c")]));
    let shop = workshop(&journal, asking);
    let process = bench.process("first", says.clone());
    let run = bench.start(&process, &shop).await;
    waits(&run).await;
    run.message("one", "ann").await.unwrap();
    run.pause().await.unwrap();
    run.message("two", "ann").await.unwrap();
    run.approve(&path("Work/0.0"), "ann").await.unwrap();
    run.message("three", "ann").await.unwrap();
    assert_eq!(settled(&run).await, Settled::Paused);
    // Another process continues and receives the rest.
    let cut = bench.cut(bench.log().await.len()).await;
    let run = cut.process("second", says).brain(shop).resume(&run_id()).await.unwrap();
    run.resume().await.unwrap();
    assert_eq!(waits(&run).await, ["Work/0.1"]);
    run.message("four", "ann").await.unwrap();
    run.webhook("go", "b", json!({})).await.unwrap();

    assert!(matches!(settled(&run).await, Settled::Completed(_)));
    assert_eq!(
        roles(&cut.last_messages()),
        ["begin", "assistant", "tool", "tool", "tool", "one\n\ntwo\n\nthree\n\nfour"]
    );
    cut.checked().await;
}

#[tokio::test(start_paused = true)]
async fn promise_11_message_to_a_paused_run_with_an_answering_model_is_read_in_another_iteration() {
    // During the model's answer, and after it.
    for moment in [1, 9] {
        let bench = Bench::new();
        let process = bench.process("work", |_| done().after(Duration::from_secs(5)));
        let run = bench.start(&process, &workshop(&Journal::default(), tools)).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        run.pause().await.unwrap();
        tokio::time::sleep(Duration::from_secs(moment)).await;

        run.message("wait", "ann").await.unwrap();

        assert_eq!(settled(&run).await, Settled::Paused);
        assert_eq!(bench.sent().len(), 1, "nothing new begins");
        run.resume().await.unwrap();
        assert!(matches!(settled(&run).await, Settled::Completed(_)));
        let mut read = roles(&bench.last_messages()).into_iter().map(str::to_owned).collect::<Vec<_>>();
        read.sort();
        assert_eq!((bench.sent().len(), read), (2, ["assistant", "begin", "wait"].map(str::to_owned).to_vec()));
        bench.checked().await;
    }
}

async fn promise_16_cancel_from_another_process_answers_every_call_and_stops_effects_in_flight<S: Fresh>() {
    let (bench, journal) = (Bench::<S>::fresh().free(), Journal::default());
    let inner = || {
        brain("Inner").services::<Journal>().state(Board::default()).r#loop("Deep", |cx| asking(cx.system("Inside.")))
    };
    let outer = workshop(&journal, move |config| {
        asking(config).brain("inner", inner()).tools([worker("finish", ShopBuilder::exit)])
    });
    let process = bench.process("work", |place| match place {
        "Work/0" => Reply::calls([
            ("safe", json!({"id": "a", "takes": 60_000})),
            ("inner", json!({})),
            ("safe", json!({"id": "b"})),
            ("ask", json!({"id": "c"})),
            ("gated", json!({"id": "d"})),
            ("safe", json!({"id": "e"})),
            ("finish", json!({"id": "f"})),
        ]),
        "Work/0.1/Deep/0" => slow_batch([("safe", "i", 60_000), ("gated", "j", 0)]),
        _ => done(),
    });
    let run = bench.start(&process, &outer).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut began = journal.take();
    began.sort();
    assert_eq!(began, ["a", "b", "c", "i"]);

    let reason = positronic_core::record::SignalKind::Cancel { reason: Some("enough".to_owned()) };
    bench.client("people").signal(&run_id(), reason, by("ann")).await.unwrap();

    assert_eq!(bench.settled(&run).await, Settled::Cancelled);
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(journal.take(), Vec::<String>::new(), "effects in flight never finish");
    let log = bench.checked().await;
    let of = |call: &str| match result_of(&log, call) {
        ToolResult::Success { .. } => "success",
        ToolResult::Interrupted { .. } => "interrupted",
        ToolResult::Skipped { .. } => "skipped",
        _ => "other",
    };
    let results =
        ["0.0", "0.1", "0.1/Deep/0.0", "0.1/Deep/0.1", "0.4", "0.5", "0.6"].map(|call| of(&format!("Work/{call}")));
    assert_eq!(results, ["interrupted", "interrupted", "interrupted", "skipped", "skipped", "skipped", "skipped"],);
    let ended = log
        .iter()
        .filter(|event| matches!(&event.kind, EventKind::LoopComplete { outcome: LoopOutcome::Cancelled, .. }));
    assert_eq!(ended.map(|event| event.path.as_str()).collect::<Vec<_>>(), ["Work/0.1/Deep", "Work"], "deepest first");
    let cancelled = behind(&log, "", "BRAIN_CANCELLED");
    assert!(cancelled >= log.len() - 1, "only the release event follows");
}
