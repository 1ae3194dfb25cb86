//! Every refusal is a problem document.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Request, StatusCode};
use futures::future::BoxFuture;
use positronic_core::definition::BrainDefinition;
use positronic_core::runner::{NoRunner, Runner};
use positronic_server::{Brains, Options, ProblemType, Scope};
use serde_json::json;

use crate::support::{Shop, request};

#[tokio::test]
async fn refusals_before_the_handler_are_problem_documents() {
    let shop = Shop::new();
    let token = shop.token(None, &Scope::ALL).await;
    let call = async |method: &str, path: &str, body| shop.call(&token, method, path, body).await.problem();

    assert_eq!(call("GET", "/api/v1/nothing", None).await, "not-found");
    assert_eq!(call("PUT", "/api/v1/runs", None).await, "method-not-allowed");
    assert_eq!(call("GET", "/api/v1/runs/none", None).await, "unknown-run");
    assert_eq!(call("GET", "/api/v1/brains?title=x", None).await, "invalid-query");
    assert_eq!(call("GET", "/api/v1/runs?state=failed", None).await, "invalid-query");
    assert_eq!(call("GET", "/api/v1/runs?limit=10&limit=20", None).await, "invalid-query");
    assert_eq!(call("GET", "/api/v1/runs?limit=0", None).await, "invalid-query");
    assert_eq!(call("GET", "/api/v1/runs?limit=501", None).await, "invalid-query");
    assert_eq!(call("GET", "/api/v1/runs?status=done", None).await, "invalid-query");
    assert_eq!(call("GET", "/api/v1/runs?since=yesterday", None).await, "invalid-query");
    assert_eq!(call("GET", "/api/v1/runs?cursor=x", None).await, "bad-cursor");
    assert_eq!(call("POST", "/api/v1/runs", Some(json!([]))).await, "invalid-body");
    assert_eq!(call("POST", "/api/v1/runs", None).await, "unsupported-media-type");
    for body in ["{", r#"{"brain": "Support", "options": {"amount": 18446744073709551617}}"#] {
        let broken = Request::builder().method("POST").uri("/api/v1/runs").header("host", "localhost");
        let broken =
            broken.header("authorization", format!("Bearer {token}")).header("content-type", "application/json");
        let answer = shop.send(broken.body(Body::from(body)).unwrap()).await;
        assert_eq!(answer.problem(), "invalid-json", "{body}");
        let number = body.contains("amount").then(|| json!("/options/amount"));
        assert_eq!(answer.json()["errors"][0].get("pointer"), number.as_ref(), "{body}");
    }
}

#[tokio::test]
async fn invalid_places_of_a_body_are_json_pointers() {
    let shop = Shop::new();
    let token = shop.token(None, &[Scope::Run]).await;
    let body = json!({ "brain": 7, "labels": ["urgent"] });

    let answer = shop.post(&token, "/api/v1/runs", body).await;

    assert_eq!(answer.problem(), "invalid-body");
    let document = answer.json();
    let errors: Vec<_> = document["errors"].as_array().unwrap().iter().map(|error| &error["pointer"]).collect();
    assert!(errors.contains(&&json!("/brain")), "{document}");
    assert!(document.to_string().contains("labels"), "{document}");
}

#[tokio::test]
async fn too_large_body_is_refused_with_and_without_a_length() {
    let shop = Shop::open(|_| Options::builder().max_body_bytes(100).build());
    let token = shop.token(None, &[Scope::Run]).await;
    let body = json!({ "brain": "x".repeat(200) });

    let announced = shop.post(&token, "/api/v1/runs", body.clone()).await;
    let chunks = futures::stream::iter([Ok::<_, std::io::Error>(body.to_string())]);
    let mut streamed = request(&token, "POST", "/api/v1/runs", Some(json!({})));
    *streamed.body_mut() = Body::from_stream(chunks);
    let streamed = shop.send(streamed).await;

    for answer in [announced, streamed] {
        assert_eq!(answer.problem(), "too-large");
        assert_eq!(answer.json()["max_bytes"], 100);
    }
}

#[tokio::test]
async fn each_caller_has_its_own_rate() {
    let shop = Shop::open(|_| Options::builder().requests_per_minute(3).build());
    let (ann, ben) = (shop.token(Some("ann"), &[Scope::Read]).await, shop.token(Some("ben"), &[Scope::Read]).await);

    let first = shop.get(&ann, "/api/v1/runs").await;
    assert_eq!(first.header("ratelimit-policy"), "\"requests\";q=3;w=60");
    assert_eq!(first.header("ratelimit"), "\"requests\";r=2;t=60");
    shop.get(&ann, "/api/v1/runs").await;
    shop.get(&ann, "/api/v1/runs").await;
    let refused = shop.get(&ann, "/api/v1/runs").await;

    assert_eq!(refused.problem(), "rate-limited");
    assert!((1..=21).contains(&refused.header("retry-after").parse::<u64>().unwrap()), "{refused:?}");
    assert_eq!(shop.get(&ben, "/api/v1/runs").await.status, StatusCode::OK);
}

