//! Whether work on a run can continue here: by the code of its brain, by a retry, and by the models of this server's workers. Each
//! answer is computed from the log of the run, and holds until its next event.

use positronic_core::record::{RunSummary, Seq, Status};
use positronic_core::runner::{CodeCheck, RetryError};

use super::next_model::NextModel;
use crate::app::App;
use crate::continuation::Continuation;
use crate::problem::Problem;

/// Returns how the code of this server differs from what an open run needs.
pub(crate) async fn checked_code(app: &App, row: &RunSummary) -> Result<CodeCheck, Problem> {
    if row.status.is_over() || app.brain(&row.brain).is_err() {
        return Ok(CodeCheck::default());
    }
    let Ok(runner) = app.settings.brains.runner(&row.brain).await else { return Ok(CodeCheck::default()) };
    app.code_checks.get(row, |_| true, async { Ok(runner.check_code(&row.run).await?) }).await
}

/// Returns what would happen to a run that is retried, or to one that has work, if a worker continued it.
pub(super) async fn continuation(app: &App, row: &RunSummary) -> Result<Continuation, Problem> {
    match row.status {
        Status::Running | Status::Failed => {
            app.continuations.get(row, |known| !known.may_change, computed(app, row)).await
        }
        Status::Paused if row.parked => app.continuations.get(row, |known| !known.may_change, computed(app, row)).await,
        Status::Paused | Status::Waiting | Status::Completed | Status::Cancelled => Ok(Continuation::default()),
    }
}

async fn computed(app: &App, row: &RunSummary) -> Result<Continuation, Problem> {
    let refused =
        |error: RetryError| Continuation { retry_refused: Some(error.to_string()), ..Continuation::default() };
    let at = match row.status {
        Status::Failed => match app.client.retry_event(row).await {
            Ok(at) => Some(at),
            Err(RetryError::Fork(error)) => return Err(error.into()),
            Err(error) => return Ok(refused(error)),
        },
        _ => None,
    };
    if app.brain(&row.brain).is_err() {
        return Ok(Continuation::default());
    }
    if let Some(at) = at
        && let Ok(runner) = app.settings.brains.runner(&row.brain).await
        && let Some(difference) = runner.fork_difference(&row.run, at).await?
    {
        return Ok(refused(RetryError::Changed { difference }));
    }
    let log = app.client.events(&row.run, Seq(0)).await?;
    // A retry of a failed run shares the log up to the failure.
    let shared = at.map_or(&*log, |at| log.get(..at.next().index()).unwrap_or_default());
    let NextModel { missing, may_come, .. } = NextModel::of(app, &row.brain, shared).await;
    Ok(Continuation { missing_model: missing, retry_refused: None, may_change: may_come })
}
