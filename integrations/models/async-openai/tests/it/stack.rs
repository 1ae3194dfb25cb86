//! Stacks of tower.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_openai::config::OpenAIConfig;
use async_openai::middleware::retry::OpenAIRetryLayer;
use async_openai::middleware::{HttpRequestFactory, ReqwestService};
use positronic_async_openai::Connection;
use positronic_core::record::{ModelError, ModelErrorKind};
use positronic_model_http::reqwest;
use positronic_model_testing::wire_forms::{Reply, chat};
use positronic_model_testing::{Provider as Server, ResponseTemplate, rules};
use serde_json::json;
use tower::{BoxError, ServiceBuilder, service_fn};

use crate::{ask, options};

fn connection(url: &str) -> Connection {
    Connection::new(OpenAIConfig::new().with_api_base(url).with_api_key("sk-test-1"))
}

fn client() -> ReqwestService {
    ReqwestService::new(reqwest::Client::new())
}

async fn server(answers: Vec<ResponseTemplate>) -> Server {
    Server::with(rules::chat::check, answers).await
}

fn hello() -> ResponseTemplate {
    let events = chat(&Reply { text: "Hello.".to_owned(), calls: Vec::new() }, 0);
    let body: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    ResponseTemplate::new(200).set_body_raw(body, "text/event-stream")
}

#[tokio::test]
async fn stack_sends_the_requests() {
    let server = server(vec![hello(), hello().set_delay(Duration::from_millis(50))]).await;
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let seen = Arc::clone(&most);
    let counted = service_fn(move |request: HttpRequestFactory| {
        let (running, most) = (Arc::clone(&running), Arc::clone(&most));
        async move {
            most.fetch_max(running.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
            let answer = reqwest::Client::new().execute(request.build().await?).await?;
            running.fetch_sub(1, Ordering::Relaxed);
            Ok::<_, async_openai::error::OpenAIError>(answer)
        }
    });
    let stack = ServiceBuilder::new().concurrency_limit(1).service(counted);
    let model = connection(&server.url()).stack(stack).chat(options()).unwrap();

    let (one, other) = futures::join!(ask(&model), ask(&model));

    assert_eq!((one.unwrap().text(), other.unwrap().text()), ("Hello.".to_owned(), "Hello.".to_owned()));
    assert_eq!(seen.load(Ordering::Relaxed), 1);
    assert_eq!(server.requests().await[0].headers["authorization"], "Bearer sk-test-1");
}

#[tokio::test]
async fn answer_that_a_retry_layer_has_read_is_classified() {
    let quota = json!({"error": {"message": "You exceeded your quota", "type": "insufficient_quota", "param": null, "code": "insufficient_quota"}});
    let busy =
        json!({"error": {"message": "slow down", "type": "requests", "param": null, "code": "rate_limit_exceeded"}});
    let page = ResponseTemplate::new(429).set_body_raw("<html><title>Too many</title></html>", "text/html");
    let wrong = ResponseTemplate::new(401).set_body_json(json!({"error": {"message": "no key sk-test-1"}}));
    for (answer, kind, message) in [
        (ResponseTemplate::new(429).set_body_json(quota), ModelErrorKind::QuotaExhausted, "You exceeded your quota"),
        (ResponseTemplate::new(429).set_body_json(busy), ModelErrorKind::RateLimited, "slow down"),
        (page, ModelErrorKind::RateLimited, "the server answered 429 with a web page: Too many"),
        (wrong, ModelErrorKind::Auth, "no key [hidden]"),
    ] {
        let server = server(vec![answer.clone(), answer]).await;
        let stack = ServiceBuilder::new().layer(OpenAIRetryLayer::new(0)).service(client());
        let model = connection(&server.url()).stack(stack).chat(options()).unwrap();

        let error = ask(&model).await.unwrap_err();

        assert_eq!((error.kind, error.message.as_str()), (kind, message));
        assert!(error.status.is_some());
    }
}

/// The engine retries a step up to three times more, so each layer with retries multiplies the requests.
#[tokio::test]
async fn retry_layer_sends_a_request_several_times() {
    let server = server(vec![ResponseTemplate::new(503); 2]).await;
    let stack = ServiceBuilder::new().layer(OpenAIRetryLayer::new(1)).service(client());

    let error = ask(&connection(&server.url()).stack(stack).chat(options()).unwrap()).await.unwrap_err();

    assert_eq!((error.kind, server.requests().await.len()), (ModelErrorKind::Server, 2));
}

#[tokio::test]
async fn failure_of_a_layer_keeps_its_kind() {
    let slow = service_fn(|_: HttpRequestFactory| std::future::pending::<Result<reqwest::Response, BoxError>>());
    let slow = ServiceBuilder::new().timeout(Duration::from_millis(5)).service(slow);
    let error = ask(&connection("http://h").stack(slow).chat(options()).unwrap()).await.unwrap_err();
    assert_eq!(
        (error.kind, error.message.as_str()),
        (ModelErrorKind::Timeout, "the HTTP stack failed: request timed out")
    );

    let closed = ModelError::new(ModelErrorKind::QuotaExhausted, "the team has no budget");
    let refused = closed.clone();
    let budget = service_fn(move |_: HttpRequestFactory| {
        let refused: BoxError = Box::new(refused.clone());
        async move { Err::<reqwest::Response, _>(refused) }
    });
    assert_eq!(ask(&connection("http://h").stack(budget).chat(options()).unwrap()).await.unwrap_err(), closed);

    let lost = connection("http://127.0.0.1:1/v1").stack(client()).chat(options()).unwrap();
    let error = ask(&lost).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Connection);
    assert!(error.message.starts_with("cannot reach http://127.0.0.1:1/v1/chat/completions: "), "{error}");
}
