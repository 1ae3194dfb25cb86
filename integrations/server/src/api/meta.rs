//! Whether the server is alive and ready.

use axum::response::{IntoResponse as _, Response};

use crate::problem::{Problem, ProblemType};
use crate::routes::{RequestContext, Route, RouteAccess};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/healthz", "Check that the server is alive", alive)
            .access(RouteAccess::Public)
            .unlimited()
            .returns_text(200, "text/plain"),
        Route::get("/readyz", "Check whether the store can be read and written", ready)
            .access(RouteAccess::Public)
            .unlimited()
            .returns_text(200, "text/plain")
            .problems(&[ProblemType::StoreFailed]),
    ]
}

async fn alive(_: RequestContext) -> Result<Response, Problem> {
    Ok("ok\n".into_response())
}

async fn ready(cx: RequestContext) -> Result<Response, Problem> {
    cx.app.readiness.check(cx.app.client.store()).await?;
    Ok("ready\n".into_response())
}
