//! Reads, lists and cancels tasks.

use std::time::Duration;

use futures::StreamExt as _;
use positronic_core::record::{RunId, RunSummary, Status, Timestamp};
use positronic_core::runner::{RunUpdate, Settled};
use positronic_core::store::{RunCursor, RunFilter};
use positronic_server::extension::RequestContext;
use positronic_server::{Problem, ProblemType, Scope};
use serde::Deserialize;
use serde_json::{Value, json};

use super::card::title;
use super::encoder::TaskEncoder;
use super::error::Refusal;
use super::task_status::TaskState;
use crate::history::LogReader;
use crate::projection::Projection;
use crate::shared::Shared;

/// How long a cancelled task is waited for: its tools may end their work.
const CANCELLATION: Duration = Duration::from_secs(5);
/// The tasks of a page, by default and at most.
const PAGE: usize = 50;
const MAX_PAGE: usize = 100;
/// After how many bytes a page ends.
const MAX_PAGE_BYTES: usize = 4 << 20;

/// The parameters of the methods that name a task.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TaskParams {
    pub(super) id: String,
    #[serde(default)]
    pub(super) history_length: Option<usize>,
}

/// The parameters of `ListTasks`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ListParams {
    pub(super) context_id: String,
    pub(super) status: String,
    pub(super) page_size: Option<usize>,
    pub(super) page_token: String,
    pub(super) history_length: Option<usize>,
    /// Only tasks of which something happened at or after this time (RFC 3339).
    pub(super) status_timestamp_after: String,
    pub(super) include_artifacts: bool,
}

/// Finds the run of a task.
///
/// # Errors
///
/// `TASK_NOT_FOUND` if there is none, it belongs to another user, or it is one of another agent.
pub(super) async fn row(cx: &RequestContext, id: &str) -> Result<RunSummary, Refusal> {
    let row = match cx.run_row(&RunId::new(id)).await {
        Ok(row) => row,
        Err(problem) if problem.kind() == ProblemType::UnknownRun => return Err(Refusal::unknown_task(id)),
        Err(problem) => return Err(problem.into()),
    };
    match title(cx) {
        Some(title) if *row.brain != *title => Err(Refusal::unknown_task(id)),
        _ => Ok(row),
    }
}

/// Returns the encoder of a run.
pub(super) fn encoder(cx: &RequestContext, shared: &Shared, row: &RunSummary) -> Result<TaskEncoder, Problem> {
    Ok(TaskEncoder::new(row.clone(), shared.caller_result(cx, &row.brain)?, cx.address()))
}

/// Reads a task as the log has it now.
pub(super) async fn read(
    cx: &RequestContext,
    shared: &Shared,
    row: &RunSummary,
    history_length: Option<usize>,
) -> Result<Value, Problem> {
    use crate::leg::Encoder as _;

    let mut encoder = encoder(cx, shared, row)?.history_length(history_length);
    let mut projection = Projection::new(&row.run, cx.viewer()?, None);
    let mut log = LogReader::new(cx.client(), &row.run);
    while let Some(events) = log.next().await? {
        for event in events {
            encoder.items(projection.event(&event));
        }
    }
    // The status comes first: it adds the result to the artifacts.
    Ok(encoder.task(&projection))
}

pub(super) async fn get(cx: &RequestContext, shared: &Shared, params: &TaskParams) -> Result<Value, Refusal> {
    let row = row(cx, &params.id).await?;
    Ok(read(cx, shared, &row, params.history_length).await?)
}

