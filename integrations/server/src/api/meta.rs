//! Whether the server is alive and ready.

use axum::response::{IntoResponse as _, Response};
use positronic_core::store::RunFilter;

use crate::problem::{Problem, ProblemType};
use crate::routes::{Access, RequestContext, Route};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/healthz", "Check that the server is alive", alive)
            .access(Access::Public)
            .unlimited()
            .returns_text(200, "text/plain"),
        Route::get("/readyz", "Check whether the store can be read", ready)
            .access(Access::Public)
            .unlimited()
            .returns_text(200, "text/plain")
            .problems(&[ProblemType::StoreFailed]),
    ]
}

async fn alive(_: RequestContext) -> Result<Response, Problem> {
    Ok("ok\n".into_response())
}

async fn ready(cx: RequestContext) -> Result<Response, Problem> {
    cx.app.client.store().runs(&RunFilter::builder().limit(1).build()).await?;
    Ok("ready\n".into_response())
}
