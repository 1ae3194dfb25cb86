//! `/runs`: lists and counts of runs.

use axum::response::Response;
use positronic_core::record::{RunSummary, Status};
use positronic_core::store::{EventSearch, RunCursor, RunFilter, StoreError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::hits::HitItem;
use crate::api::items::RunItem;
use crate::app::App;
use crate::auth::Caller;
use crate::cursor;
use crate::problem::{Problem, ProblemType};
use crate::routes::{RequestContext, Route, json};
use crate::time::Time;

/// The most items of a page.
pub(crate) const MAX_PAGE: usize = 500;
/// How many runs are counted, and how many events a search finds and about how many it reads, at most.
const MAX_COUNTED: usize = 10_000;
pub(crate) const MAX_FOUND: usize = 10_000;
pub(crate) const MAX_SCANNED: usize = 200_000;
/// How many characters of an id are enough to find its run: a word of another text is rarely the beginning of an id.
const SHORT_ID: usize = 8;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/runs", "List runs, the last started first", list)
            .large_answers()
            .query::<RunsQuery>()
            .returns::<RunList>(200)
            .problems(&[ProblemType::BadCursor]),
        Route::get("/api/v1/runs/counts", "Count runs by status", counts)
            .large_answers()
            .query::<CountsQuery>()
            .returns::<RunCounts>(200),
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
    /// Only runs with this tag.
    tag: Option<String>,
    /// Only runs of this conversation.
    conversation: Option<String>,
    /// Only runs whose last event was appended at or after this time.
    since: Option<Time>,
    /// Only runs whose last event was appended before this time.
    before: Option<Time>,
    /// `decision`: only runs that wait for a person.
    needs: Option<Need>,
    /// Only runs whose id this is or begins with, from eight characters on; without such a run, those with this text in an event.
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
    /// Only runs with this tag.
    tag: Option<String>,
    /// Only runs of this conversation.
    conversation: Option<String>,
    /// Only runs whose last event was appended at or after this time.
    since: Option<Time>,
    /// Only runs whose last event was appended before this time.
    before: Option<Time>,
    /// `decision`: only runs that wait for a person.
    needs: Option<Need>,
    /// Only runs whose id this is or begins with, from eight characters on; without such a run, those with this text in an event.
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
    /// For a search for `q`: the first event with the text of each of the items, unless it is the id of a run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    hits: Vec<HitItem>,
    /// Whether the search for `q` has read as many events as one request may, before the end of the list: `next` continues it,
    /// even if `items` is empty.
    capped: bool,
}

/// The numbers of runs.
#[derive(Debug, Serialize, JsonSchema)]
struct RunCounts {
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
    tag: Option<&'q String>,
    conversation: Option<&'q String>,
    since: Option<Time>,
    before: Option<Time>,
    needs: Option<Need>,
    q: Option<&'q String>,
}

async fn list(cx: RequestContext) -> Result<Response, Problem> {
    let query: RunsQuery = cx.query()?;
    let RunsQuery { status, brain, user, tag, conversation, since, before, needs, q, cursor, limit } = &query;
    let (since, before, needs) = (*since, *before, *needs);
    let user = user_of(cx.caller()?, user.as_deref())?;
    let status = statuses(status.as_deref())?;
    let wanted = Wanted {
        status,
        brain: brain.as_ref(),
        user,
        tag: tag.as_ref(),
        conversation: conversation.as_ref(),
        since,
        before,
        needs,
        q: q.as_ref(),
    };
    let limit = page(*limit)?;
    let after: Option<RunCursor> = cursor.as_ref().map(|text| cursor::decode(text, &wanted)).transpose()?;
    let app = &cx.app;
    let Matching { mut rows, mut hits, capped } = matching(app, &wanted, after, limit + 1).await?;
    let more = rows.len() > limit;
    rows.truncate(limit);
    hits.truncate(limit);
    let last = if more { rows.last().map(RunSummary::cursor) } else { capped.clone() };
    let next = last.map(|last| cursor::encode(&last, &wanted));
    json(&RunList { items: app.run_items(&rows).await?, next, hits, capped: !more && capped.is_some() })
}

