//! `/metrics` of the server.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::http::request::Parts;
use axum::http::{Request, StatusCode};
use futures::future::BoxFuture;
use positronic_core::runner::Client;
use positronic_opentelemetry::Monitor;
use positronic_opentelemetry::metrics::{CONTENT_TYPE, Metrics};
use positronic_server::{Authenticate, Caller, Options, Problem, Scope, router};
use tower::ServiceExt as _;

use crate::machines::Bench;
use crate::metrics::two_runs;

/// Takes the header `x-caller` as the user; without it, the caller is a service.
struct Header;

impl Authenticate for Header {
    fn authenticate<'a>(&'a self, request: &'a Parts) -> BoxFuture<'a, Result<Option<Caller>, Problem>> {
        let user = request.headers.get("x-caller").and_then(|value| value.to_str().ok());
        let caller = match user {
            Some("unknown") => None,
            Some(user) => Some(Caller::user(user, [Scope::Read])),
            None => Some(Caller::service("prometheus", [Scope::Read])),
        };
        Box::pin(async { Ok(caller) })
    }
}

async fn get(options: Options, bench: &Bench, caller: Option<&str>) -> (StatusCode, String, String) {
    let app = router(Client::new(Arc::clone(&bench.store)), options);
    let mut request = Request::get("/metrics").header("host", "127.0.0.1");
    if let Some(caller) = caller {
        request = request.header("x-caller", caller);
    }
    let response = app.oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    let media_type = response.headers()["content-type"].to_str().unwrap().to_owned();
    let status = response.status();
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (status, media_type, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test(start_paused = true)]
async fn metrics_are_for_callers_that_see_all_runs() {
    let bench = Bench::new();
    let metrics = Metrics::new();
    two_runs(&bench, Monitor::new(Arc::clone(&bench.store)).observer(metrics.clone())).await;
    let options = Options::builder().authenticate(Header).metrics(metrics.endpoint(Arc::clone(&bench.store))).build();

    let (status, media_type, text) = get(options.clone(), &bench, None).await;

    assert_eq!((status, media_type.as_str()), (StatusCode::OK, CONTENT_TYPE));
    assert!(text.contains("positronic_runs{status=\"waiting\"} 1\n"), "{text}");
    assert_eq!(get(options.clone(), &bench, Some("ann")).await.0, StatusCode::FORBIDDEN);
    assert_eq!(get(options, &bench, Some("unknown")).await.0, StatusCode::UNAUTHORIZED);
    let without = Options::builder().authenticate(Header).build();
    assert_eq!(get(without, &bench, None).await.0, StatusCode::NOT_FOUND);
}