pub(super) async fn cancel(cx: &RequestContext, shared: &Shared, id: &str) -> Result<Value, Refusal> {
    cx.require(Scope::Operate)?;
    let row = row(cx, id).await?;
    let mut updates = cx.client().follow(&row.run, row.next);
    match cx.cancel(&row, Some("cancelled over A2A".to_owned())).await {
        Err(problem) if problem.kind() == ProblemType::RunClosed => return Err(Refusal::not_cancelable(id)),
        cancelled => cancelled?,
    }
    let ended = async {
        while let Some(Ok(update)) = updates.next().await {
            if matches!(update, RunUpdate::Settled(Settled::Cancelled | Settled::Completed(_) | Settled::Failed(_))) {
                return;
            }
        }
    };
    // A run that does not end in time is still shown as it is.
    let _ = cx.wait(tokio::time::timeout(CANCELLATION, ended)).await?;
    Ok(read(cx, shared, &row, None).await?)
}

/// Lists tasks, the last started first.
pub(super) async fn list(cx: &RequestContext, shared: &Shared, params: &ListParams) -> Result<Value, Refusal> {
    let size = params.page_size.filter(|size| *size > 0).unwrap_or(PAGE).min(MAX_PAGE);
    let after: Option<RunCursor> = match params.page_token.as_str() {
        "" => None,
        token => Some(
            serde_json::from_str(token)
                .map_err(|_| Refusal::invalid_params("`pageToken` is not one of this server"))?,
        ),
    };
    let (status, person) = statuses(&params.status)?;
    let mut filter = RunFilter::default();
    filter.brain = title(cx).map(str::to_owned);
    filter.since = since(&params.status_timestamp_after)?;
    filter.conversation = Some(params.context_id.clone()).filter(|context| !context.is_empty());
    (filter.status, filter.person, filter.after, filter.limit) = (status, person, after, Some(size + 1));
    let (mut rows, counts) = cx.list_runs(filter).await?;
    if let (Some(title), []) = (title(cx), &rows[..]) {
        cx.has_brain(title)?;
    }
    let mut has_more = rows.len() > size;
    rows.truncate(size);
    let (mut tasks, mut bytes) = (Vec::new(), 0);
    for row in &rows {
        if bytes > MAX_PAGE_BYTES {
            has_more = true;
            break;
        }
        let mut task = read(cx, shared, row, params.history_length.or(Some(0))).await?;
        if let (false, Some(fields)) = (params.include_artifacts, task.as_object_mut()) {
            fields.remove("artifacts");
        }
        bytes += task.to_string().len();
        tasks.push(task);
    }
    rows.truncate(tasks.len());
    let next = rows.last().filter(|_| has_more).map(|row| serde_json::to_string(&row.cursor()).unwrap_or_default());
    let total: u64 = Status::ALL.into_iter().map(|status| counts.of(status)).sum();
    Ok(json!({ "tasks": tasks, "nextPageToken": next.unwrap_or_default(), "pageSize": size, "totalSize": total }))
}

/// Reads the time from which on something has happened of the listed tasks.
fn since(text: &str) -> Result<Option<Timestamp>, Refusal> {
    if text.is_empty() {
        return Ok(None);
    }
    let at: jiff::Timestamp = text
        .parse()
        .map_err(|error| Refusal::invalid_params(format!("`statusTimestampAfter` is not a time: {error}")))?;
    Ok(Some(Timestamp(at.as_microsecond())))
}

/// Returns the statuses of runs that a state of tasks stands for, and whether only those that wait for a person are meant.
fn statuses(state: &str) -> Result<(Vec<Status>, bool), Refusal> {
    let all = [
        (TaskState::Working, vec![Status::Running, Status::Paused], false),
        (TaskState::InputRequired, vec![Status::Waiting], true),
        (TaskState::Completed, vec![Status::Completed], false),
        (TaskState::Failed, vec![Status::Failed], false),
        (TaskState::Canceled, vec![Status::Cancelled], false),
    ];
    if matches!(state, "" | "TASK_STATE_UNSPECIFIED") {
        return Ok((Vec::new(), false));
    }
    let found = all.into_iter().find(|(known, ..)| known.as_str() == state);
    let (_, statuses, person) =
        found.ok_or_else(|| Refusal::invalid_params(format!("no task is ever in the state `{state}`")))?;
    Ok((statuses, person))
}
