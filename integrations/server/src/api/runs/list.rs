//! `/runs`: lists and counts of runs.

use axum::response::Response;
use positronic_core::record::{RunSummary, Status};
use positronic_core::store::{RunCursor, RunSums};
use positronic_query::{
    FoundRuns, QueryClock, QueryError, RunQuery, RunSearch, Standing, count_runs, find_runs, sum_runs,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::hits::{HitItem, best_of};
use crate::api::run_item::RunItem;
use crate::api::sums::{CostSum, TokenSum};
use crate::app::App;
use crate::auth::Caller;
use crate::cursor;
use crate::problem::{Problem, ProblemType};
use crate::redact::redacted_text;
use crate::routes::{RequestContext, Route, json};
use crate::time::Time;

/// The most items of a page.
pub(crate) const MAX_PAGE: usize = 500;
/// For how many hits of a page the event with most of what is looked for is searched.
const MAX_SEARCHED: usize = 50;
/// How many hits of a search are counted, and about how many events it reads, at most.
const MAX_COUNTED: usize = 10_000;
pub(crate) const MAX_FOUND: usize = 10_000;
pub(crate) const MAX_SCANNED: usize = 200_000;

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
        Route::get("/api/v1/runs/sums", "Add up the costs and the tokens of runs", sums)
            .large_answers()
            .query::<CountsQuery>()
            .returns::<RunSumsItem>(200),
    ]
}

/// Which runs to list.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct RunsQuery {
    /// Only runs with one of these statuses, separated by commas: those of runs, and `stuck`, `queued`, `sleeping`, `parked` and `cut off`.
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
    /// A search: words such as `brain:support status:failed tool:refund cost:>0.1 since:7d`, with days in UTC; the beginning or the end
    /// of an id; other words, texts in double quotes and `field:value`, each of which an event of the run has to contain.
    q: Option<String>,
    /// Continues a list.
    cursor: Option<String>,
    /// The number of items: 1 to 500, 50 by default.
    limit: Option<usize>,
}

/// Which runs to count or to add up.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct CountsQuery {
    /// Only runs with one of these statuses, separated by commas: those of runs, and `stuck`, `queued`, `sleeping`, `parked` and `cut off`.
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
    /// A search: words such as `brain:support status:failed tool:refund cost:>0.1 since:7d`, with days in UTC; the beginning or the end
    /// of an id; other words, texts in double quotes and `field:value`, each of which an event of the run has to contain.
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
    running: u64,
    waiting: u64,
    paused: u64,
    completed: u64,
    failed: u64,
    cancelled: u64,
    /// Whether there are more runs than were counted: only the hits of a search in events have a maximum.
    capped: bool,
}

/// What runs come to, open ones as they stand.
#[derive(Debug, Serialize, JsonSchema)]
struct RunSumsItem {
    /// The number of runs.
    runs: u64,
    /// What they have cost, by currency.
    costs: Vec<CostSum>,
    /// How many of them have a cost that is not known in full.
    partly_priced: u64,
    /// Their tokens.
    tokens: TokenSum,
    /// Whether there are more runs than were added up, so that the sums are only a part: only the hits of a search in events have a maximum.
    capped: bool,
}

/// The filter of a list.
#[derive(Serialize)]
struct Wanted<'q> {
    status: Option<&'q String>,
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
    let wanted = Wanted {
        status: status.as_ref(),
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
    let query = wanted.query(app)?;
    let FoundRuns { mut rows, mut hits, capped, .. } = matching(app, &query, after, limit + 1).await?;
    let more = rows.len() > limit;
    rows.truncate(limit);
    hits.truncate(limit);
    let last = if more { rows.last().map(RunSummary::cursor) } else { capped.clone() };
    let next = last.map(|last| cursor::encode(&last, &wanted));
    let redact = app.settings.redact.as_ref();
    let typed: Vec<_> = query.typed().map(str::to_lowercase).collect();
    let mut shown = Vec::new();
    for (index, hit) in hits.iter().enumerate() {
        let best = if index < MAX_SEARCHED { best_of(app.client.store(), hit, &typed).await? } else { None };
        let best = best.and_then(|best| HitItem::of(&best, &typed, redact));
        shown.extend(best.or_else(|| HitItem::of(hit, &typed, redact)));
    }
    json(&RunList { items: app.run_items(&rows).await?, next, hits: shown, capped: !more && capped.is_some() })
}

/// Reads which runs to count or to add up.
fn counted(cx: &RequestContext) -> Result<RunQuery, Problem> {
    let query: CountsQuery = cx.query()?;
    let CountsQuery { status, brain, user, tag, conversation, since, before, needs, q } = &query;
    let user = user_of(cx.caller()?, user.as_deref())?;
    let (since, before, needs, q) = (*since, *before, *needs, q.as_ref());
    let (brain, tag, conversation) = (brain.as_ref(), tag.as_ref(), conversation.as_ref());
    let status = status.as_ref();
    Wanted { status, brain, user, tag, conversation, since, before, needs, q }.query(&cx.app)
}

