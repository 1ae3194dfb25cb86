//! The figures of all runs.

use axum::http::StatusCode;
use positronic_core::prelude::*;
use positronic_core::record::RunId;
use positronic_core::store::MemoryStore;
use positronic_server::{Options, Scope};
use serde_json::{Value, json};

use crate::support::{Order, Shop, refund, refunding};

/// A brain that fails, each time with another number in its message.
fn broken() -> Brain<Order, ()> {
    brain("Broken")
        .options::<Order>()
        .step("Load", async |cx| {
            let number = cx.options.number;
            Err::<(), _>(Error::new(format!("the stock has no order {number} (HTTP 404)")))
        })
        .build()
}

fn shop() -> Shop {
    let runner = Runner::new(refunding()).store(MemoryStore::new()).brain(refund()).brain(broken());
    Shop::of(runner, |runner| Options::builder().brains(runner).build())
}

async fn start(shop: &Shop, token: &str, brain: &str, number: u32) -> RunId {
    let started = shop.post(token, "/api/v1/runs", json!({ "brain": brain, "options": { "number": number } })).await;
    assert_eq!(started.status, StatusCode::CREATED, "{started:?}");
    RunId::new(started.json()["id"].as_str().unwrap())
}

/// Adds up a number of all buckets.
fn sum(overview: &Value, number: impl Fn(&Value) -> &Value) -> u64 {
    overview["buckets"].as_array().unwrap().iter().map(|bucket| number(bucket).as_u64().unwrap()).sum()
}

#[tokio::test]
async fn overview_of_an_empty_store_has_only_zeros() {
    let shop = Shop::new();
    let token = shop.token(None, &[Scope::Read]).await;

    for (range, buckets, seconds) in [("1h", 60, 60), ("24h", 48, 1800), ("7d", 56, 10_800), ("30d", 60, 43_200)] {
        let overview = shop.get(&token, &format!("/api/v1/overview?range={range}")).await.json();

        assert_eq!((&overview["range"], &overview["bucket_seconds"]), (&json!(range), &json!(seconds)));
        assert_eq!(overview["buckets"].as_array().unwrap().len(), buckets);
        assert_eq!(overview["started"], 0);
        let tokens = json!({ "input": 0, "output": 0, "cached": 0 });
        let nothing = json!({
            "completed": 0, "failed": 0, "cancelled": 0, "costs": [], "priced": 0, "partly_priced": 0, "tokens": tokens, "active": null,
        });
        assert_eq!(overview["ended"], nothing);
        assert_eq!(overview["buckets"][buckets - 1]["ended"], nothing);
        assert_eq!(overview["open"], json!({ "runs": 0, "costs": [], "partly_priced": 0, "tokens": tokens }));
        assert_eq!(overview["waiting"], json!({ "items": 0, "runs": 0, "oldest": null }));
        assert_eq!(
            (&overview["causes"], &overview["brains"], &overview["workers"]),
            (&json!([]), &json!([]), &json!([]))
        );
    }
    assert_eq!(shop.get(&token, "/api/v1/overview").await.json()["range"], "24h");
}

