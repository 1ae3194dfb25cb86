//! The axum router of the table.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{RawPathParams, Request, State};
use axum::http::header::CONTENT_LENGTH;
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodFilter, on};
use futures::FutureExt as _;
use positronic_core::runner::{Client, Ids as _, UuidIds};

use super::Route;
use super::dispatch::dispatch;
use crate::api;
use crate::app::App;
use crate::auth::{allowed_host, security_headers};
use crate::options::Options;
use crate::problem::{Problem, ProblemType};

/// The header with the id of a request.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Creates the router of a store's runs. Nest it at any path; [`Options::public_url`](Options) then names that path.
///
/// The client is that of the runner which works on the runs, if there is one in this process, so that answers stream.
pub fn router(client: Client, options: Options) -> Router {
    let app = Arc::new(App::new(client, options));
    let mut router = Router::new();
    for route in table() {
        let (path, filter) = (route.path, MethodFilter::try_from(route.method.clone()));
        // The table has only methods that axum knows.
        let Ok(filter) = filter else { continue };
        let route = Arc::new(route);
        let handler = move |State(app): State<Arc<App>>,
                            params: Result<RawPathParams, RawPathParamsRejection>,
                            request: Request| {
            let route = Arc::clone(&route);
            async move {
                let Ok(params) = params else { return Problem::new(ProblemType::InvalidPath).into_response() };
                let params = params.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
                dispatch(app, &route, params, request).await
            }
        };
        router = router.route(path, on(filter, handler));
    }
    #[cfg(feature = "ui")]
    let router = router.merge(crate::ui::routes());
    router
        .fallback(|| async { Problem::new(ProblemType::NotFound) })
        .method_not_allowed_fallback(|| async { Problem::new(ProblemType::MethodNotAllowed) })
        .layer(from_fn_with_state(Arc::clone(&app), outermost))
        .with_state(app)
}

/// Returns all routes.
pub(crate) fn table() -> Vec<Route> {
    [api::routes(), crate::problem_page::routes(), crate::openapi::routes()].concat()
}

/// Checks the host, turns a panic into a problem document, and adds the headers of all answers.
async fn outermost(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let id = request_id(&request);
    let response = match allowed_host(&app.options, &request) {
        Ok(()) => {
            let answer = std::panic::AssertUnwindSafe(next.run(request)).catch_unwind().await;
            answer.unwrap_or_else(|_| Problem::new(ProblemType::Internal).into_response())
        }
        Err(problem) => problem.into_response(),
    };
    let mut response = security_headers(response);
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        let prefix = app.options.public_url.as_ref().map_or("", |url| url.path().trim_end_matches('/'));
        let document = problem.document_at(prefix, Some(&id));
        if problem.kind().status() >= 500 {
            tracing::error!(%document, "a request failed");
        }
        *response.body_mut() = Body::from(document.to_string());
        response.headers_mut().remove(CONTENT_LENGTH);
    }
    if let Ok(id) = HeaderValue::try_from(id) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    response
}

/// Returns the id under which a client or a proxy knows the request, or a new one.
fn request_id(request: &Request) -> String {
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let given = request.headers().get(REQUEST_ID).and_then(|id| id.to_str().ok());
    let given = given.filter(|id| (1..=64).contains(&id.len()) && id.bytes().all(is_safe));
    given.map_or_else(|| UuidIds.signal().to_string(), str::to_owned)
}
