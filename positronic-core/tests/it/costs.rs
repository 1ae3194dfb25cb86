//! Usage and cost by answer, iteration, loop, nested brain and run; an unknown price is never zero.

use positronic_core::model::scripted::Reply;
use positronic_core::prelude::*;
use positronic_core::prices::PriceTable;
use positronic_core::projection::{Cost, Costs, Prompts, Spent};
use positronic_core::record::{Charge, Event, EventKind, Money, Path, Usage};
use positronic_core::testing::Story;
use serde_json::json;

use crate::support::{Play, done, path};

fn table(prices: &serde_json::Value) -> PriceTable {
    serde_json::from_value(json!({"as_of": "2026-01-01", "prices": prices})).unwrap()
}

fn usage(input: u64, output: u64, cached: u64, reasoning: u64) -> Usage {
    Usage { input, output, cached, reasoning, ..Usage::default() }
}

/// A step with a question, and a loop that calls a brain whose loop asks as well.
async fn story() -> Story {
    let ask = || Reply::call("inner", json!({}));
    let play = Play::new([Reply::text("Yes."), ask(), Reply::text("Deep."), ask(), Reply::text("Deeper."), done()]);
    let inner = || brain("Inner").r#loop("Think", |cx| cx.system("Think.").input("Go."));
    let outer = brain("Outer")
        .step("Ask", async |cx| {
            cx.model().ask("Shall we?").await?;
            Ok(())
        })
        .r#loop("Chat", move |cx| {
            cx.system("Talk.").input("Go.").tool("inner", |t| t.brain(inner()).description("Thinks"))
        });
    play.run(outer, ()).await
}

/// The story's log, with answers that name their model and usage.
async fn log(metadata: &[(&str, Usage)]) -> Vec<Event> {
    let mut log: Vec<Event> = story().await.log().iter().map(|event| Event::clone(event)).collect();
    let mut metadata = metadata.iter();
    for event in &mut log {
        if let EventKind::LoopModelResult { metadata: known, .. } = &mut event.kind {
            let (model, usage) = metadata.next().unwrap();
            (known.provider, known.model, known.usage) = ("openai".to_owned(), (*model).to_owned(), *usage);
        }
    }
    assert!(metadata.next().is_none());
    log
}

fn spent(calls: u64, nanos: u64, unpriced: u64) -> (u64, u64, u64) {
    (calls, nanos, unpriced)
}

fn of(sum: Spent) -> (u64, u64, u64) {
    (sum.calls, sum.known.nanos(), sum.unpriced)
}

#[tokio::test(start_paused = true)]
async fn every_node_of_the_tree_has_its_sum() {
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
    let iterations: Vec<_> =
        costs.iterations().into_iter().map(|(path, sum)| format!("{path} {}", sum.known)).collect();
    assert_eq!(iterations[..2], ["Ask/0 0.000000001", "Chat/0 0.00000001"]);
    assert_eq!(costs.currency, "USD");
}

#[tokio::test(start_paused = true)]
async fn unknown_price_is_never_zero() {
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
    assert_eq!(costs.within(&path("Ask")).total(), each, "known costs add up despite unknown ones");
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
    let sums = log.iter().filter(|event| matches!(event.kind, EventKind::LoopComplete { .. })).count();
    assert_eq!(sums, 3);

    let costs = Costs::of(&log, &PriceTable::bundled());

    assert_eq!(costs.total().usage, usage(42, 18, 0, 0));
    assert_eq!(costs.total().unpriced, 6);
}

#[tokio::test(start_paused = true)]
async fn recorded_usage_is_shown_with_its_current_cost() {
    let mut log = log(&[("m", usage(10, 0, 0, 0)); 6]).await;
    let charge = |currency: &str, nanos| Charge {
        amount: Money::of_nanos(nanos),
        currency: currency.to_owned(),
        as_of: Some("2025-12-31".to_owned()),
    };
    let mut charges =
        [Some(charge("EUR", 7)), None, Some(charge("USD", 9)), Some(charge("EUR", 5)), None, None].into_iter();
    for event in &mut log {
        if let EventKind::LoopModelResult { metadata, .. } = &mut event.kind {
            metadata.cost = charges.next().unwrap().map(Box::new);
        }
    }

    let costs = Costs::of(&log, &table(&json!({"openai/m": {"input": "0.001", "output": 0}})));

    let counted = costs.counted().unwrap();
    assert_eq!((counted.currency.as_str(), counted.as_of.as_deref()), ("EUR", Some("2025-12-31")));
    assert_eq!(of(counted.spent), spent(6, 12, 4), "a cost in another currency is unknown");
    assert_eq!(of(costs.total()), spent(6, 60, 0), "today's prices know all of them");
    assert_eq!(Costs::of(&self::log(&[("m", usage(1, 0, 0, 0)); 6]).await, &PriceTable::bundled()).counted(), None);
}

#[tokio::test(start_paused = true)]
async fn prompt_has_the_recorded_cost_of_its_own_answers() {
    let mut log: Vec<Event> = story().await.log().iter().map(|event| Event::clone(event)).collect();
    let charge = |amount: &str| Charge { amount: amount.parse().unwrap(), currency: "EUR".to_owned(), as_of: None };
    for event in &mut log {
        if let EventKind::LoopModelResult { metadata, .. } = &mut event.kind {
            // The last answer has no known cost.
            let cost = if event.path.as_str() == "Chat/2" { None } else { Some(charge("0.25")) };
            metadata.cost = cost.map(Box::new);
        }
    }
    let prompts = Prompts::of(&log);
    let cost = |at: &str| prompts.get(&path(at)).unwrap().cost.clone();
    assert_eq!(cost("Chat"), Some(charge("0.5")), "without those of the brain that it called");
    assert_eq!(cost("Chat/0.0/Think"), Some(charge("0.25")));
}
