//! `/runs`: lists and counts of runs.

use std::collections::HashSet;

use axum::response::Response;
use positronic_core::record::{RunId, RunSummary, Status};
use positronic_core::store::{PendingFilter, PendingPages, RunCursor, RunFilter, StoreError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::items::RunItem;
use crate::app::App;
use crate::auth::Caller;
use crate::cursor;
use crate::problem::{Problem, ProblemType};
use crate::routes::{Call, Route, json};
use crate::time::Time;

/// The most items of a page.
pub(crate) const MAX_PAGE: usize = 500;
/// How many runs are counted, and how many events a search finds, at most.
const MAX_COUNTED: usize = 10_000;
const MAX_FOUND: usize = 10_000;
/// How many rows are read at once while the filter drops some of them.
const CHUNK: usize = 500;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/runs", "List runs, the last started first", list)
            .query::<RunsQuery>()
            .returns::<RunList>(200)
            .problems(&[ProblemType::BadCursor]),
        Route::get("/api/v1/runs/counts", "Count runs by status", counts).query::<CountsQuery>().returns::<Counts>(200),
    ]
}

/// Which runs to list.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct RunsQuery {
    /// Only runs with one of these statuses, separated by commas.
    status: Option<String>,
    /// Only runs of the brain with this title.
    brain: Option<String>,
    /// Only runs of this user.
    user: Option<String>,
    /// Only runs of this conversation.
    conversation: Option<String>,
    /// Only runs whose last event was appended at or after this time.
    since: Option<Time>,
    /// Only runs whose last event was appended before this time.
    before: Option<Time>,
    /// `decision`: only runs that wait for a person.
    needs: Option<Need>,
    /// Only runs with this text in an event.
    q: Option<String>,
    /// Continues a list.
    cursor: Option<String>,
    /// The number of items: 1 to 500, 50 by default.
    limit: Option<usize>,
}

/// Which runs to count.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct CountsQuery {
    /// Only runs with one of these statuses, separated by commas.
    status: Option<String>,
    /// Only runs of the brain with this title.
    brain: Option<String>,
    /// Only runs of this user.
    user: Option<String>,
    /// Only runs of this conversation.
    conversation: Option<String>,
    /// Only runs whose last event was appended at or after this time.
    since: Option<Time>,
    /// Only runs whose last event was appended before this time.
    before: Option<Time>,
    /// `decision`: only runs that wait for a person.
    needs: Option<Need>,
    /// Only runs with this text in an event.
    q: Option<String>,
}

/// What a run needs.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Need {
    Decision,
}

/// A page of runs.
#[derive(Serialize, JsonSchema)]
struct RunList {
    items: Vec<RunItem>,
    /// The cursor of the next page; `null` at the end of the list.
    next: Option<String>,
    /// Whether the search for `q` has stopped at its maximum number of events, so that older runs may be missing.
    capped: bool,
}

/// The numbers of runs.
#[derive(Debug, Serialize, JsonSchema)]
struct Counts {
    running: usize,
    waiting: usize,
    paused: usize,
    completed: usize,
    failed: usize,
    cancelled: usize,
    /// Whether there are more runs than were counted.
    capped: bool,
}

/// The filter of a list.
#[derive(Serialize)]
struct Wanted<'q> {
    status: Vec<Status>,
    brain: Option<&'q String>,
    user: Option<&'q str>,
    conversation: Option<&'q String>,
    since: Option<Time>,
    before: Option<Time>,
    needs: Option<Need>,
    q: Option<&'q String>,
}

async fn list(call: Call) -> Result<Response, Problem> {
    let query: RunsQuery = call.query()?;
    let RunsQuery { status, brain, user, conversation, since, before, needs, q, cursor, limit } = &query;
    let (since, before, needs) = (*since, *before, *needs);
    let user = user_of(call.caller()?, user.as_deref())?;
    let status = statuses(status.as_deref())?;
    let wanted = Wanted {
        status,
        brain: brain.as_ref(),
        user,
        conversation: conversation.as_ref(),
        since,
        before,
        needs,
        q: q.as_ref(),
    };
    let limit = page(*limit)?;
    let after: Option<RunCursor> = cursor.as_ref().map(|text| cursor::decode(text, &wanted)).transpose()?;
    let app = &call.app;
    let (mut rows, capped) = matching(app, &wanted, after, limit + 1).await?;
    let more = rows.len() > limit;
    rows.truncate(limit);
    let next = rows.last().filter(|_| more).map(|last| cursor::encode(&last.cursor(), &wanted));
    json(&RunList { items: app.run_items(&rows).await?, next, capped })
}