#[tokio::test]
async fn every_type_has_a_page() {
    let shop = Shop::new();
    for kind in ProblemType::ALL {
        let page = shop.get("", &format!("/problems/{}", kind.slug())).await;
        assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
        assert!(page.text.contains(kind.title()), "{kind:?}");
    }
    assert_eq!(shop.get("", "/problems/none").await.problem(), "not-found");
}

/// Brains whose code panics.
struct Broken;

impl Brains for Broken {
    fn definitions(&self) -> Vec<Arc<BrainDefinition>> {
        panic!("the brains are broken")
    }

    fn runner<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Runner, NoRunner>> {
        unreachable!()
    }
}

#[tokio::test]
async fn panic_is_a_problem_document_without_its_message() {
    let shop = Shop::open(|_| Options::builder().brains(Broken).build());
    let token = shop.token(None, &[Scope::Read]).await;

    let answer = shop.get(&token, "/api/v1/brains").await;

    assert_eq!(answer.problem(), "internal");
    assert!(!answer.text.contains("broken"), "{}", answer.text);
}

#[tokio::test]
async fn read_only_server_refuses_every_change() {
    let shop = Shop::open(|runner| Options::builder().brains(runner).read_only(true).build());
    let token = shop.token(None, &Scope::ALL).await;
    let body = json!({ "brain": "Refund", "options": { "number": 7 } });

    assert_eq!(shop.post(&token, "/api/v1/runs", body).await.problem(), "read-only");
    assert_eq!(shop.get(&token, "/api/v1/session").await.json()["read_only"], true);
}

#[tokio::test]
async fn problem_names_the_request_and_the_page_behind_a_prefix() {
    let url = "https://runs.example.org/agents/".parse().unwrap();
    let shop = Shop::open(|_| Options::builder().public_url(url).build());
    let mut request = request("", "GET", "/api/v1/runs", None);
    request.headers_mut().insert("x-request-id", "r-1".parse().unwrap());

    let answer = shop.send(request).await;

    assert_eq!(answer.json()["type"], "/agents/problems/unauthenticated");
    assert_eq!(answer.json()["instance"], "urn:request:r-1");
    assert_eq!(answer.header("x-request-id"), "r-1");
    let other = shop.get("", "/api/v1/runs").await;
    assert_ne!(other.header("x-request-id"), "");
}

#[tokio::test]
async fn strangers_do_not_use_up_the_rate_of_others() {
    let shop = Shop::open(|_| Options::builder().requests_per_minute(3).build());
    let from = |address: [u8; 4], path: &str, token: &str| {
        let mut request = request(token, "GET", path, None);
        request.extensions_mut().insert(ConnectInfo(SocketAddr::from((address, 4000))));
        shop.send(request)
    };

    let mut statuses = Vec::new();
    for _ in 0..4 {
        statuses.push(from([10, 0, 0, 1], "/api/v1/runs", "pos_0123456789ab_x").await.status.as_u16());
    }

    assert_eq!(statuses, [401, 401, 401, 429], "unknown tokens are counted by address");
    assert_eq!(from([10, 0, 0, 2], "/problems/expired", "").await.status, StatusCode::OK);
    assert_eq!(from([10, 0, 0, 1], "/problems/expired", "").await.problem(), "rate-limited");
    assert_eq!(from([10, 0, 0, 1], "/healthz", "").await.status, StatusCode::OK);
    assert_eq!(from([10, 0, 0, 1], "/readyz", "").await.status, StatusCode::OK);
    for _ in 0..9 {
        assert_eq!(shop.get("", "/problems/expired").await.status, StatusCode::OK, "no address is known");
    }
}

#[tokio::test]
async fn answer_to_a_large_invalid_body_is_small() {
    let shop = Shop::new();
    let token = shop.token(None, &Scope::ALL).await;
    let (text, name) = ("a".repeat(200_000), "b".repeat(200_000));

    for body in [json!(text), json!({ "brain": [text] }), json!({ "brain": "Refund", name: 1 })] {
        let answer = shop.post(&token, "/api/v1/runs", body).await;
        assert_eq!(answer.problem(), "invalid-body");
        assert!(answer.text.len() < 2000, "{} bytes", answer.text.len());
    }
}

