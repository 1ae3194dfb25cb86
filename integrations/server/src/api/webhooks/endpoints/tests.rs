//! Endpoints and deliveries over HTTP.

use std::collections::BTreeMap;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use axum::http::request::Parts;
use futures::future::BoxFuture;
use positronic_core::record::{RunId, Seq};
use positronic_core::runner::Client;
use positronic_core::store::{MemoryStore, StoreError};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::*;
use crate::auth::{Authenticate, Caller};
use crate::extension::RunSubscription;
use crate::webhooks::{Delivery, DeliveryStatus, StoredSubscription};
use crate::{Options, router};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// Takes the scope of the caller from a header.
struct ByHeader;

impl Authenticate for ByHeader {
    fn authenticate<'a>(&'a self, request: &'a Parts) -> BoxFuture<'a, Result<Option<Caller>, Problem>> {
        let scope = request.headers.get("scope").and_then(|scope| scope.to_str().ok());
        let scope = Scope::ALL.into_iter().find(|known| Some(known.as_str()) == scope);
        Box::pin(async move { Ok(scope.map(|scope| Caller::service("test", [scope]))) })
    }
}

struct Bench(Client);

impl Bench {
    fn new() -> Self {
        Self(Client::new(MemoryStore::new()))
    }

    fn router(&self) -> Router {
        router(self.0.clone(), Options::builder().authenticate(ByHeader).build())
    }

    async fn call_as(&self, scope: &str, method: &str, path: &str, body: Option<Value>) -> (StatusCode, Value) {
        let request = Request::builder().method(method).uri(format!("/api/v1{path}"));
        let request = request.header("host", "localhost").header("scope", scope);
        let request = request.header("content-type", "application/json");
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        let response = self.router().oneshot(request.body(body).unwrap()).await.unwrap();
        let status = response.status();
        let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (status, serde_json::from_slice(&bytes).unwrap_or_default())
    }

    async fn call(&self, method: &str, path: &str, body: Option<Value>) -> (StatusCode, Value) {
        self.call_as("admin", method, path, body).await
    }

    async fn secrets(&self, id: &str) -> Vec<String> {
        let stored = Records::new(self.0.clone()).endpoint(id).await.unwrap().unwrap().value;
        stored.secrets.iter().map(WebhookSecret::reveal).collect()
    }
}

#[tokio::test]
async fn secrets_are_shown_once_and_rotated() {
    let bench = Bench::new();
    let url = json!("https://hooks.example.com/a");

    let (status, created) = bench.call("PUT", "/webhooks/ops", Some(json!({ "url": url }))).await;
    assert_eq!(status, StatusCode::OK);
    let generated = created["secrets"][0].as_str().unwrap().to_owned();
    assert_eq!(bench.secrets("ops").await, std::slice::from_ref(&generated));
    for path in ["/webhooks", "/webhooks/ops"] {
        let (_, shown) = bench.call("GET", path, None).await;
        assert!(!shown.to_string().contains("secret"), "{shown}");
    }

    let body = json!({ "url": url, "events": ["run.failed"], "brain": "Support", "enabled": false });
    let (_, changed) = bench.call("PUT", "/webhooks/ops", Some(body)).await;
    assert_eq!(bench.secrets("ops").await, std::slice::from_ref(&generated), "the secrets stay");
    assert_eq!(changed.get("secrets"), None);
    assert_eq!(changed["disabled_reason"], "a person has disabled it");
    assert_eq!((&changed["events"], &changed["created"]), (&json!(["run.failed"]), &created["created"]));

    let body = json!({ "url": url, "secrets": [SECRET, generated] });
    let (_, rotated) = bench.call("PUT", "/webhooks/ops", Some(body)).await;
    assert_eq!(bench.secrets("ops").await, [SECRET, &generated]);
    assert_eq!(rotated["secrets"][0], SECRET);
    assert!(rotated["since"].as_str() > created["since"].as_str(), "it missed what happened while it was disabled");
    assert_eq!(rotated["enabled"], true);

    assert_eq!(bench.call("DELETE", "/webhooks/ops", None).await.0, StatusCode::NO_CONTENT);
    for (method, path) in [("DELETE", "/webhooks/ops"), ("GET", "/webhooks/ops"), ("GET", "/webhooks/ops/deliveries")] {
        let (status, problem) = bench.call(method, path, None).await;
        assert_eq!((status, &problem["type"]), (StatusCode::NOT_FOUND, &json!("/problems/unknown-webhook")));
    }
}

