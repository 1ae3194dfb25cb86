//! The rules of `Idempotency-Key`, for every route that takes one.

use futures::future::join_all;
use positronic_core::model::scripted::{Reply, ScriptedModel};
use positronic_core::record::RunId;
use positronic_server::{Options, Scope, openapi};
use serde_json::{Value, json};

use crate::support::{Answer, Shop, refund, request};

async fn keyed(shop: &Shop, token: &str, path: &str, body: &Value) -> Answer {
    let mut request = request(token, "POST", path, Some(body.clone()));
    request.headers_mut().insert("idempotency-key", "k-1".parse().unwrap());
    shop.send(request).await
}

/// Returns the routes that take a key.
fn routes() -> Vec<String> {
    let document = openapi();
    let paths = document["paths"].as_object().unwrap().iter();
    let takes = |methods: &Value| methods["post"]["parameters"].to_string().contains("Idempotency-Key");
    paths.filter(|(_, methods)| takes(methods)).map(|(path, _)| path.clone()).collect()
}

#[tokio::test]
async fn same_key_with_the_same_body_is_replayed_and_with_another_one_refused() {
    let mut checked = Vec::new();
    for route in routes() {
        let shop = Shop::new();
        let token = shop.token(None, &Scope::ALL).await;
        let (run, id) = shop.waiting_run(&token, 7).await;
        let schedule = json!({ "brain": "Refund", "options": { "number": 7 }, "every": [{ "seconds": 86400 }] });
        shop.call(&token, "PUT", "/api/v1/schedules/daily", Some(schedule)).await;
        let order = |number: u32| json!({ "brain": "Refund", "options": { "number": number } });
        let said = |text: &str| json!({ "brain": "Refund", "options": { "number": 7 }, "text": text });
        let decision = |reason: &str| json!({ "run": run, "id": id, "reject": true, "reason": reason });
        let (first, other) = match route.as_str() {
            "/api/v1/runs" => (order(1), order(2)),
            "/api/v1/runs/{run}/signals" => (json!({ "type": "pause" }), json!({ "type": "cancel" })),
            "/api/v1/runs/{run}/fork" => (json!({ "at": 1 }), json!({ "at": 3 })),
            "/api/v1/runs/{run}/rerun" => (json!({ "from": "Chat" }), json!({ "from": "Chat", "model": "x" })),
            "/api/v1/runs/{run}/calls/{id}/decision" => {
                (json!({ "approve": true }), json!({ "approve": true, "arguments": { "amount": 1 } }))
            }
            "/api/v1/decisions" => (json!([decision("no")]), json!([decision("never")])),
            "/api/v1/conversations/{conversation}/messages" => (said("Please."), said("No.")),
            "/api/v1/schedules/{schedule}/trigger" => (json!({}), json!({ "overlap": "allow" })),
            unknown => panic!("{unknown} has no example"),
        };
        let path = route.replace("{run}", run.as_str()).replace("{id}", &id);
        let path = path.replace("{conversation}", "chat-1").replace("{schedule}", "daily");

        let one = keyed(&shop, &token, &path, &first).await;
        let again = keyed(&shop, &token, &path, &first).await;
        let reused = keyed(&shop, &token, &path, &other).await;

        assert!(one.status.is_success(), "{route}: {one:?}");
        assert_eq!(one.header("idempotency-replayed"), "", "{route}");
        assert_eq!(one.header("idempotency-key"), "k-1", "{route}");
        assert_eq!((again.status, again.header("idempotency-replayed")), (one.status, "true"), "{route}: {again:?}");
        for field in ["id", "seq", "nominal"] {
            assert_eq!(again.json().get(field), one.json().get(field), "{route}");
        }
        if route == "/api/v1/decisions" {
            assert_eq!(again.json()["items"][0]["seq"], one.json()["items"][0]["seq"]);
            assert_eq!(reused.json()["items"][0]["status"], 422, "{reused:?}");
        } else {
            assert_eq!(reused.problem(), "key-reused", "{route}");
        }
        checked.push(route);
    }
    assert_eq!(checked.len(), 8, "{checked:?}");
}

