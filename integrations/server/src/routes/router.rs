//! The axum router of the table.

use std::sync::Arc;

use axum::Router;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{RawPathParams, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodFilter, on};
use futures::FutureExt as _;
use positronic_core::runner::Client;

use super::Route;
use super::dispatch::dispatch;
use crate::api;
use crate::app::App;
use crate::auth::{allowed_host, security_headers};
use crate::options::Options;
use crate::problem::{Problem, ProblemType};

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
    let response = match allowed_host(&app.options, &request) {
        Ok(()) => {
            let answer = std::panic::AssertUnwindSafe(next.run(request)).catch_unwind().await;
            answer.unwrap_or_else(|_| Problem::new(ProblemType::Internal).into_response())
        }
        Err(problem) => problem.into_response(),
    };
    security_headers(response)
}