#[tokio::test]
async fn overview_counts_runs_by_their_end_and_their_cause() {
    let shop = shop();
    let token = shop.token(None, &Scope::ALL).await;
    let (_, _) = shop.waiting_run(&token, 1).await;
    let (paid, question) = shop.waiting_run(&token, 2).await;
    let decision = format!("/api/v1/runs/{paid}/calls/{question}/decision");
    shop.post(&token, &decision, json!({ "approve": true })).await;
    shop.end(&paid).await;
    let (cancelled, _) = shop.waiting_run(&token, 3).await;
    shop.post(&token, &format!("/api/v1/runs/{cancelled}/signals"), json!({ "type": "cancel" })).await;
    shop.end(&cancelled).await;
    for number in [4711, 815] {
        let failed = start(&shop, &token, "Broken", number).await;
        shop.end(&failed).await;
    }

    let overview = shop.get(&token, "/api/v1/overview?range=1h").await.json();

    let ended = &overview["ended"];
    assert_eq!(
        (&overview["started"], &ended["completed"], &ended["failed"], &ended["cancelled"]),
        (&json!(5), &json!(1), &json!(2), &json!(1)),
        "{overview}"
    );
    assert_eq!(sum(&overview, |bucket| &bucket["started"]), 5);
    assert_eq!(sum(&overview, |bucket| &bucket["ended"]["failed"]), 2);
    assert!(ended["active"]["p95"].as_u64() >= ended["active"]["p50"].as_u64(), "{ended}");
    assert_eq!((&overview["waiting"]["items"], &overview["waiting"]["runs"]), (&json!(1), &json!(1)));
    assert!(overview["waiting"]["oldest"].is_string());
    let [cause] = overview["causes"].as_array().unwrap().as_slice() else { panic!("{overview}") };
    assert_eq!(cause["cause"], "the stock has no order … (HTTP 404)");
    assert_eq!((&cause["runs"], &cause["brains"]), (&json!(2), &json!(["Broken"])));
    assert!(cause["first"].as_str() <= cause["last"].as_str());
    assert_eq!(cause["buckets"].as_array().unwrap().iter().filter_map(Value::as_u64).sum::<u64>(), 2);
    let brains: Vec<_> =
        overview["brains"].as_array().unwrap().iter().map(|item| item["brain"].as_str().unwrap()).collect();
    assert_eq!(brains, ["Broken", "Refund"]);
    let [model] = overview["models"].as_array().unwrap().as_slice() else { panic!("{overview}") };
    assert_eq!((&model["model"], &model["runs"]), (&json!("scripted/scripted"), &json!(2)), "{model}");
    assert_eq!((&model["tokens"], &model["partly_priced"]), (&ended["tokens"], &json!(2)), "{model}");
    assert_eq!(overview["queue"]["queued"], 0, "{}", overview["queue"]);
    let sums = shop.get(&token, "/api/v1/runs/sums").await.json();
    let open = &overview["open"];
    assert_eq!((&open["runs"], &open["partly_priced"], &sums["partly_priced"]), (&json!(1), &json!(1), &json!(3)));

    let refunds = shop.get(&token, "/api/v1/overview?brain=Refund").await.json();
    assert_eq!((&refunds["started"], &refunds["ended"]["failed"]), (&json!(3), &json!(0)));
    let of_model = shop.get(&token, "/api/v1/overview?range=1h&model=scripted/scripted").await.json();
    assert_eq!((&of_model["ended"]["completed"], &of_model["ended"]["failed"]), (&json!(1), &json!(0)), "{of_model}");
    assert_eq!(of_model["open"], Value::Null, "what one model has used of an open run is not known");
    assert_eq!((&of_model["ended"]["tokens"], &of_model["models"]), (&model["tokens"], &overview["models"]));
    assert_eq!((&of_model["causes"], &of_model["waiting"]["items"]), (&json!([]), &json!(1)), "{of_model}");
    let row = shop.get(&token, "/api/v1/runs?status=failed").await.json();
    let failed = row["items"].as_array().unwrap();
    assert_eq!(failed.len(), 2);
    assert!(failed.iter().all(|run| run["cause"] == cause["cause"] && run["active_ms"].is_u64()), "{row}");
    assert!(failed.iter().all(|run| run.get("cost").is_none()), "they have asked no model: {row}");
    // The runner has no prices.
    let row = shop.get(&token, &format!("/api/v1/runs/{paid}")).await.json();
    assert_eq!(row["cost"], json!({ "amount": "0", "partial": true }), "{row}");
}

#[tokio::test]
async fn overview_counts_only_the_runs_that_the_caller_sees() {
    let shop = shop();
    let scopes = [Scope::Read, Scope::Run];
    let (ann, ben) = (shop.token(Some("ann"), &scopes).await, shop.token(Some("ben"), &scopes).await);
    _ = shop.waiting_run(&ann, 1).await;
    let failed = start(&shop, &ann, "Broken", 2).await;
    shop.end(&failed).await;

    let counted = async |token: &str, path: &str| {
        let overview = shop.get(token, path).await.json();
        (overview["started"].clone(), overview["ended"]["failed"].clone(), overview["waiting"]["items"].clone())
    };
    assert_eq!(counted(&ann, "/api/v1/overview").await, (json!(2), json!(1), json!(1)));
    assert_eq!(counted(&ben, "/api/v1/overview").await, (json!(0), json!(0), json!(0)));
    assert_eq!(shop.get(&ben, "/api/v1/overview").await.json()["causes"], json!([]));
    assert_eq!(shop.get(&ben, "/api/v1/overview?user=ann").await.problem(), "not-allowed");
    let service = shop.token(None, &[Scope::Read]).await;
    assert_eq!(counted(&service, "/api/v1/overview?user=ann").await, (json!(2), json!(1), json!(1)));
    assert_eq!(counted(&service, "/api/v1/overview?user=ben").await, (json!(0), json!(0), json!(0)));
    let runner = shop.token(None, &[Scope::Run]).await;
    assert_eq!(shop.get(&runner, "/api/v1/overview").await.problem(), "scope-missing");
}

#[tokio::test]
async fn overview_refuses_unknown_parameters() {
    let shop = Shop::new();
    let token = shop.token(None, &[Scope::Read]).await;

    for query in ["range=2h", "range=", "models=any", "range=24h&since=2026-01-01T00:00:00Z"] {
        let refused = shop.get(&token, &format!("/api/v1/overview?{query}")).await;
        assert_eq!((refused.status, refused.problem().as_str()), (StatusCode::BAD_REQUEST, "invalid-query"), "{query}");
    }
}