#[tokio::test]
async fn unusable_webhooks_are_refused_with_the_place() {
    let bench = Bench::new();
    for (body, pointer) in [
        (json!({ "url": "http://hooks.example.com/" }), "/url"),
        (json!({ "url": "https://127.0.0.1/" }), "/url"),
        (json!({ "url": "https://0x7f000001/" }), "/url"),
        (json!({ "url": "nonsense" }), "/url"),
        (json!({ "url": "https://example.com/", "secrets": ["whsec_AAAA"] }), "/secrets/0"),
        (json!({ "url": "https://example.com/", "secrets": [SECRET, SECRET, SECRET, SECRET, SECRET] }), "/secrets"),
        (json!({ "url": "https://example.com/", "events": ["run.exploded"] }), "/events/0"),
        (json!({ "url": "https://example.com/", "secret": SECRET }), ""),
        (json!({}), "/url"),
    ] {
        let (status, problem) = bench.call("PUT", "/webhooks/ops", Some(body)).await;
        assert_eq!(
            (status, &problem["errors"][0]["pointer"]),
            (StatusCode::UNPROCESSABLE_ENTITY, &json!(pointer)),
            "{problem}"
        );
    }
    for id in ["Ops", "a%2Fb", &"a".repeat(65)] {
        let body = json!({ "url": "https://example.com/" });
        assert_eq!(bench.call("PUT", &format!("/webhooks/{id}"), Some(body)).await.0, StatusCode::BAD_REQUEST, "{id}");
    }
    assert_eq!(bench.call("GET", "/webhooks", None).await.1["items"], json!([]));
}

#[tokio::test]
async fn url_of_a_subscription_stays() {
    let bench = Bench::new();
    let own = RunSubscription::builder().id("first").bodies(BTreeMap::new());
    let own = own.headers(vec![("authorization".to_owned(), "Bearer of-ann".to_owned())]).build();
    let subscription = StoredSubscription { run: RunId::new("run-1"), user: None, own };
    let body = |url: &str| Some(json!({ "url": url }));
    bench.call("PUT", "/webhooks/run-own", body("https://example.com/ann")).await;
    let subscribe = |endpoint: Option<Endpoint>| {
        let subscription = Some(subscription.clone());
        Ok::<_, StoreError>(endpoint.map(|endpoint| Endpoint { subscription, ..endpoint }))
    };
    Records::new(bench.0.clone()).put_endpoint("run-own", subscribe).await.unwrap().unwrap();

    let (other, problem) = bench.call("PUT", "/webhooks/run-own", body("https://example.com/ben")).await;
    let (same, _) = bench.call("PUT", "/webhooks/run-own", body("https://example.com/ann")).await;

    assert_eq!((other, &problem["type"]), (StatusCode::CONFLICT, &json!("/problems/conflict")));
    assert_eq!(same, StatusCode::OK);
    let stored = Records::new(bench.0.clone()).endpoint("run-own").await.unwrap().unwrap().value;
    assert_eq!((stored.url.as_str(), stored.subscription), ("https://example.com/ann", Some(subscription)));
}

#[tokio::test]
async fn webhooks_need_the_scope_of_their_danger() {
    let bench = Bench::new();
    let body = || Some(json!({ "url": "https://example.com/" }));
    for scope in ["read", "run", "decide", "operate"] {
        assert_eq!(bench.call_as(scope, "PUT", "/webhooks/ops", body()).await.0, StatusCode::FORBIDDEN, "{scope}");
        assert_eq!(bench.call_as(scope, "DELETE", "/webhooks/ops", None).await.0, StatusCode::FORBIDDEN, "{scope}");
        let lists = bench.call_as(scope, "GET", "/webhooks", None).await.0;
        assert_eq!(lists, if scope == "operate" { StatusCode::OK } else { StatusCode::FORBIDDEN }, "{scope}");
    }
}

#[tokio::test]
async fn deliveries_are_listed_in_pages_and_sent_again() {
    let bench = Bench::new();
    bench.call("PUT", "/webhooks/ops", Some(json!({ "url": "https://example.com/" }))).await;
    let records = Records::new(bench.0.clone());
    for minute in 0..5 {
        let at = Timestamp(1_790_000_000_000_000 + minute * 60_000_000);
        let delivery = Delivery {
            event: WebhookEvent::RunFailed,
            run: RunId::new("run-1"),
            seq: Seq(7),
            at,
            body: json!({ "type": "run.failed" }),
            status: DeliveryStatus::Failed { at },
            failures: 10,
            attempts: Vec::new(),
        };
        records.add_delivery("ops", &format!("evt_{minute}"), &delivery).await.unwrap();
    }
    let path = "/webhooks/ops/deliveries";
    let ids = |page: &Value| -> Vec<String> {
        page["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
    };

    let (_, first) = bench.call("GET", &format!("{path}?limit=3"), None).await;
    let next = first["next"].as_str().unwrap();
    let (_, second) = bench.call("GET", &format!("{path}?limit=3&cursor={next}"), None).await;
    assert_eq!(
        (ids(&first), ids(&second)),
        (vec!["evt_4".into(), "evt_3".into(), "evt_2".into()], vec!["evt_1".into(), "evt_0".into()])
    );
    assert_eq!(second["next"], Value::Null);
    assert_eq!(first["items"][0]["status"], "failed");

    let (status, sent) = bench.call_as("operate", "POST", &format!("{path}/evt_3/send"), None).await;
    assert_eq!((status, &sent["status"]), (StatusCode::ACCEPTED, &json!("pending")));
    assert!(sent["due"].is_string());
    assert_eq!(bench.call("POST", &format!("{path}/evt_9/send"), None).await.0, StatusCode::NOT_FOUND);
}