#[tokio::test]
async fn path_that_is_not_utf8_gets_a_problem() {
    let shop = Shop::new();
    assert_eq!(shop.get("", "/api/v1/runs/%ff").await.problem(), "invalid-path");
}

#[tokio::test]
async fn media_type_that_a_route_does_not_have_is_refused() {
    let shop = Shop::new();
    let token = shop.token(None, &Scope::ALL).await;
    let get = |path: &str, accept: &str| {
        let mut request = request(&token, "GET", path, None);
        request.headers_mut().insert("accept", accept.parse().unwrap());
        shop.send(request)
    };

    let refused = get("/api/v1/runs", "text/csv").await;
    assert_eq!(refused.problem(), "not-acceptable");
    assert_eq!(refused.json()["available"], json!(["application/json"]));
    assert_eq!(get("/api/v1/runs", "application/json;q=0").await.problem(), "not-acceptable");
    for accept in ["application/json", "application/*;q=0.1", "text/csv, */*"] {
        assert_eq!(get("/api/v1/runs", accept).await.status, StatusCode::OK, "{accept}");
    }
}

#[tokio::test]
async fn failure_of_the_store_is_not_told() {
    use positronic_core::store::MemoryStore;
    use positronic_core::store::StoreError;
    use positronic_store_suite::FaultyStore;

    static FAILS: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);
    let fails = |method: &'static str| {
        let fails = FAILS.load(std::sync::atomic::Ordering::Relaxed) && method != "entry";
        fails.then(|| StoreError::Failed { message: "disk /secret/runs.db".to_owned() })
    };
    let store = FaultyStore::new(MemoryStore::new(), |_, _| None).reading(fails);
    let runner = Runner::new(crate::support::refunding()).store(store);
    let shop = Shop::of(runner.brain(crate::support::refund()), |runner| Options::builder().brains(runner).build());
    let token = shop.token(None, &Scope::ALL).await;
    let (run, _) = shop.waiting_run(&token, 7).await;
    FAILS.store(true, std::sync::atomic::Ordering::Relaxed);

    for path in ["/readyz", "/api/v1/runs", "/api/v1/pending", &format!("/api/v1/runs/{run}")] {
        let answer = shop.get(&token, path).await;
        assert_eq!(answer.problem(), "store-failed", "{path}");
        let document = answer.json();
        assert!(!answer.text.contains("secret"), "{document}");
        assert_eq!(document["instance"], format!("urn:request:{}", answer.header("x-request-id")));
    }
}

#[tokio::test(start_paused = true)]
async fn server_whose_store_cannot_be_written_is_not_ready_and_repeated_probes_write_little() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use positronic_core::store::{MemoryStore, StoreError};
    use positronic_store_suite::FaultyStore;

    let [is_full, is_gone] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
    let writes = Arc::new(AtomicUsize::new(0));
    let (full, gone, count) = (Arc::clone(&is_full), Arc::clone(&is_gone), Arc::clone(&writes));
    let store = FaultyStore::new(MemoryStore::new(), |_, _| None).reading(move |method| {
        let is_write = method == "put_entry";
        count.fetch_add(usize::from(is_write), Ordering::SeqCst);
        let message = "no space left on the device for `runs.db`, or it was removed".to_owned();
        match is_write {
            true if full.load(Ordering::SeqCst) => Some(StoreError::Failed { message }),
            true if gone.load(Ordering::SeqCst) => Some(StoreError::Unusable { message }),
            _ => None,
        }
    });
    let runner = Runner::new(crate::support::refunding()).store(store);
    let shop = Shop::of(runner.brain(crate::support::refund()), |runner| Options::builder().brains(runner).build());
    for _ in 0..20 {
        assert_eq!(shop.get("", "/readyz").await.status, StatusCode::OK);
    }
    assert_eq!(writes.load(Ordering::SeqCst), 1);

    is_full.store(true, Ordering::SeqCst);
    tokio::time::advance(std::time::Duration::from_secs(5)).await;
    assert_eq!(shop.get("", "/readyz").await.problem(), "store-failed");
    assert_eq!(shop.get("", "/healthz").await.status, StatusCode::OK, "a restart would not help");

    is_full.store(false, Ordering::SeqCst);
    is_gone.store(true, Ordering::SeqCst);
    tokio::time::advance(std::time::Duration::from_secs(1)).await;
    assert_eq!(shop.get("", "/readyz").await.problem(), "store-failed");
    is_gone.store(false, Ordering::SeqCst);
    tokio::time::advance(std::time::Duration::from_secs(1)).await;
    assert_eq!(shop.get("", "/readyz").await.status, StatusCode::OK);
}
