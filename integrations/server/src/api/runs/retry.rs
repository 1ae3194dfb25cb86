//! `/runs/{run}/retry`: continues the work of a run that has failed or was parked.

use axum::response::Response;
use positronic_core::runner::{Retried, RetryError};
use schemars::JsonSchema;
use serde::Serialize;

use super::signals::code_differs;
use crate::auth::{Scope, may_start};
use crate::problem::{Problem, ProblemType};
use crate::routes::{RequestContext, Route, json};

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::post(
            "/api/v1/runs/{run}/retry",
            "Continue a run that has failed or was parked, without repeating what has a result",
            retry,
        )
        .scopes(&[Scope::Operate])
        .returns::<Retry>(200)
        .problems(&[ProblemType::NotAllowed, ProblemType::NotFailed, ProblemType::CodeDiffers]),
    ]
}

/// A retry.
#[derive(Serialize, JsonSchema)]
struct Retry {
    /// The run in which the work continues: the parked run itself, or a fork of the failed one. A second retry of a failed run
    /// returns the same fork.
    run: String,
    /// Whether it is a fork.
    forked: bool,
    /// The event that resumed the parked run, or the last one that the fork shares.
    seq: u64,
}

async fn retry(cx: RequestContext) -> Result<Response, Problem> {
    let (app, row) = (&cx.app, cx.run()?);
    may_start(&app.settings, cx.caller()?, &row.brain)?;
    let runner = match app.brain(&row.brain) {
        Ok(_) => app.settings.brains.runner(&row.brain).await.ok(),
        Err(_) => None,
    };
    let retried = match runner {
        Some(runner) => runner.record_retry(&row.run, cx.actor()?).await?,
        None => app.client.retry(&row.run, cx.actor()?).await?,
    };
    let retried = match retried {
        Retried::Resumed(seq) => Retry { run: row.run.to_string(), forked: false, seq: seq.0 },
        Retried::Forked { run, at } => Retry { run: run.to_string(), forked: true, seq: at.0 },
    };
    json(&retried)
}

impl From<RetryError> for Problem {
    fn from(error: RetryError) -> Self {
        let kind = match error {
            RetryError::Signal(error) => return error.into(),
            RetryError::Fork(error) => return error.into(),
            RetryError::Changed { difference } => return code_differs(&difference),
            RetryError::NotFailed { .. } | RetryError::AtLimit { .. } => ProblemType::NotFailed,
            _ => ProblemType::CodeDiffers,
        };
        Self::new(kind).detail(error)
    }
}
