//! Limits across pauses, processes and nested brains: promise 12.

use std::sync::Arc;
use std::time::Duration;

use positronic_core::model::scripted::Reply;
use positronic_core::prelude::*;
use positronic_core::record::{
    Amounts, Budget, BudgetRequest, Event, EventKind, LimitKind, LimitReached, SignalKind, Status, ToolResult, Usage,
};
use positronic_core::runner::Settled;
use positronic_core::store::prelude::*;
use serde_json::json;

use crate::bench::{Bench, by, result_of, run_id};
use crate::stores::{Fresh, on_both_stores};
use crate::support::{Board, Journal, ShopLoop, batch, done, path, settled, slow_batch, tools, waits, workshop};

on_both_stores! {
    promise_12_limits_keep_counting_across_pauses_and_processes
}

fn tokens(input: u64) -> Usage {
    Usage { input, ..Usage::default() }
}

fn limit_of(log: &[Arc<Event>]) -> Option<(LimitKind, u64)> {
    log.iter().find_map(|event| match &event.kind {
        EventKind::LoopLimit(LimitReached { kind, used, .. }) => Some((*kind, *used)),
        _ => None,
    })
}

async fn promise_12_limits_keep_counting_across_pauses_and_processes<S: Fresh>() {
    fn loop_at(limit: fn(ShopLoop) -> ShopLoop) -> Brain<(), Board> {
        workshop(&Journal::default(), move |config| limit(tools(config).unlimited()))
    }
    fn whole(budget: fn(Budget) -> Budget) -> Brain<(), Board> {
        loop_at(|config| config).budget(|none| budget(none).on_limit(OnLimit::Exit))
    }
    for (name, shop) in [
        ("iterations", loop_at(|config| config.max_iterations(5))),
        ("tokens", loop_at(|config| config.max_tokens(50))),
        ("money", loop_at(|config| config.max_money("0.00005"))),
        ("time", loop_at(|config| config.max_time(Duration::from_secs(42)))),
        ("failures", loop_at(|config| config.max_failures(5))),
        ("iterations of the brain", whole(|budget| budget.max_iterations(5))),
        ("tokens of the brain", whole(|budget| budget.max_tokens(50))),
        ("money of the brain", whole(|budget| budget.max_money("0.00005"))),
        ("time of the brain", whole(|budget| budget.max_time(Duration::from_secs(42)))),
    ] {
        // Ten tokens at a millionth each, and ten seconds per iteration; a person is asked in the fourth iteration.
        let says = move |place: &str| {
            let tool = match place {
                "Work/3" => "gated",
                "Work/9" => return done(),
                _ => "safe",
            };
            let job = json!({"id": place, "takes": 10_000, "fails": name == "failures"});
            Reply::call(tool, job).usage(tokens(10))
        };
        let undisturbed = Bench::<S>::fresh().priced();
        let process = undisturbed.process("only", says);
        let run = undisturbed.start(&process, &shop).await;
        waits(&run).await;
        run.approve(&path("Work/3.0"), "ann").await.unwrap();
        assert!(matches!(settled(&run).await, Settled::Completed(_)));
        assert_eq!(undisturbed.sent().len(), 5, "{name}");

        let first = Bench::<S>::fresh().priced();
        let process = first.process("first", says);
        let run = first.start(&process, &shop).await;
        // In the second iteration during a tool, and during an approval.
        tokio::time::sleep(Duration::from_secs(15)).await;
        run.pause().await.unwrap();
        assert_eq!(settled(&run).await, Settled::Paused);
        tokio::time::sleep(Duration::from_secs(1000)).await;
        run.resume().await.unwrap();
        waits(&run).await;
        run.pause().await.unwrap();
        assert_eq!(settled(&run).await, Settled::Paused);
        tokio::time::sleep(Duration::from_secs(1000)).await;
        let cut = first.cut(first.log().await.len()).await;
        let run = cut.process("second", says).brain(shop).resume(&run_id()).await.unwrap();
        tokio::time::sleep(Duration::from_secs(1000)).await;
        run.resume().await.unwrap();
        tokio::time::sleep(Duration::from_secs(1000)).await;
        run.approve(&path("Work/3.0"), "ann").await.unwrap();

        assert!(matches!(settled(&run).await, Settled::Completed(_)));
        assert_eq!(first.sent().len() + cut.sent().len(), 5, "{name}");
        let (log, whole) = (cut.checked().await, undisturbed.checked().await);
        let kind = |log| limit_of(log).map(|(kind, _)| kind);
        assert_eq!(kind(&log), kind(&whole), "{name}");
        assert_eq!(cut.transcript().await, undisturbed.transcript().await, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn promise_12_time_after_a_worker_died_does_not_count() {
    let (bench, journal) = (Bench::new(), Journal::default());
    let shop = workshop(&journal, |config| tools(config).unlimited().max_time(Duration::from_secs(60)));
    let says = |place: &str| match place {
        "Work/0" => slow_batch([("safe", "a", 30_000), ("gated", "b", 20_000)]),
        "Work/1" => slow_batch([("safe", "c", 20_000)]),
        _ => done(),
    };
    let run = bench.start(&bench.process("first", says), &shop).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    run.message("hurry", "ann").await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    run.message("please", "ann").await.unwrap();
    let cut = bench.cut(bench.log().await.len()).await;
    drop(run);

    tokio::time::sleep(Duration::from_secs(36_000)).await;
    cut.client("people").approve(&run_id(), &path("Work/0.1"), by("ann")).await.unwrap();
    tokio::time::sleep(Duration::from_secs(36_000)).await;
    let run = cut.process("second", says).brain(shop).resume(&run_id()).await.unwrap();

    assert!(matches!(settled(&run).await, Settled::Completed(_)));
    assert_eq!(limit_of(&cut.checked().await), None);

    // A live worker also counts the time before each message.
    let log = bench.checked().await;
    assert_eq!(limit_of(&log), None, "a person is asked");
    bench.client("people").approve(&run_id(), &path("Work/0.1"), by("ann")).await.unwrap();
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert_eq!(bench.store.run(&run_id()).await.unwrap().status, Status::Completed);
    assert_eq!(limit_of(&bench.checked().await), Some((LimitKind::Time, 70_000_000)));
}

#[tokio::test(start_paused = true)]
async fn promise_12_grants_hold_in_another_process() {
    let shop = workshop(&Journal::default(), |config| tools(config).max_tokens(20).ask_for_more());
    let says = |place: &str| if place == "Work/9" { done() } else { batch([("safe", place)]).usage(tokens(10)) };
    let first = Bench::new();
    let process = first.process("first", says);
    assert_eq!(waits(&first.start(&process, &shop).await).await, ["Work"]);
    let cut = first.cut(first.log().await.len()).await;
    let run = cut.process("second", says).brain(shop.clone()).resume(&run_id()).await.unwrap();
    assert_eq!(waits(&run).await, ["Work"]);
    let more = SignalKind::Grant { to: path("Work"), more: Amounts::tokens(20) };
    cut.client("people").signal(&run_id(), more, by("ann")).await.unwrap();
    let third = cut.cut(cut.log().await.len()).await;

    let run = third.process("third", says).brain(shop).resume(&run_id()).await.unwrap();

    assert_eq!(waits(&run).await, ["Work"]);
    assert_eq!((first.sent().len(), third.sent().len()), (2, 2), "twenty tokens, and twenty more");
    let log = third.checked().await;
    let asked = log.iter().filter_map(|event| match &event.kind {
        EventKind::BudgetRequested(BudgetRequest { limit, used, .. }) => Some((*limit, *used)),
        _ => None,
    });
    assert_eq!(asked.collect::<Vec<_>>(), [(20, 20), (40, 40)]);
}

#[tokio::test(start_paused = true)]
async fn promise_12_limit_covers_usage_of_nested_brains_before_a_restart() {
    let journal = Journal::default();
    let inner = || {
        brain("Inner").services::<Journal>().state(Board::default()).r#loop("Deep", |cx| tools(cx.system("Inside.")))
    };
    let outer = workshop(&journal, move |config| tools(config).max_tokens(50).brain("inner", inner()));
    let says = |place: &str| match place {
        "Work/0" => Reply::call("inner", json!({})).usage(tokens(10)),
        "Work/0.0/Deep/2" => batch([("gated", "g")]).usage(tokens(10)),
        "Work/0.0/Deep/9" | "Work/1" => done(),
        _ => batch([("safe", place)]).usage(tokens(10)),
    };
    let first = Bench::new();
    let process = first.process("first", says);
    let run = first.start(&process, &outer).await;
    waits(&run).await;
    let cut = first.cut(first.log().await.len()).await;
    let run = cut.process("second", says).brain(outer).resume(&run_id()).await.unwrap();

    run.approve(&path("Work/0.0/Deep/2.0"), "ann").await.unwrap();

    assert!(matches!(settled(&run).await, Settled::Completed(_)));
    let log = cut.checked().await;
    assert_eq!(limit_of(&log), Some((LimitKind::Tokens, 50)));
    assert_eq!((first.sent().len(), cut.sent().len()), (4, 1), "four iterations before, one after");
    assert!(matches!(result_of(&log, "Work/0.0"), ToolResult::Interrupted { .. }));
}
