//! Runs as tasks: the id of a task is that of its run, so that it outlives the connection and the server.

use std::collections::BTreeMap;

use positronic_core::machine::pending;
use positronic_core::record::{RunId, RunSummary, Status};
use positronic_server::Problem;
use positronic_server::extension::{OpenQuestion, RequestContext as CallerContext};
use rmcp::model::{CallToolResult, DetailedTask, Task, TaskPayload, TaskStatus};

use super::calls_in_flight::ToolServer;
use super::outcome::{in_progress, outcome, waits};
use super::question::{form, is_answerable, request};
use super::update::CallUpdates;
use crate::history::LogReader;
use crate::leg::{Encoder as _, LegEnd, settled};
use crate::projection::Projection;

/// How often a client reads a task, in milliseconds.
const POLL_MS: u64 = 1000;

/// Returns a run as a task.
pub(super) fn task(row: &RunSummary) -> Task {
    let status = match row.status {
        Status::Cancelled => TaskStatus::Cancelled,
        Status::Completed | Status::Failed => TaskStatus::Completed,
        Status::Running | Status::Waiting | Status::Paused => TaskStatus::Working,
    };
    let mut task = Task::new(row.run.to_string(), status, row.started.to_string(), row.at.to_string());
    task.poll_interval_ms = Some(POLL_MS);
    task.status_message = row.why.clone();
    task
}

/// Returns a run as a task, with its open questions or its result.
pub(super) async fn detailed(
    server: &ToolServer,
    caller: &CallerContext,
    run: &RunId,
) -> Result<DetailedTask, Problem> {
    let row = caller.run_row(run).await?;
    let (task, viewer) = (task(&row), caller.viewer()?);
    let payload = match row.status {
        Status::Cancelled => TaskPayload::Cancelled,
        Status::Completed | Status::Failed => {
            let result = serde_json::to_value(result(server, caller, &row).await?).unwrap_or_default();
            TaskPayload::Completed { result: result.as_object().cloned().unwrap_or_default() }
        }
        Status::Running | Status::Waiting | Status::Paused => {
            let questions = questions(caller, run).await?;
            let forms = questions.iter().filter(|open| is_answerable(open));
            let input_requests: BTreeMap<_, _> =
                forms.map(|open| (open.id.clone(), request(form(&viewer, open, None)))).collect();
            if input_requests.is_empty() { TaskPayload::Working } else { TaskPayload::InputRequired { input_requests } }
        }
    };
    Ok(DetailedTask::new(task, payload))
}

/// Returns the status of a run for a client without tasks: its result, or what it waits for.
pub(super) async fn status(
    server: &ToolServer,
    caller: &CallerContext,
    row: &RunSummary,
) -> Result<CallToolResult, Problem> {
    if row.status.is_over() {
        return result(server, caller, row).await;
    }
    let questions = questions(caller, &row.run).await?;
    if questions.is_empty() {
        return Ok(in_progress(row));
    }
    Ok(waits(&caller.viewer()?, &server.shared.program, &row.run, &questions))
}

/// Cancels a run. One that is over stays as it is.
pub(super) async fn cancel(caller: &CallerContext, run: &RunId, reason: Option<String>) -> Result<(), Problem> {
    let row = caller.run_row(run).await?;
    if row.status.is_over() {
        return Ok(());
    }
    caller.cancel(&row, reason).await
}

/// Returns what a run waits for.
pub(super) async fn questions(caller: &CallerContext, run: &RunId) -> Result<Vec<OpenQuestion>, Problem> {
    let (state, viewer) = (caller.client().state(run).await?, caller.viewer()?);
    Ok(pending(&state).iter().map(|item| viewer.question(run, &state, item)).collect())
}

/// Returns the result of a run that is over.
async fn result(server: &ToolServer, caller: &CallerContext, row: &RunSummary) -> Result<CallToolResult, Problem> {
    let rule = server.rule(caller, &row.brain)?;
    let viewer = caller.viewer()?;
    let (mut projection, mut updates) = (Projection::new(&row.run, viewer.clone(), None), CallUpdates::default());
    let mut log = LogReader::new(viewer.client(), &row.run);
    while let Some(events) = log.next().await? {
        for event in events {
            updates.items(projection.event(&event));
        }
    }
    let end = settled(&viewer, &row.run, projection.state(), false).unwrap_or(LegEnd::Cancelled);
    Ok(outcome(&viewer, &server.shared.program, &row.run, &updates.ended(end), &rule))
}
