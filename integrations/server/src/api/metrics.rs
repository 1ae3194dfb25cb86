//! `/metrics`: the numbers of a monitor, for Prometheus.

use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};

use crate::auth::Scope;
use crate::problem::{Problem, ProblemType};
use crate::routes::{RequestContext, Route};

/// The media type of the text format that [`Options`](crate::Options) gets.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/metrics", "Read the metrics for Prometheus", read)
            .returns_text(200, OPEN_METRICS)
            .problems(&[ProblemType::NotFound]),
    ]
}

/// The numbers are of the runs of all users, so a caller that sees only one user's does not get them.
async fn read(cx: RequestContext) -> Result<Response, Problem> {
    if cx.caller()?.only_user().is_some() {
        return Err(Problem::scope_missing(&[Scope::Operate]).detail("the metrics count the runs of all users"));
    }
    let text = cx.app.settings.metrics.clone().ok_or_else(|| Problem::new(ProblemType::NotFound))?;
    let mut response = text().await.into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(OPEN_METRICS));
    Ok(response)
}
