//! Endpoints of one run.

use std::sync::atomic::{AtomicBool, Ordering};

use positronic_store_suite::FaultyStore;

use super::*;

/// Makes an endpoint one of a run, with a body of its own for one notice.
fn of(run: &RunId, event: WebhookEvent) -> impl Fn(&mut Endpoint) + Send + Sync {
    let bodies = [(event, json!({ "type": format!("own {}", event.as_str()) }))];
    let own = RunSubscription::builder().id("first").bodies(bodies.into()).build();
    let subscription = StoredSubscription { run: run.clone(), user: None, own };
    move |endpoint| {
        endpoint.events = vec![event];
        endpoint.subscription = Some(subscription.clone());
    }
}

#[tokio::test(start_paused = true)]
async fn endpoint_of_a_run_gets_its_own_bodies_and_nothing_of_other_runs() {
    let bench = Bench::accepting();
    let (own, other) = (bench.waiting().await, bench.waiting().await);
    bench.endpoint("run-own", of(&own, WebhookEvent::RunCompleted)).await;

    let _server = bench.server();
    bench.approve(&own).await;
    bench.approve(&other).await;
    seconds(5).await;

    assert_eq!(bench.receiver.types(), ["own run.completed"]);
}

#[tokio::test(start_paused = true)]
async fn endpoint_of_a_run_gets_no_other_bodies_than_its_own() {
    let bench = Bench::accepting();
    let run = bench.waiting().await;
    let own = of(&run, WebhookEvent::RunCompleted);
    let to_all = |endpoint: &mut Endpoint| {
        own(endpoint);
        endpoint.events.clear();
    };
    bench.endpoint("run-own", to_all).await;

    let _server = bench.server();
    bench.approve(&run).await;
    seconds(5).await;

    assert_eq!(bench.receiver.types(), ["own run.completed"]);
}

#[tokio::test(start_paused = true)]
async fn endpoint_of_a_run_gets_the_last_notice_at_once_and_ends_after_the_run() {
    let bench = Bench::accepting();
    let run = bench.waiting().await;
    bench.endpoint("run-own", of(&run, WebhookEvent::DecisionPending)).await;
    let stored = bench.records().endpoint("run-own").await.unwrap().unwrap().value;

    bench.records().catch_up("run-own", &stored, bench.clock.now()).await.unwrap();
    let _server = bench.server();
    seconds(5).await;

    assert_eq!(bench.receiver.types(), ["own decision.pending"]);
    bench.approve(&run).await;
    skip(600).await;
    assert!(bench.records().endpoint("run-own").await.unwrap().is_some());
    skip(7200).await;
    assert!(bench.records().endpoint("run-own").await.unwrap().is_none());
}

/// A run with two open approvals, of which one is decided, has still a question.
#[tokio::test(start_paused = true)]
async fn endpoint_of_a_run_gets_the_question_that_is_still_open() {
    let bench = Bench::accepting();
    let model = ScriptedModel::from_fn(|_| Reply::calls([("pay", json!({})), ("pay", json!({}))]));
    let runner = Runner::new(model).store(bench.store.clone()).clock(bench.clock.clone()).linger(Duration::ZERO);
    let run = runner.start(gated(), ()).await.unwrap();
    assert!(matches!(run.settled().await, Settled::Waiting(_)));
    let (first, second): (Path, Path) = ("Work/0.0".parse().unwrap(), "Work/0.1".parse().unwrap());
    let id = run.id().clone();
    drop(run);
    runner.client().approve(&id, &second, "ann").await.unwrap();
    bench.endpoint("run-own", of(&id, WebhookEvent::DecisionPending)).await;
    let stored = bench.records().endpoint("run-own").await.unwrap().unwrap().value;

    bench.records().catch_up("run-own", &stored, bench.clock.now()).await.unwrap();
    let (_, delivery) = bench.only_delivery("run-own").await;

    let asked = bench.client().events(&id, delivery.seq).await.unwrap();
    assert_eq!((delivery.event, &asked[0].path), (WebhookEvent::DecisionPending, &first));
    // After the second answer nothing is open.
    bench.records().remove_endpoint("run-own").await.unwrap();
    runner.client().approve(&id, &first, "ann").await.unwrap();
    bench.endpoint("run-own", of(&id, WebhookEvent::DecisionPending)).await;
    bench.records().catch_up("run-own", &stored, bench.clock.now()).await.unwrap();
    assert!(bench.records().deliveries("run-own", None, 10).await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn disabled_endpoint_of_a_run_goes_with_its_open_deliveries() {
    let bench = Bench::new(|_, _| Answer::Status(410));
    let run = bench.waiting().await;
    bench.endpoint("run-own", of(&run, WebhookEvent::RunCompleted)).await;
    bench.approve(&run).await;
    let _server = bench.server();
    seconds(5).await;
    let stored = bench.records().endpoint("run-own").await.unwrap().unwrap().value;
    assert!(stored.disabled.is_some());
    let (delivery, _) = bench.only_delivery("run-own").await;
    bench.records().send_again("run-own", &delivery, bench.clock.now()).await.unwrap();

    skip(2 * 3600).await;

    assert!(bench.records().endpoint("run-own").await.unwrap().is_none());
    assert!(bench.records().deliveries("run-own", None, 10).await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn run_that_cannot_be_read_does_not_keep_others_from_being_removed() {
    let bench = Bench::accepting();
    let damaged = bench.waiting().await;
    bench.endpoint("run-damaged", of(&damaged, WebhookEvent::RunCompleted)).await;
    bench.endpoint("run-gone", of(&RunId::new("gone"), WebhookEvent::RunCompleted)).await;
    // Of the two, the first run that is read cannot be.
    let first = AtomicBool::new(true);
    let store = FaultyStore::new(bench.store.clone(), |_, _| None).reading(move |method| {
        let fails = method == "run" && first.swap(false, Ordering::Relaxed);
        fails.then(|| StoreError::Corrupt { what: "a run".to_owned(), reason: "it was cut off".to_owned() })
    });
    let records = Records::new(runner_of(store, bench.clock.clone()).client());

    records.remove_ended(bench.clock.now()).await.unwrap();

    let left: Vec<_> = bench.records().endpoints().await.unwrap().into_iter().map(|(id, _)| id).collect();
    assert_eq!(left, ["run-damaged"]);
}
