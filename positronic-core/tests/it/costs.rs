//! What a run used and cost: by answer, round, loop, nested brain and run; what is unknown is never nothing.

use positronic_core::model::scripted::Reply;
use positronic_core::prelude::*;
use positronic_core::projection::{Cost, Costs, Spent};
use positronic_core::record::{Body, Event, Money, Path, PriceTable, Usage};
use positronic_core::testing::Story;
use serde_json::json;

use crate::support::{Play, done, path};

fn table(prices: &serde_json::Value) -> PriceTable {
    serde_json::from_value(json!({"as_of": "2026-01-01", "prices": prices})).unwrap()
}

fn usage(input: u64, output: u64, cached: u64, reasoning: u64) -> Usage {
    Usage { input, output, cached, reasoning }
}

/// A step that asks, and a loop that calls a brain whose loop asks as well.
async fn story() -> Story {
    let ask = || Reply::call("inner", json!({}));
    let play = Play::new([Reply::text("Yes."), ask(), Reply::text("Deep."), ask(), Reply::text("Deeper."), done()]);
    let inner = || brain("Inner").r#loop("Think", |cx| cx.system("Think.").input("Go."));
    let outer = brain("Outer")
        .step("Ask", async |cx| {
            cx.model().ask("Shall we?").await?;
            Ok(())
        })
        .r#loop("Chat", move |cx| cx.system("Talk.").input("Go.").brain("inner", inner(), |b| b.description("Thinks")));
    play.run(outer, ()).await
}

/// The story's log, with answers that say who gave them and what they used.
async fn log(facts: &[(&str, Usage)]) -> Vec<Event> {
    let mut log: Vec<Event> = story().await.log().iter().map(|event| Event::clone(event)).collect();
    let mut facts = facts.iter();
    for event in &mut log {
        if let Body::LoopModelResult { facts: known, .. } = &mut event.body {
            let (model, usage) = facts.next().unwrap();
            (known.provider, known.model, known.usage) = ("openai".to_owned(), (*model).to_owned(), *usage);
        }
    }
    assert!(facts.next().is_none());
    log
}

fn spent(calls: u64, nanos: u64, unpriced: u64) -> (u64, u64, u64) {
    (calls, nanos, unpriced)
}

fn of(sum: Spent) -> (u64, u64, u64) {
    (sum.calls, sum.known.nanos(), sum.unpriced)
}

#[tokio::test(start_paused = true)]
async fn every_place_of_the_tree_has_its_sum() {
    let used = [1, 10, 100, 1000, 10_000, 100_000].map(|input| ("m", usage(input, 0, 0, 0)));
    let costs = Costs::of(&log(&used).await, &table(&json!({"openai/m": {"input": "0.001", "output": 0}})));

    let paths: Vec<_> = costs.calls.iter().map(|call| call.path.as_str()).collect();
    assert_eq!(paths, ["Ask/0", "Chat/0", "Chat/0.0/Think/0", "Chat/1", "Chat/1.0/Think/0", "Chat/2"]);
    for (place, within, prompt) in [
        ("Ask", spent(1, 1, 0), spent(1, 1, 0)),
        ("Chat", spent(5, 111_110, 0), spent(3, 101_010, 0)),
        ("Chat/0", spent(1, 10, 0), spent(0, 0, 0)),
        ("Chat/0.0", spent(1, 100, 0), spent(0, 0, 0)),
        ("Chat/1.0/Think", spent(1, 10_000, 0), spent(1, 10_000, 0)),
        ("Nowhere", spent(0, 0, 0), spent(0, 0, 0)),
    ] {
        assert_eq!((of(costs.within(&path(place))), of(costs.prompt(&path(place)))), (within, prompt), "{place}");
    }
    assert_eq!(of(costs.total()), spent(6, 111_111, 0));
    assert_eq!(costs.total().total(), Cost::Known(Money::of_nanos(111_111)));
    assert_eq!(costs.total().usage, usage(111_111, 0, 0, 0));
    let rounds: Vec<_> = costs.rounds().into_iter().map(|(path, sum)| format!("{path} {}", sum.known)).collect();
    assert_eq!(rounds[..2], ["Ask/0 0.000000001", "Chat/0 0.00000001"]);
    assert_eq!(costs.currency, "USD");
}

#[tokio::test(start_paused = true)]
async fn an_unknown_price_is_never_nothing() {
    let one = usage(1_000_000, 1_000_000, 500_000, 100_000);
    let answers =
        [("m", one), ("other", one), ("m", usage(0, 0, 0, 0)), ("free", one), ("other", one), ("m-20260101", one)];
    let prices = json!({
        "openai/m": {"input": 2, "output": "8", "cached": 0.5, "reasoning": 4},
        "free": {"input": 0, "output": 0},
    });

    let costs = Costs::of(&log(&answers).await, &table(&prices));

    let known: Vec<_> = costs.calls.iter().map(|call| call.cost).collect();
    let each = Cost::Known("8.85".parse().unwrap());
    let free = Cost::Known(Money::default());
    assert_eq!(known, [each, Cost::Unknown, Cost::Unknown, free, Cost::Unknown, each]);
    let total = costs.total();
    assert_eq!((total.total(), total.known.to_string(), total.unpriced), (Cost::Unknown, "17.7".to_owned(), 3));
    assert_eq!(costs.unpriced(), ["openai/other", "openai/m"]);
    assert_eq!(costs.within(&path("Ask")).total(), each, "what is known is known, whatever is not");
    assert_eq!(costs.within(&Path::root()), total);
    let none = Costs::of(&log(&answers).await, &table(&json!({})));
    assert_eq!((none.total().known, none.total().unpriced), (Money::default(), 6));
    assert_eq!(serde_json::to_value(none.calls[0].cost).unwrap(), json!("unknown"));
    assert_eq!(serde_json::to_value(each).unwrap(), json!({"known": "8.85"}));
}

#[tokio::test(start_paused = true)]
async fn sums_in_the_log_are_not_counted_again() {
    let used = [("m", usage(7, 3, 0, 0)); 6];
    let log = log(&used).await;
    let sums = log.iter().filter(|event| matches!(event.body, Body::LoopComplete { .. })).count();
    assert_eq!(sums, 3);

    let costs = Costs::of(&log, &PriceTable::bundled());

    assert_eq!(costs.total().usage, usage(42, 18, 0, 0));
    assert_eq!(costs.total().unpriced, 6);
}