async fn counts(call: Call) -> Result<Response, Problem> {
    let query: CountsQuery = call.query()?;
    let CountsQuery { status, brain, user, conversation, since, before, needs, q } = &query;
    let user = user_of(call.caller()?, user.as_deref())?;
    let (since, before, needs, q) = (*since, *before, *needs, q.as_ref());
    let (brain, conversation, status) = (brain.as_ref(), conversation.as_ref(), statuses(status.as_deref())?);
    let wanted = Wanted { status, brain, user, conversation, since, before, needs, q };
    let (rows, capped) = matching(&call.app, &wanted, None, MAX_COUNTED + 1).await?;
    let count = |status| rows.iter().take(MAX_COUNTED).filter(|row| row.status == status).count();
    json(&Counts {
        running: count(Status::Running),
        waiting: count(Status::Waiting),
        paused: count(Status::Paused),
        completed: count(Status::Completed),
        failed: count(Status::Failed),
        cancelled: count(Status::Cancelled),
        capped: capped || rows.len() > MAX_COUNTED,
    })
}

/// Returns the user to whom a list is limited. A caller that sees only the runs of a user may not ask for those of another.
fn user_of<'q>(caller: &'q Caller, asked: Option<&'q str>) -> Result<Option<&'q str>, Problem> {
    match (caller.only_user(), asked) {
        (Some(own), Some(asked)) if own != asked => {
            Err(Problem::new(ProblemType::NotAllowed)
                .detail(format!("the caller sees only the runs of the user `{own}`")))
        }
        (Some(own), _) => Ok(Some(own)),
        (None, asked) => Ok(asked),
    }
}

fn statuses(listed: Option<&str>) -> Result<Vec<Status>, Problem> {
    let words = listed.into_iter().flat_map(|listed| listed.split(','));
    let read = |word: &str| {
        let status = Status::ALL.into_iter().find(|status| status.as_str() == word);
        status.ok_or_else(|| {
            let all = Status::ALL.map(Status::as_str).join(", ");
            Problem::new(ProblemType::InvalidQuery).detail(format!("`status={word}`: expected {all}"))
        })
    };
    words.map(read).collect()
}

/// Checks the number of items of a page.
pub(crate) fn page(limit: Option<usize>) -> Result<usize, Problem> {
    match limit.unwrap_or(50) {
        limit @ 1..=MAX_PAGE => Ok(limit),
        limit => {
            Err(Problem::new(ProblemType::InvalidQuery).detail(format!("`limit={limit}`: expected 1 to {MAX_PAGE}")))
        }
    }
}

/// Lists up to `most` rows that match, and returns whether a search has stopped at its maximum.
async fn matching(
    app: &App,
    wanted: &Wanted<'_>,
    after: Option<RunCursor>,
    most: usize,
) -> Result<(Vec<RunSummary>, bool), Problem> {
    let store = app.client.store();
    let mut filter = RunFilter::builder().status(wanted.status.clone()).build();
    filter.brain = wanted.brain.cloned();
    filter.user = wanted.user.map(str::to_owned);
    filter.conversation = wanted.conversation.cloned();
    (filter.since, filter.before) = (wanted.since.map(|time| time.0), wanted.before.map(|time| time.0));
    filter.after = after;
    let (mut only, mut capped): (Option<HashSet<RunId>>, _) = (None, false);
    if wanted.needs.is_some() {
        only = Some(waiting_for_people(app).await?);
    }
    if let Some(text) = wanted.q {
        let found = store.search(text, MAX_FOUND).await?;
        capped = found.len() == MAX_FOUND;
        let found: HashSet<_> = found.into_iter().map(|found| found.run).collect();
        only = Some(match only {
            Some(known) => known.intersection(&found).cloned().collect(),
            None => found,
        });
    }
    let Some(only) = only else {
        filter.limit = Some(most);
        return Ok((store.runs(&filter).await?, capped));
    };
    let (mut rows, mut left) = (Vec::new(), only.len());
    filter.limit = Some(CHUNK);
    while rows.len() < most && left > 0 {
        let chunk = store.runs(&filter).await?;
        let is_last = chunk.len() < CHUNK;
        filter.after = chunk.last().map(RunSummary::cursor);
        for row in chunk.into_iter().filter(|row| only.contains(&row.run)) {
            left -= 1;
            rows.push(row);
        }
        if is_last {
            break;
        }
    }
    rows.truncate(most);
    Ok((rows, capped))
}

async fn waiting_for_people(app: &App) -> Result<HashSet<RunId>, StoreError> {
    let mut pages = PendingPages::new(app.client.store(), PendingFilter::builder().person(true).build());
    let mut runs = HashSet::new();
    while let Some(page) = pages.next().await? {
        runs.extend(page.into_iter().map(|item| item.run));
    }
    Ok(runs)
}

impl App {
    /// Returns the items of rows, with the numbers of their pending items.
    pub(crate) async fn run_items(&self, rows: &[RunSummary]) -> Result<Vec<RunItem>, StoreError> {
        let mut items = Vec::with_capacity(rows.len());
        for row in rows {
            let filter = PendingFilter::builder().run(row.run.clone()).build();
            // A run that is over waits for nothing.
            let pending = if row.status.is_over() { 0 } else { self.client.store().pending(&filter).await?.len() };
            items.push(self.run_item(row, pending).await?);
        }
        Ok(items)
    }
}