async fn counts(cx: RequestContext) -> Result<Response, Problem> {
    let query: CountsQuery = cx.query()?;
    let CountsQuery { status, brain, user, tag, conversation, since, before, needs, q } = &query;
    let user = user_of(cx.caller()?, user.as_deref())?;
    let (since, before, needs, q) = (*since, *before, *needs, q.as_ref());
    let (brain, tag, conversation) = (brain.as_ref(), tag.as_ref(), conversation.as_ref());
    let status = statuses(status.as_deref())?;
    let wanted = Wanted { status, brain, user, tag, conversation, since, before, needs, q };
    let Matching { rows, capped, .. } = matching(&cx.app, &wanted, None, MAX_COUNTED + 1).await?;
    let count = |status| rows.iter().take(MAX_COUNTED).filter(|row| row.status == status).count();
    json(&RunCounts {
        running: count(Status::Running),
        waiting: count(Status::Waiting),
        paused: count(Status::Paused),
        completed: count(Status::Completed),
        failed: count(Status::Failed),
        cancelled: count(Status::Cancelled),
        capped: capped.is_some() || rows.len() > MAX_COUNTED,
    })
}

/// Returns the user to whom a list is limited. A caller that sees only the runs of a user may not ask for those of another.
pub(crate) fn user_of<'q>(caller: &'q Caller, asked: Option<&'q str>) -> Result<Option<&'q str>, Problem> {
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

/// A part of a list of runs.
struct Matching {
    rows: Vec<RunSummary>,
    /// Where a search has found its text, for each of the rows.
    hits: Vec<HitItem>,
    /// Where the list continues, if a search has ended before the list did.
    capped: Option<RunCursor>,
}

/// Lists up to `most` rows that match.
async fn matching(app: &App, wanted: &Wanted<'_>, after: Option<RunCursor>, most: usize) -> Result<Matching, Problem> {
    let store = app.client.store();
    let mut filter = RunFilter::builder().status(wanted.status.clone()).person(wanted.needs.is_some()).build();
    filter.brain = wanted.brain.cloned();
    filter.user = wanted.user.map(str::to_owned);
    filter.tag = wanted.tag.cloned();
    filter.conversation = wanted.conversation.cloned();
    (filter.since, filter.before) = (wanted.since.map(|time| time.0), wanted.before.map(|time| time.0));
    filter.after = after;
    let Some(text) = wanted.q else {
        filter.limit = Some(most);
        return Ok(Matching { rows: store.runs(&filter).await?, hits: Vec::new(), capped: None });
    };
    if is_id(app, text, &filter).await? {
        (filter.prefix, filter.limit) = (Some(text.clone()), Some(most));
        return Ok(Matching { rows: store.runs(&filter).await?, hits: Vec::new(), capped: None });
    }
    let search = search(app, text, filter, most);
    let mut found = store.search(&search).await?;
    // Matches that the caller does not see may have used up the search, which then ends with the run of the last one.
    if !search.once
        && found.found.len() == search.limit
        && let Some(last) = found.found.last()
        && let Ok(row) = store.run(&last.run).await
    {
        found.capped = Some(row.cursor());
    }
    let (mut rows, mut hits): (Vec<RunSummary>, Vec<HitItem>) = (Vec::new(), Vec::new());
    for hit in found.found {
        if rows.len() == most || rows.last().is_some_and(|row| row.run == hit.run) {
            continue;
        }
        // A search must not find secrets.
        let Some(item) = HitItem::of(&hit, text, app.options.redact.as_ref()) else { continue };
        match store.run(&hit.run).await {
            Ok(row) => {
                rows.push(row);
                hits.push(item);
            }
            // It was pruned meanwhile.
            Err(StoreError::NoSuchRun { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Matching { rows, hits, capped: found.capped })
}

/// Returns whether a text is the id of a run in a list, or begins one.
async fn is_id(app: &App, text: &str, filter: &RunFilter) -> Result<bool, StoreError> {
    let mut filter = filter.clone();
    (filter.prefix, filter.after, filter.limit) = (Some(text.to_owned()), None, Some(1));
    let rows = app.client.store().runs(&filter).await?;
    Ok(rows.first().is_some_and(|row| text.len() >= SHORT_ID || row.run.as_str() == text))
}

/// Returns the search for a text in the events of runs: once per run, unless secrets may hide matches, or the numbers and times of
/// events match that are not searched.
fn search(app: &App, text: &str, runs: RunFilter, most: usize) -> EventSearch {
    let search = |limit| EventSearch::new(text, limit).within(runs).scan(MAX_SCANNED);
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    if app.options.redact.is_some() || is_number { search(MAX_FOUND) } else { search(most).once() }
}