async fn counts(cx: RequestContext) -> Result<Response, Problem> {
    let query = counted(&cx)?;
    if query.is_counted_by_store() {
        let counts = count_runs(cx.app.client.store(), &query).await?;
        return json(&RunCounts::of(|status| counts.of(status), false));
    }
    let FoundRuns { rows, capped, .. } = matching(&cx.app, &query, None, MAX_COUNTED + 1).await?;
    let count = |status| rows.iter().take(MAX_COUNTED).filter(|row| row.status == status).map(|_| 1).sum();
    json(&RunCounts::of(count, capped.is_some() || rows.len() > MAX_COUNTED))
}

async fn sums(cx: RequestContext) -> Result<Response, Problem> {
    let query = counted(&cx)?;
    if query.is_counted_by_store() {
        return json(&RunSumsItem::of(&sum_runs(cx.app.client.store(), &query).await?, false));
    }
    let FoundRuns { rows, capped, .. } = matching(&cx.app, &query, None, MAX_COUNTED + 1).await?;
    let mut sums = RunSums::default();
    rows.iter().take(MAX_COUNTED).for_each(|row| sums.add(row));
    json(&RunSumsItem::of(&sums, capped.is_some() || rows.len() > MAX_COUNTED))
}

impl RunSumsItem {
    fn of(sums: &RunSums, capped: bool) -> Self {
        Self {
            runs: sums.runs,
            costs: CostSum::all(sums),
            partly_priced: sums.partial,
            tokens: sums.usage.into(),
            capped,
        }
    }
}

impl RunCounts {
    fn of(count: impl Fn(Status) -> u64, capped: bool) -> Self {
        Self {
            running: count(Status::Running),
            waiting: count(Status::Waiting),
            paused: count(Status::Paused),
            completed: count(Status::Completed),
            failed: count(Status::Failed),
            cancelled: count(Status::Cancelled),
            capped,
        }
    }
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

fn standings(listed: &str) -> Result<Vec<Standing>, Problem> {
    Standing::parse(listed).map_err(|(reason, hint)| {
        let hint = hint.map_or_else(String::new, |hint| format!("; {hint}"));
        Problem::new(ProblemType::InvalidQuery).detail(format!("`status={listed}`: {reason}{hint}"))
    })
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

/// Lists up to `most` rows that match.
async fn matching(app: &App, query: &RunQuery, after: Option<RunCursor>, most: usize) -> Result<FoundRuns, Problem> {
    // A search must not find secrets.
    let redact = app.settings.redact.as_ref();
    let shown = |line: &str| redact.map_or_else(|| line.to_owned(), |redact| redacted_text(redact, line));
    let mut search = RunSearch::new(query, most);
    (search.after, search.scan) = (after, Some(MAX_SCANNED));
    if redact.is_some() {
        search.shown = Some(&shown);
    }
    Ok(find_runs(app.client.store(), &search).await?)
}

impl Wanted<'_> {
    /// Returns the search: the words of `q`, narrowed by the other parameters.
    fn query(&self, app: &App) -> Result<RunQuery, Problem> {
        let clock = QueryClock { now: app.now(), utc_offset: 0 };
        let mut query =
            self.q.map(|text| RunQuery::parse(text, clock)).transpose().map_err(|error| cannot_read(&error))?;
        let mut query = query.take().unwrap_or_default();
        let filter = query.filter_mut();
        let both = |name: &str| {
            let detail = format!("`{name}` is both a parameter and a word of `q`");
            Problem::new(ProblemType::InvalidQuery).detail(detail)
        };
        // Callers who see only the runs of a user cannot ask for those of another one with words either.
        if let (Some(user), Some(_)) = (self.user, &filter.user)
            && filter.user.as_deref() != Some(user)
        {
            return Err(both("user"));
        }
        for (name, parameter, word) in [
            ("brain", self.brain.map(String::as_str), &mut filter.brain),
            ("user", self.user, &mut filter.user),
            ("tag", self.tag.map(String::as_str), &mut filter.tag),
            ("conversation", self.conversation.map(String::as_str), &mut filter.conversation),
        ] {
            if let Some(value) = parameter {
                if word.as_deref().is_some_and(|word| word != value) {
                    return Err(both(name));
                }
                *word = Some(value.to_owned());
            }
        }
        for (name, parameter, word) in
            [("since", self.since, &mut filter.since), ("before", self.before, &mut filter.before)]
        {
            if let Some(Time(value)) = parameter {
                if word.is_some_and(|word| word != value) {
                    return Err(both(name));
                }
                *word = Some(value);
            }
        }
        filter.person |= self.needs.is_some();
        if let Some(status) = self.status {
            let (standings, before) = (standings(status)?, query.clone());
            query.set_standings(standings);
            if !before.filter().status.is_empty() && before != query {
                return Err(both("status"));
            }
        }
        Ok(query)
    }
}

/// Returns the problem of a search that cannot be read, with the place of the word.
fn cannot_read(error: &QueryError) -> Problem {
    Problem::new(ProblemType::InvalidQuery)
        .detail(format!("`q`: {error}"))
        .field("word", &error.word)
        .field("at", [error.at.start, error.at.end])
}
