//! What the row of a run says of its time, its cost and the cause of its failure.

use std::time::Duration;

use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::prelude::*;
use positronic_core::prices::PriceTable;
use positronic_core::record::{EventKind, RunSummary, Seq, Status, Usage};
use positronic_core::runner::{Clock as _, Fork, Settled};
use positronic_core::store::prelude::*;
use positronic_core::store::{FigureFilter, MemoryStore, RunFilter};
use positronic_core::testing::TestClock;
use serde_json::json;

/// Works for 30 s, 20 s of them after an approval, and fails.
fn shop() -> Brain<(), ()> {
    brain("Shop")
        .step("Load", async |_| {
            tokio::time::sleep(Duration::from_secs(10)).await;
            Ok(())
        })
        .r#loop("Chat", |cx| {
            cx.system("You sell.").input("Sell.").tool("sell", |t| {
                t.requires_approval("it is the last one").exit().execute(async |_: NoArgs, _| {
                    tokio::time::sleep(Duration::from_secs(20)).await;
                    Ok("sold")
                })
            })
        })
        .step("Ship", async |_| Err::<(), _>(Error::new("order 4711 has no address")))
        .build()
}

#[tokio::test(start_paused = true)]
async fn row_has_active_time_cost_and_cause_and_figures_add_them_up() {
    let (store, clock) = (MemoryStore::new(), TestClock::default());
    let begun = clock.now();
    let usage = Usage { input: 100, output: 10, cached: 40, ..Usage::default() };
    let prices =
        json!({ "as_of": "2026-01-01", "currency": "EUR", "prices": { "scripted/*": { "input": 1, "output": 2 } } });
    let model = ScriptedModel::from_fn(move |_| Reply::call("sell", json!({})).usage(usage));
    let runner = Runner::new(model)
        .store(store.clone())
        .clock(clock.clone())
        .prices(serde_json::from_value::<PriceTable>(prices).unwrap());
    let run = runner.start(&shop(), ()).await.unwrap();
    let Settled::Waiting(pending) = run.settled().await else { panic!("a person is asked") };
    let waiting = store.run(run.id()).await.unwrap();
    assert_eq!((waiting.active, waiting.cause.as_deref()), (Some(Duration::from_secs(10)), None));

    tokio::time::sleep(Duration::from_hours(2)).await;
    run.approve(&pending[0].call, "ann").await.unwrap();
    assert!(matches!(run.settled().await, Settled::Failed(_)));

    let row = store.run(run.id()).await.unwrap();
    assert_eq!(row.active, Some(Duration::from_secs(30)), "the wait for a person does not count");
    assert_eq!(row.cause.as_deref(), Some("order … has no address"));
    let cost = row.cost.unwrap();
    let spent = run.state().root.as_deref().unwrap().spent.known;
    assert!(spent.nanos() > 0);
    assert_eq!((cost.known, cost.currency.as_deref(), cost.is_partial), (spent, Some("EUR"), false));

    let [model] = &row.models[..] else { panic!("one model: {:?}", row.models) };
    assert_eq!((&*model.model, model.usage, model.known, model.is_partial), ("scripted/scripted", usage, spent, false));

    let filter =
        FigureFilter::builder().from(begun).bucket(Duration::from_hours(1)).buckets(4).now(clock.now()).build();
    let figures = store.figures(&filter).await.unwrap();
    let [group] = &figures.ended[..] else { panic!("{figures:?}") };
    assert_eq!((group.bucket, group.status, group.runs), (2, Status::Failed, 1));
    assert_eq!((group.usage.input, group.usage.output, group.usage.cached), (100, 10, 40));
    assert_eq!((group.cost, &group.active[..]), (spent, &[30_000_000][..]));
    assert_eq!((figures.started, figures.open.len()), (vec![1, 0, 0, 0], 0));
}

#[tokio::test(start_paused = true)]
async fn answers_that_a_fork_shares_count_once_in_all_sums() {
    let (store, clock) = (MemoryStore::new(), TestClock::default());
    let begun = clock.now();
    let usage = Usage { input: 100, output: 10, ..Usage::default() };
    let prices =
        json!({ "as_of": "2026-01-01", "currency": "EUR", "prices": { "scripted/*": { "input": 1, "output": 2 } } });
    let model = ScriptedModel::from_fn(move |asked| match asked.messages.len() {
        1 => Reply::call("look", json!({})).usage(usage),
        _ => Reply::text("Done.").usage(usage),
    });
    let desk = brain("Desk")
        .r#loop("Chat", |cx| {
            cx.system("You look.").input("Look.").tool("look", |t| t.execute(async |_: NoArgs, _| Ok("a shelf")))
        })
        .build();
    let runner = Runner::new(model)
        .store(store.clone())
        .clock(clock.clone())
        .prices(serde_json::from_value::<PriceTable>(prices).unwrap())
        .brain(desk.clone());
    let run = runner.start(&desk, ()).await.unwrap();
    run.result().await.unwrap();
    let log = runner.client().events(run.id(), Seq(0)).await.unwrap();
    let second = log.iter().rfind(|event| matches!(event.kind, EventKind::LoopIteration(_))).unwrap().seq;
    let at = Seq(second.0 - 1);

    let fork = runner.fork(run.id(), at, Fork::default()).await.unwrap();
    fork.result().await.unwrap();
    let again = runner.fork(fork.id(), at, Fork::default()).await.unwrap();
    again.result().await.unwrap();

    let nanos = |row: &RunSummary| (row.usage.total(), row.cost.as_ref().unwrap().known.nanos());
    let (total, known) = nanos(&store.run(fork.id()).await.unwrap());
    assert_eq!((total, known > 0), (110, true));
    assert_eq!(nanos(&store.run(run.id()).await.unwrap()), (220, 2 * known));
    let row = store.run(again.id()).await.unwrap();
    assert_eq!(nanos(&row), (110, known), "only its own answer");
    assert_eq!((row.models[0].usage, row.models[0].known.nanos()), (usage, known));
    let counted = again.state().root.as_deref().unwrap().spent.known;
    assert_eq!(counted.nanos(), 2 * known, "its limits count what it shares");
    let sums = store.sums(&RunFilter::default()).await.unwrap();
    assert_eq!((sums.usage.total(), sums.costs["EUR"].nanos()), (440, 4 * known));
    let filter =
        FigureFilter::builder().from(begun).bucket(Duration::from_hours(1)).buckets(4).now(clock.now()).build();
    let figures = store.figures(&filter).await.unwrap();
    let [group] = &figures.ended[..] else { panic!("{figures:?}") };
    assert_eq!((group.runs, group.usage.total(), group.cost.nanos()), (3, 440, 4 * known));
    let [model] = &figures.models[..] else { panic!("{figures:?}") };
    assert_eq!((model.usage.total(), model.cost.nanos()), (440, 4 * known));
}

#[tokio::test(start_paused = true)]
async fn row_without_a_price_says_that_its_cost_is_partial() {
    let store = MemoryStore::new();
    let model = ScriptedModel::from_fn(|_| Reply::text("Hello."));
    let greeting = brain("Greeting").r#loop("Chat", |cx| cx.system("Greet.").input("Hello.")).build();
    let run = Runner::new(model).store(store.clone()).start(&greeting, ()).await.unwrap();
    run.result().await.unwrap();

    let row = store.run(run.id()).await.unwrap();

    let cost = row.cost.unwrap();
    assert_eq!((cost.known.nanos(), cost.currency, cost.is_partial), (0, None, true));
    assert_eq!((row.status, row.cause), (Status::Completed, None));
    assert!(row.models[0].is_partial, "{:?}", row.models);
}
