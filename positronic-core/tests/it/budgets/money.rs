//! Money limits: the cost of an answer, and unknown costs.

use std::time::Duration;

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::prices::PriceTable;
use positronic_core::record::{EndReason, Usage};
use positronic_core::runner::Settled;
use positronic_core::store::MemoryStore;
use positronic_core::testing::Story;
use serde_json::json;

use super::{prices, tokens};
use crate::support::{Journal, Play, ShopLoop, batch, done, events_named, tools};

fn money(config: ShopLoop) -> ShopLoop {
    tools(config).max_money("0.00002").on_limit(OnLimit::Error)
}

#[tokio::test(start_paused = true)]
async fn answer_without_a_cost_ends_only_loops_with_a_money_limit() {
    let journal = Journal::default();
    for (config, fails) in [(money as fn(ShopLoop) -> ShopLoop, true), (tools, false)] {
        // An answer without token counts.
        let model = ScriptedModel::from_fn(|request| match request.path.as_str() {
            "Work/0" => batch([("safe", "a")]),
            _ => done(),
        });
        let play = Play::priced(model, true, &prices());
        let story = Story::of(&play.start(crate::support::workshop(&journal, config), ()).await).await;
        match (story.settled(), fails) {
            (Settled::Failed(failure), true) => assert_eq!(
                failure.message,
                "the loop `Work` has a limit of money, and the price of `scripted/scripted` is unknown"
            ),
            (Settled::Completed(_), false) => {}
            (other, _) => panic!("{other:?}"),
        }
        let unpriced: Vec<_> =
            story.log().iter().filter_map(|event| event.kind.to_value().get("unpriced").cloned()).collect();
        assert_eq!(unpriced, if fails { vec![json!("scripted/scripted")] } else { Vec::new() });
    }
}

#[tokio::test(start_paused = true)]
async fn unenforceable_money_limit_is_reported_before_the_first_call() {
    let journal = Journal::default();
    let shop = || crate::support::workshop(&journal, money);
    let no_table = Play::new([]).run(&shop(), ()).await;
    let unknown = Play::priced(ScriptedModel::new([]), true, &json!({"openai/*": {"input": 1, "output": 1}}));
    let unknown = unknown.run(&shop(), ()).await;
    for (story, says) in [
        (
            no_table,
            "there is a limit of money and no price table; set one with `.prices(…)`, or with `--prices` on the command line",
        ),
        (unknown, "there is a limit of money, and the runner's prices of 2026-01-01 have none for `scripted/scripted`"),
    ] {
        let Settled::Failed(failure) = story.settled() else { panic!("{:?}", story.settled()) };
        assert_eq!(failure.code, EndReason::Config);
        assert_eq!(failure.message, format!("the loop `Work` cannot be configured: {says}"));
        assert!(events_named(&story, "LOOP_MODEL_CALL").is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn log_stores_the_cost_of_each_answer() {
    let journal = Journal::default();
    let replies = [batch([("safe", "a")]).usage(tokens(10)), batch([("safe", "b")]).usage(tokens(15))];
    let play = Play::priced(ScriptedModel::new(replies), true, &prices());
    let run = play.start(crate::support::workshop(&journal, money), ()).await;
    let story = Story::of(&run).await;

    let costs: Vec<_> =
        story.log().iter().filter_map(|event| event.kind.to_value()["metadata"].get("cost").cloned()).collect();
    assert_eq!(costs[1], json!({"amount": "0.000015", "currency": "EUR", "as_of": "2026-01-01"}));
    // The check of `Play::story` has replayed the log without a price table, to the same state.
    let lines = story.json_lines();
    let events: Vec<_> = lines.lines().map(|line| positronic_core::record::Event::from_json(line).unwrap()).collect();
    let replayed = positronic_core::machine::RunState::replay(&events).unwrap();
    assert_eq!(serde_json::to_string(&replayed).unwrap(), serde_json::to_string(&run.state()).unwrap());
    assert_eq!(replayed.root.unwrap().spent.known.to_string(), "0.000025");
    assert_eq!(events_named(&story, "LOOP_LIMIT"), ["Work"]);
}

/// A run that waits for an approval, with a money limit in a currency.
fn paid() -> Brain {
    brain("Paid")
        .r#loop("Read", |cx| {
            cx.system("Read.")
                .input("What is there?")
                .max_money("5")
                .tool("look", |t| t.requires_approval("it costs").execute(async |_: NoArgs, _| Ok("seen")))
        })
        .build()
}

fn worker(store: &MemoryStore, currency: Option<&str>) -> Runner {
    let used = Usage { input: 10, ..Usage::default() };
    let model = ScriptedModel::from_fn(move |request| match request.path.as_str() {
        "Read/0" => Reply::call("look", json!({})).usage(used),
        _ => Reply::text("It was seen.").usage(used),
    });
    let table = |currency| json!({"as_of": "2026-01-01", "currency": currency, "prices": prices()});
    let table = currency.map(|currency| serde_json::from_value::<PriceTable>(table(currency)).unwrap());
    Runner::new(model).store(store.clone()).linger(Duration::ZERO).prices(table).brain(paid())
}

#[tokio::test(start_paused = true)]
async fn runner_with_unsuitable_prices_leaves_a_money_limited_run_unchanged() {
    let store = MemoryStore::new();
    let first = worker(&store, Some("EUR"));
    let run = first.start(&paid(), ()).await.unwrap();
    let Settled::Waiting(pending) = run.settled().await else { panic!("a person is asked") };
    run.approve(&pending[0].call, "ann").await.unwrap();
    let id = run.id().clone();
    first.release().await;
    drop(run);

    let without = worker(&store, None).resume(&id).await.map(|_| ()).unwrap_err().to_string();
    let other = worker(&store, Some("USD")).resume(&id).await.map(|_| ()).unwrap_err().to_string();

    assert_eq!(
        without,
        "the run has a limit of money: this runner has no prices; resume it with the prices that it began with"
    );
    assert_eq!(
        other,
        "the run has a limit of money: it counts in EUR, and this runner's prices are in USD; resume it with the prices \
         that it began with"
    );
    let run = worker(&store, Some("EUR")).resume(&id).await.unwrap();
    assert!(matches!(run.settled().await, Settled::Completed(_)), "the run is as it was");
}
