//! Receivers that fail, are slow or leave.

use super::*;

const DAY: u64 = 24 * 60 * 60;

/// Returns the seconds between arrivals.
fn pauses(all: &[Arrived]) -> Vec<u64> {
    all.windows(2).map(|pair| (pair[1].after - pair[0].after).as_secs()).collect()
}

#[tokio::test(start_paused = true)]
async fn failed_delivery_is_sent_ten_times_and_again_by_hand_under_one_id() {
    let bench = Bench::new(|count, _| if count <= 10 { Answer::Status(500) } else { Answer::Status(204) });
    bench.endpoint("ops", only(WebhookEvent::RunStarted)).await;
    let _server = bench.server();
    bench.waiting().await;
    seconds(3).await;
    assert_eq!(bench.receiver.all().len(), 1);
    seconds(4).await;

    let least = [300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400];
    for (failures, least) in (2..).zip(least) {
        assert_eq!(bench.receiver.all().len(), failures);
        skip(least - 10).await;
        assert_eq!(bench.receiver.all().len(), failures, "before {least} s have passed");
        skip(least / 10 + 10).await;
    }
    skip(20 * DAY).await;
    let all = bench.receiver.all();
    assert_eq!(all.len(), 10);
    assert!(all[0].after < Duration::from_secs(3), "the first attempt is at once");
    assert!(all.iter().all(|arrived| arrived.id == all[0].id && arrived.body == all[0].body));
    let (id, delivery) = bench.only_delivery("ops").await;
    assert_eq!(id, all[0].id);
    assert!(matches!(delivery.status, DeliveryStatus::Failed { .. }));
    assert_eq!(delivery.attempts.len(), 10);
    assert_eq!(delivery.attempts[9].error.as_deref(), Some("the receiver answered 500"));

    assert!(bench.records().send_again("ops", &id, bench.clock.now()).await.unwrap().is_some());
    seconds(3).await;

    assert_eq!(bench.receiver.all().len(), 11);
    assert_eq!(bench.receiver.all()[10].id, id);
    let (_, delivery) = bench.only_delivery("ops").await;
    assert!(matches!(delivery.status, DeliveryStatus::Delivered { .. }));
    assert!(bench.records().send_again("ops", "evt_unknown", bench.clock.now()).await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn retry_after_lengthens_the_pause() {
    let bench = Bench::new(|count, _| match count {
        1 => Answer::RetryAfter(503, "3600"),
        2 => Answer::RetryAfter(429, "Thu, 01 Jan 2026 03:00:00 GMT"),
        _ => Answer::Status(200),
    });
    bench.endpoint("ops", only(WebhookEvent::RunStarted)).await;
    let _server = bench.server();
    bench.waiting().await;
    seconds(3).await;
    for wait in [3590, 10, 7180, 20] {
        skip(wait).await;
    }

    let all = bench.receiver.all();
    assert_eq!(all.len(), 3);
    assert!((3600..3620).contains(&pauses(&all)[0]), "{all:?}");
    assert!((3 * 3600..3 * 3600 + 30).contains(&all[2].after.as_secs()), "{all:?}");
}

#[tokio::test(start_paused = true)]
async fn receiver_that_is_gone_disables_its_endpoint() {
    let bench = Bench::new(|_, _| Answer::Status(410));
    bench.endpoint("ops", |_| {}).await;
    let _server = bench.server();
    let run = bench.waiting().await;
    seconds(10).await;
    let arrived = bench.receiver.all().len();
    assert!((1..=2).contains(&arrived));

    bench.approve(&run).await;
    skip(DAY).await;

    assert_eq!(bench.receiver.all().len(), arrived);
    let endpoint = bench.records().endpoint("ops").await.unwrap().unwrap().value;
    assert_eq!(endpoint.disabled.unwrap().reason, "the receiver answered 410 Gone");
}

#[tokio::test(start_paused = true)]
async fn other_answers_than_success_are_failures_and_redirects_are_not_followed() {
    for (answer, error) in [
        (Answer::Status(302), "the receiver answered 302; redirects are not followed"),
        (Answer::Status(404), "the receiver answered 404"),
        (Answer::Internal, "the endpoint is not in the public internet; only public addresses are allowed"),
        (Answer::Unreachable, "cannot reach the endpoint: connection refused"),
        (Answer::Never, "the endpoint did not answer within 20 s"),
    ] {
        let first = answer.clone();
        let bench = Bench::new(move |count, _| if count == 1 { first.clone() } else { Answer::Status(200) });
        bench.endpoint("ops", only(WebhookEvent::RunStarted)).await;
        let _server = bench.server();
        bench.waiting().await;
        seconds(60).await;

        assert_eq!(bench.receiver.all().len(), 2, "{answer:?}");
        let (_, delivery) = bench.only_delivery("ops").await;
        assert_eq!(delivery.attempts[0].error.as_deref(), Some(error));
        assert!(matches!(delivery.status, DeliveryStatus::Delivered { .. }), "{answer:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn slow_receiver_does_not_delay_the_others() {
    let bench = Bench::new(|_, url| match url.contains("slow") {
        true => Answer::Slow(Duration::from_secs(19)),
        false => Answer::Status(200),
    });
    bench.endpoint("slow", only(WebhookEvent::RunStarted)).await;
    bench.endpoint("fast", only(WebhookEvent::RunStarted)).await;
    let _server = bench.server();
    seconds(3).await;
    for _ in 0..20 {
        bench.waiting().await;
    }
    seconds(5).await;

    let arrived = |name: &str| bench.receiver.all().iter().filter(|it| it.url.contains(name)).count();
    assert_eq!((arrived("fast"), arrived("slow")), (20, 4), "four at once for each endpoint");
    seconds(5 * 20).await;
    assert_eq!(arrived("slow"), 20);
}

#[tokio::test(start_paused = true)]
async fn open_deliveries_of_a_disabled_endpoint_wait_until_it_is_enabled() {
    let bench = Bench::new(|count, _| if count == 1 { Answer::Status(500) } else { Answer::Status(200) });
    bench.endpoint("ops", only(WebhookEvent::RunStarted)).await;
    let _server = bench.server();
    bench.waiting().await;
    seconds(3).await;
    let disable = |disabled: Option<Disabled>| {
        move |stored: Option<Endpoint>| {
            Ok::<_, StoreError>(stored.map(|endpoint| Endpoint { disabled: disabled.clone(), ..endpoint }))
        }
    };
    let disabled = Disabled { reason: "test".to_owned(), at: bench.clock.now(), by_person: true };
    bench.records().put_endpoint("ops", disable(Some(disabled))).await.unwrap();
    skip(DAY).await;
    assert_eq!(bench.receiver.all().len(), 1);

    bench.records().put_endpoint("ops", disable(None)).await.unwrap();
    seconds(3).await;

    assert_eq!(bench.receiver.all().len(), 2);
}
