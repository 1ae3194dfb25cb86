use std::sync::Arc;

use positronic_core::model::cassette::Cassette;
use positronic_core::model::scripted::ScriptedModel;
use positronic_core::prelude::*;
use positronic_core::record::{Actor, SignalId};
use positronic_core::runner::{Delivered, Settled};
use positronic_core::testing::{Lockstep as _, Test};
use positronic_examples::bookshop::{CASSETTE, Order, Sent, Shop, order_of_the_page, parcel};
use serde_json::{Value, json};

async fn deliver(runner: &Runner, webhook: &str, identifier: &str, payload: Value) -> Delivered {
    let id = SignalId::new(format!("{webhook}-{identifier}"));
    runner.deliver(id, webhook, identifier, payload, Actor::default()).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn basket_is_kept_until_it_is_sent() {
    let shop = Shop::example();
    let cassette = Arc::new(Cassette::replay(CASSETTE).unwrap());
    let runner = Runner::new(Arc::clone(&cassette)).lockstep(true).webhooks(shop.webhooks.list());
    let counter = shop.brains.counter.clone().bind(Arc::clone(&shop));
    let chat = runner.conversation("c");

    let first = chat.send(&counter, (), "I would like a book about the sea.").await.unwrap();
    assert_eq!(first.result().await.unwrap().titles, ["The Lighthouse"]);
    let second = chat.send(&counter, (), "Please send it.").await.unwrap();
    assert!(matches!(second.settled().await, Settled::Waiting(_)), "the parcel waits for its payment");
    deliver(&runner, "payment", "o-1", json!({ "euros": 18 })).await;
    let basket = second.result().await.unwrap();

    assert_eq!(basket.titles, Vec::<String>::new());
    assert_eq!(basket.sent, [Sent::Parcel { titles: vec!["The Lighthouse".to_owned()], paid: 18 }]);
    assert_eq!(cassette.unused(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn order_of_the_page_starts_a_run() {
    let shop = Shop::example();
    let runner = Runner::new(ScriptedModel::new([])).webhooks(shop.webhooks.list()).start_on(
        shop.webhooks.orders.clone(),
        parcel().bind(Arc::clone(&shop)),
        order_of_the_page,
    );
    let order = Order::default();

    let Delivered::To { run, .. } = deliver(&runner, "orders", &order.number, json!(order)).await else {
        panic!("an order starts a run");
    };
    let run = runner.resume(&run).await.unwrap();
    run.settled().await;
    deliver(&runner, "payment", &order.number, json!({ "euros": 18 })).await;

    let sent = run.result().await.unwrap();
    assert_eq!(sent, json!({ "Parcel": { "titles": ["The Lighthouse"], "paid": 18 } }));
}

#[tokio::test(start_paused = true)]
async fn unpaid_order_is_not_sent() {
    let run = Test::new(ScriptedModel::new([])).start(parcel().bind(Shop::example()), Order::default()).await;
    assert_eq!(run.result().await.unwrap(), Sent::Unpaid);
}
