//! Crashes between event, delivery and mark, and several servers.

use std::sync::atomic::{AtomicBool, Ordering};

use positronic_store_suite::FaultyStore;

use super::*;

const ALL: [&str; 4] = ["run.started", "decision.pending", "decision.made", "run.completed"];

#[tokio::test(start_paused = true)]
async fn events_while_no_server_ran_are_announced_by_the_next_one() {
    let bench = Bench::accepting();
    bench.endpoint("ops", |_| {}).await;
    let first = bench.server();
    let run = bench.waiting().await;
    seconds(3).await;
    drop(first);

    bench.approve(&run).await;
    seconds(3 * 24 * 60 * 60).await;
    assert_eq!(bench.receiver.all().len(), 2);
    let _second = bench.server();
    seconds(3).await;

    assert_eq!(bench.receiver.types(), ALL);
    assert_eq!(bench.receiver.all().len(), 4, "each once");
}

/// The first server dies while the receiver works on the request: its delivery is not marked.
#[tokio::test(start_paused = true)]
async fn crash_between_send_and_mark_sends_again_under_the_same_id() {
    let bench = Bench::new(|count, _| if count == 1 { Answer::Never } else { Answer::Status(200) });
    bench.endpoint("ops", only(WebhookEvent::RunStarted)).await;
    let first = bench.server();
    bench.waiting().await;
    seconds(3).await;
    assert_eq!(bench.receiver.all().len(), 1);
    drop(first);

    let _second = bench.server();
    seconds(10).await;

    let all = bench.receiver.all();
    assert_eq!(all.len(), 2);
    assert_eq!(all[0].id, all[1].id);
    let (_, delivery) = bench.only_delivery("ops").await;
    assert!(matches!(delivery.status, DeliveryStatus::Delivered { .. }));
}

/// A server dies after each of its writes. The next one completes what it began.
#[tokio::test(start_paused = true)]
async fn crash_after_any_write_loses_no_delivery() {
    for writes in 0_usize..14 {
        let bench = Bench::accepting();
        bench.endpoint("ops", |_| {}).await;
        let run = bench.waiting().await;
        bench.approve(&run).await;
        let left = Mutex::new(writes);
        let dying = FaultyStore::new(bench.store.clone(), |_, _| None).slowly(move |method| {
            let is_write = matches!(method, "put_entry" | "remove_entry");
            let mut left = left.lock();
            let is_dead = is_write && *left == 0;
            *left = left.saturating_sub(usize::from(is_write));
            is_dead.then_some(Duration::from_hours(1000))
        });
        let first = bench.server_of(runner_of(dying, bench.clock.clone()).client());
        seconds(30).await;
        drop(first);

        let _second = bench.server();
        seconds(120).await;

        assert_eq!(bench.receiver.types(), ALL, "after {writes} writes");
        let due = bench.records().due("ops", 10).await.unwrap();
        assert!(due.is_empty(), "after {writes} writes: {due:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_of_two_servers_sends_and_the_other_takes_over() {
    let bench = Bench::accepting();
    bench.endpoint("ops", |_| {}).await;
    let first = bench.server();
    seconds(2).await;
    let _second = bench.server();
    let run = bench.waiting().await;
    seconds(5).await;
    assert_eq!(bench.receiver.all().len(), 2, "each once");

    drop(first);
    bench.approve(&run).await;
    seconds(5).await;

    assert_eq!(bench.receiver.types(), ALL);
    assert_eq!(bench.receiver.all().len(), 4, "each once");
}

#[tokio::test(start_paused = true)]
async fn many_runs_over_a_change_of_servers_arrive_all() {
    let bench = Bench::accepting();
    bench.endpoint("ops", only(WebhookEvent::RunCompleted)).await;
    let mut server = bench.server();
    for round in 0..30 {
        let run = bench.waiting().await;
        bench.approve(&run).await;
        if round % 3 == 0 {
            // The first server may still be at work.
            server = bench.server();
        }
        tokio::time::sleep(Duration::from_millis(137 * round)).await;
    }
    seconds(90).await;
    drop(server);

    assert_eq!(bench.receiver.types().len(), 30);
}

#[tokio::test(start_paused = true)]
async fn events_of_a_machine_with_a_slow_clock_are_found() {
    let bench = Bench::accepting();
    seconds(3600).await;
    bench.endpoint("ops", only(WebhookEvent::RunCompleted)).await;
    seconds(3600).await;
    let first = bench.server();
    seconds(3600).await;
    drop(first);

    let behind = Behind(bench.clock.clone(), Duration::from_mins(8));
    let runner = runner_of(bench.store.clone(), behind).brain(gated());
    let run = runner.start(gated(), ()).await.unwrap();
    assert!(matches!(run.settled().await, Settled::Waiting(_)));
    let call: Path = "Work/0.0".parse().unwrap();
    runner.client().approve(run.id(), &call, "ann").await.unwrap();
    run.result().await.unwrap();
    let _second = bench.server();
    seconds(3).await;

    assert_eq!(bench.receiver.types(), ["run.completed"]);
}

#[tokio::test(start_paused = true)]
async fn store_that_fails_for_a_while_delays_notices() {
    let bench = Bench::accepting();
    bench.endpoint("ops", |_| {}).await;
    let fails = Arc::new(AtomicBool::new(false));
    let failing = Arc::clone(&fails);
    let store = FaultyStore::new(bench.store.clone(), |_, _| None).reading(move |_| {
        failing.load(Ordering::Relaxed).then(|| StoreError::Failed { message: "no connection".to_owned() })
    });
    let _server = bench.server_of(runner_of(store, bench.clock.clone()).client());
    seconds(3).await;
    fails.store(true, Ordering::Relaxed);
    let run = bench.waiting().await;
    bench.approve(&run).await;
    seconds(100).await;
    fails.store(false, Ordering::Relaxed);
    seconds(100).await;

    assert_eq!(bench.receiver.types(), ALL);
}
