//! Which notices arrive where.

use positronic_core::store::prelude::*;

use super::*;

#[tokio::test(start_paused = true)]
async fn notices_of_a_run_are_signed_and_contain_ids_and_a_link() {
    let bench = Bench::accepting();
    bench.endpoint("ops", |_| {}).await;
    let _server = bench.server();
    seconds(5).await;

    let run = bench.waiting().await;
    seconds(2).await;
    assert_eq!(bench.receiver.types(), ["run.started", "decision.pending"]);
    bench.approve(&run).await;
    seconds(2).await;

    assert_eq!(bench.receiver.types(), ["run.started", "decision.pending", "decision.made", "run.completed"]);
    let all = bench.receiver.all();
    assert_eq!(all.len(), 4, "each once");
    let mut body = all[1].body.clone();
    body["data"]["run"] = "…".into();
    body["data"]["url"] = body["data"]["url"].as_str().unwrap().replace(run.as_str(), "…").into();
    assert_eq!(body["data"]["pending"].as_str().unwrap().len(), 20);
    body["data"]["pending"] = "…".into();
    insta::assert_json_snapshot!(body, @r#"
    {
      "data": {
        "brain": "Gated",
        "call": "Work/0.0",
        "pending": "…",
        "run": "…",
        "seq": 7,
        "url": "https://agents.example.com/at/ui/runs/…/events/7"
      },
      "timestamp": "2026-01-01T00:00:05.000000Z",
      "type": "decision.pending"
    }
    "#);
    let (_, delivery) = bench.records().deliveries("ops", None, 1).await.unwrap().remove(0);
    assert_eq!(delivery.event, WebhookEvent::RunCompleted, "the latest first");
    assert!(matches!(delivery.status, DeliveryStatus::Delivered { .. }));
    assert_eq!(delivery.attempts[0].status, Some(200));
}

#[tokio::test(start_paused = true)]
async fn endpoint_gets_the_notices_that_it_wants_of_events_after_it() {
    let bench = Bench::accepting();
    let before = bench.waiting().await;
    seconds(1).await;
    bench.endpoint("completed", only(WebhookEvent::RunCompleted)).await;
    bench.endpoint("others", |endpoint| endpoint.brain = Some("Other".to_owned())).await;
    bench.endpoint("gated", |endpoint| endpoint.brain = Some("Gated".to_owned())).await;
    bench
        .endpoint("off", |endpoint| {
            endpoint.disabled = Some(Disabled { reason: "test".to_owned(), at: endpoint.created, by_person: true });
        })
        .await;
    let _server = bench.server();
    seconds(3).await;
    assert!(bench.receiver.all().is_empty(), "all events are older than the endpoints");

    bench.approve(&before).await;
    seconds(3).await;

    let mut arrived: Vec<_> =
        bench.receiver.all().iter().map(|it| format!("{} {}", it.url, it.body["type"].as_str().unwrap())).collect();
    arrived.sort();
    assert_eq!(
        arrived,
        [
            "https://completed.example.com/ run.completed",
            "https://gated.example.com/ decision.made",
            "https://gated.example.com/ run.completed",
        ]
    );
}

fn asking(person: bool) -> Brain<(), ()> {
    brain("Asking")
        .r#loop("Work", move |cx| {
            cx.system("").input("Ask.").tool("pay", move |t| {
                let wait = move |_: &NoArgs, _: &_| {
                    let hook = webhook::<Value>("slack").on("T-1").untyped();
                    vec![if person { hook.person() } else { hook }]
                };
                t.wait_any(wait).execute(async |_: NoArgs, _| Ok("asked"))
            })
        })
        .build()
}

#[tokio::test(start_paused = true)]
async fn waits_for_a_person_are_decisions_and_other_waits_are_not() {
    for (person, expected) in [
        (true, vec!["run.started", "decision.pending", "decision.made", "run.completed"]),
        (false, vec!["run.started", "run.completed"]),
    ] {
        let bench = Bench::accepting();
        bench.endpoint("ops", |_| {}).await;
        let _server = bench.server();
        seconds(2).await;

        let run = bench.runner().start(asking(person), ()).await.unwrap();
        assert!(matches!(run.settled().await, Settled::Waiting(_)));
        run.webhook("slack", "T-1", json!({})).await.unwrap();
        assert!(matches!(run.settled().await, Settled::Completed(_)));
        seconds(2).await;

        assert_eq!(bench.receiver.types(), expected, "person: {person}");
    }
}

#[tokio::test(start_paused = true)]
async fn fork_does_not_announce_the_events_of_its_origin() {
    let bench = Bench::accepting();
    bench.endpoint("ops", |_| {}).await;
    let _server = bench.server();
    let run = bench.waiting().await;
    bench.approve(&run).await;
    seconds(3).await;
    let before = bench.receiver.all().len();
    let row = bench.store.run(&run).await.unwrap();

    let last = positronic_core::record::Seq(row.next.0 - 1);
    bench.client().fork(&run, last, positronic_core::runner::Fork::default()).await.unwrap();
    seconds(90).await;

    assert_eq!(bench.receiver.all().len(), before);
}

#[tokio::test(start_paused = true)]
async fn removed_endpoint_leaves_no_entries_and_old_deliveries_are_swept() {
    let bench = Bench::new(|_, url| if url.contains("open") { Answer::Status(500) } else { Answer::Status(200) });
    for id in ["done", "open", "removed"] {
        bench.endpoint(id, only(WebhookEvent::RunStarted)).await;
    }
    let server = bench.server();
    bench.waiting().await;
    seconds(60).await;
    drop(server);
    let count = async |id: &str| bench.records().deliveries(id, None, 10).await.unwrap().len();
    assert_eq!((count("done").await, count("open").await, count("removed").await), (1, 1, 1));

    assert!(bench.records().remove_endpoint("removed").await.unwrap());
    assert!(!bench.records().remove_endpoint("removed").await.unwrap());
    assert_eq!(count("removed").await, 0);
    bench.records().sweep(bench.clock.now()).await.unwrap();

    assert_eq!((count("done").await, count("open").await), (0, 1), "an open delivery stays");
}