#[tokio::test]
async fn start_in_a_conversation_is_said_once_per_key() {
    let shop = Shop::new();
    let token = shop.token(None, &Scope::ALL).await;
    let start = |message: Value| json!({ "brain": "Refund", "options": { "number": 1 }, "conversation": "chat-1", "message": message });

    let first = keyed(&shop, &token, "/api/v1/runs", &start(json!("Please."))).await;
    let again = keyed(&shop, &token, "/api/v1/runs", &start(json!("Please."))).await;
    let reused = keyed(&shop, &token, "/api/v1/runs", &start(json!("No."))).await;
    let without = keyed(&shop, &token, "/api/v1/runs", &start(Value::Null)).await;

    assert_eq!(first.json()["id"], again.json()["id"], "{first:?}");
    assert_eq!(again.header("idempotency-replayed"), "true");
    assert_eq!(reused.problem(), "key-reused");
    assert_eq!(without.problem(), "unprocessable");
}

#[tokio::test]
async fn fork_with_other_results_or_options_is_refused_under_the_same_key() {
    let shop = Shop::new();
    let token = shop.token(None, &Scope::ALL).await;
    let (run, _) = shop.waiting_run(&token, 7).await;
    let head = shop.get(&token, &format!("/api/v1/runs/{run}")).await.json()["head"].clone();
    let path = format!("/api/v1/runs/{run}/fork");
    let fork = json!({ "at": head, "options": { "number": 8 }, "results": { "Chat/0.0": "paid" } });
    let others = [
        json!({ "at": head, "options": { "number": 8 }, "results": { "Chat/0.0": "lost" } }),
        json!({ "at": head, "options": { "number": 8 } }),
        json!({ "at": head, "results": { "Chat/0.0": "paid" } }),
    ];

    let one = keyed(&shop, &token, &path, &fork).await;
    let again = keyed(&shop, &token, &path, &fork).await;

    assert_eq!(one.status, 201, "{one:?}");
    assert_eq!((&again.json()["id"], again.header("idempotency-replayed")), (&one.json()["id"], "true"), "{again:?}");
    for other in others {
        let reused = keyed(&shop, &token, &path, &other).await;
        assert_eq!(reused.problem(), "key-reused", "{other}: {reused:?}");
    }
}

#[tokio::test]
async fn message_with_a_key_begins_one_run_however_many_requests_bring_it() {
    let model = ScriptedModel::from_fn(|_| Reply::text("Done."));
    let shop = Shop::with(model, refund(), |runner| Options::builder().brains(runner).build());
    let token = shop.token(None, &Scope::ALL).await;
    let path = "/api/v1/conversations/chat-1/messages";
    let message = |number: u32| json!({ "brain": "Refund", "options": { "number": number }, "text": "Please." });

    let answers = join_all((0..30).map(|_| async { keyed(&shop, &token, path, &message(1)).await.json() })).await;
    let other = keyed(&shop, &token, path, &message(2)).await;

    assert!(answers.iter().all(|answer| answer["id"] == answers[0]["id"]), "{answers:?}");
    assert_eq!(other.problem(), "key-reused", "{other:?}");
    assert_eq!(shop.client.conversations().runs("chat-1").await.unwrap().len(), 1);

    // The conversation goes on, and then the first request comes again.
    shop.end(&RunId::new("chat-1-0")).await;
    let next = shop.post(&token, path, message(3)).await;
    assert_eq!(next.json()["id"], "chat-1-1", "{next:?}");
    let late = keyed(&shop, &token, path, &message(1)).await;
    assert_eq!((late.json()["id"].as_str(), late.header("idempotency-replayed")), (Some("chat-1-0"), "true"));
    assert_eq!(keyed(&shop, &token, path, &message(2)).await.problem(), "key-reused");
}
