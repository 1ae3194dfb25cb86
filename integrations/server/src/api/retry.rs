//! `/runs/{run}/retry`: continues the work of a run that has failed or was parked.

use axum::response::Response;
use positronic_core::record::{RunSummary, Seq, Status};
use positronic_core::runner::{Retried, RetryError};
use schemars::JsonSchema;
use serde::Serialize;

use super::signals::code_differs;
use crate::app::App;
use crate::auth::Scope;
use crate::problem::{Problem, ProblemType};
use crate::routes::{RequestContext, Route, json};

pub(super) fn routes() -> Vec<Route> {
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
    app.may_start(cx.caller()?, &row.brain)?;
    if let Some(difference) = difference(app, row).await? {
        return Err(code_differs(&difference));
    }
    let retried = match app.client.retry(&row.run, cx.actor()?).await? {
        Retried::Resumed(seq) => Retry { run: row.run.to_string(), forked: false, seq: seq.0 },
        Retried::Forked { run, at } => Retry { run: run.to_string(), forked: true, seq: at.0 },
    };
    json(&retried)
}

/// Returns how the code of this server differs from that with which the retry would have to continue.
async fn difference(app: &App, row: &RunSummary) -> Result<Option<String>, Problem> {
    if row.status != Status::Failed {
        return Ok(super::run::checked_code(app, row).await?.brain);
    }
    let at: Seq = app.client.retry_event(row).await?;
    if app.brain(&row.brain).is_err() {
        return Ok(None);
    }
    match app.options.brains.runner(&row.brain).await {
        Ok(runner) => Ok(runner.fork_difference(&row.run, at).await?),
        Err(_) => Ok(None),
    }
}

impl From<RetryError> for Problem {
    fn from(error: RetryError) -> Self {
        let kind = match error {
            RetryError::Signal(error) => return error.into(),
            RetryError::Fork(error) => return error.into(),
            RetryError::NotFailed { .. } | RetryError::AtLimit { .. } => ProblemType::NotFailed,
            _ => ProblemType::CodeDiffers,
        };
        Self::new(kind).detail(error)
    }
}
