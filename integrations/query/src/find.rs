//! Lists the runs that match a search.

use std::fmt;

use super::parse::RunQuery;
use super::standing::Standings;
use super::term_match::Needle;
use positronic_core::record::{RunSummary, Timestamp};
use positronic_core::store::{
    EventMatch, EventSearch, EventStore, FigureFilter, RunCounts, RunCursor, RunFilter, RunSums, StoreError,
};

/// How many characters of an id are enough to find its run: a word of another text is rarely the beginning of an id.
const BEGINNING: usize = 8;
/// How many of the last characters of an id are enough.
const END: usize = 4;
/// How many rows are read at once, and about at most if [`RunSearch::scan`] is set, to find those that stand as wanted.
const PAGE: usize = 500;
const MAX_ROWS: usize = 20_000;
/// How many events a search compares, if not every event with its text is a match.
const MAX_COMPARED: usize = 10_000;

/// What to list.
#[derive(Clone)]
pub struct RunSearch<'a> {
    /// The search.
    pub query: &'a RunQuery,
    /// The list continues after this place.
    pub after: Option<RunCursor>,
    /// The largest number of rows.
    pub most: usize,
    /// About how many events are read, at most; if it is set, rows whose standing is looked at have a maximum, too.
    pub scan: Option<usize>,
    /// Makes of an event's line of JSON what the person sees of it, such as without secrets; `None` if people see all of it.
    pub shown: Option<&'a (dyn Fn(&str) -> String + Send + Sync)>,
}

impl fmt::Debug for RunSearch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunSearch").field("query", self.query).finish_non_exhaustive()
    }
}

impl<'a> RunSearch<'a> {
    /// Creates a search for up to so many rows, which reads as many events as it takes.
    #[must_use]
    pub const fn new(query: &'a RunQuery, most: usize) -> Self {
        Self { query, after: None, most, scan: None, shown: None }
    }
}

/// A part of a list of runs.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct FoundRuns {
    /// The rows, latest start first.
    pub rows: Vec<RunSummary>,
    /// For each of the rows, the first event with what is looked for; empty if the search looks into no events.
    pub hits: Vec<EventMatch>,
    /// Where the list continues, if [`RunSearch::scan`] has ended the search before the list did.
    pub capped: Option<RunCursor>,
}

/// Lists the runs that match a search, latest start first.
///
/// # Errors
///
/// Only errors of the store itself.
pub async fn find_runs(store: &dyn EventStore, search: &RunSearch<'_>) -> Result<FoundRuns, StoreError> {
    let mut filter = conditions(store, search.query).await?;
    filter.after.clone_from(&search.after);
    let needles = &search.query.needles;
    let Some((first, others)) = needles.split_first() else {
        return standing(store, search, filter).await;
    };
    if let [Needle::Text(text)] = &**needles
        && let Some(mut by_id) = by_id(store, text, &filter).await?
    {
        by_id.after = filter.after;
        return standing(store, search, by_id).await;
    }
    let is_certain = |needle: &Needle| needle.is_plain() && search.shown.is_none();
    let (standings, mut asked) = (&search.query.standings, Standings::new(store));
    let is_plain = is_certain(first);
    let limit = if is_plain && others.is_empty() && standings.is_empty() { search.most } else { MAX_COMPARED };
    let mut wanted = EventSearch::new(first.text(), limit).within(filter);
    (wanted.scan, wanted.once) = (search.scan, is_plain);
    let mut found = store.search(&wanted).await?;
    // Events that are no matches may have used up the search, which then ends with the run of the last one.
    if !wanted.once
        && found.found.len() == limit
        && let Some(last) = found.found.last()
        && let Ok(row) = store.run(&last.run).await
    {
        found.capped = Some(row.cursor());
    }
    let is_in = |needle: &Needle, line: &str| match search.shown {
        Some(shown) => needle.is_in(&shown(line)),
        None => needle.is_in(line),
    };
    let (mut rows, mut hits) = (Vec::new(), Vec::new());
    let mut passed = None;
    for hit in &found.found {
        let EventMatch { run, line, .. } = hit;
        if rows.len() == search.most {
            break;
        }
        if passed.as_ref() == Some(run) || !is_in(first, line) {
            continue;
        }
        passed = Some(run.clone());
        let mut has_all = true;
        for other in others {
            let within = RunFilter::builder().prefix(run.as_str()).build();
            let mut wanted = EventSearch::new(other.text(), MAX_COMPARED).within(within);
            wanted.once = is_certain(other);
            let hits = store.search(&wanted).await?.found;
            has_all = hits.iter().any(|hit| hit.run == *run && is_in(other, &hit.line));
            if !has_all {
                break;
            }
        }
        match store.run(run).await {
            Ok(row) if has_all && (standings.is_empty() || asked.is_one_of(standings, &row).await?) => {
                rows.push(row);
                hits.push(hit.clone());
            }
            // It was pruned meanwhile.
            Ok(_) | Err(StoreError::NoSuchRun { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(FoundRuns { rows, hits, capped: found.capped })
}

/// Lists the runs that pass a filter and stand as a search wants it. Most of these words are about runs that are open, which are few.
async fn standing(
    store: &dyn EventStore,
    search: &RunSearch<'_>,
    mut filter: RunFilter,
) -> Result<FoundRuns, StoreError> {
    let (standings, mut found) = (&search.query.standings, FoundRuns::default());
    if standings.is_empty() {
        filter.limit = Some(search.most);
        found.rows = store.runs(&filter).await?;
        return Ok(found);
    }
    let mut asked = Standings::new(store);
    filter.limit = Some(PAGE);
    let mut read = 0;
    loop {
        let page = store.runs(&filter).await?;
        let is_last = page.len() < PAGE;
        for row in page {
            filter.after = Some(row.cursor());
            if asked.is_one_of(standings, &row).await? {
                found.rows.push(row);
            }
            if found.rows.len() == search.most {
                return Ok(found);
            }
        }
        read += PAGE;
        if is_last {
            return Ok(found);
        }
        if search.scan.is_some() && read >= MAX_ROWS {
            found.capped = filter.after;
            return Ok(found);
        }
    }
}

/// Counts the runs that match the conditions of a search by their status. It reads no events and no rows, so it ignores what is looked for
/// in events, and words such as `stuck`: [`RunQuery::is_counted_by_store`].
///
/// # Errors
///
/// Only errors of the store itself.
pub async fn count_runs(store: &dyn EventStore, query: &RunQuery) -> Result<RunCounts, StoreError> {
    store.counts(&conditions(store, query).await?).await
}

/// Adds up the tokens and the costs of the runs that match the conditions of a search. It ignores what [`count_runs`] ignores.
///
/// # Errors
///
/// Only errors of the store itself.
pub async fn sum_runs(store: &dyn EventStore, query: &RunQuery) -> Result<RunSums, StoreError> {
    store.sums(&conditions(store, query).await?).await
}

/// Returns the conditions of a search, with the title of the brain as runs have it.
async fn conditions(store: &dyn EventStore, query: &RunQuery) -> Result<RunFilter, StoreError> {
    let mut filter = query.filter().clone();
    if let Some(written) = &filter.brain {
        filter.brain = Some(title(store, written).await?);
    }
    Ok(filter)
}

/// Returns the filter for the runs of which a text is the id, its beginning or its end; `None` without such a run.
async fn by_id(store: &dyn EventStore, text: &str, filter: &RunFilter) -> Result<Option<RunFilter>, StoreError> {
    let mut ends = filter.clone();
    (ends.after, ends.limit) = (None, Some(1));
    let mut prefix = ends.clone();
    prefix.prefix = Some(text.to_owned());
    if store.runs(&prefix).await?.first().is_some_and(|row| text.len() >= BEGINNING || row.run.as_str() == text) {
        return Ok(Some(prefix));
    }
    // A number or a word is rather a text than the end of an id.
    let is_end = text.len() >= END
        && text.bytes().all(|byte| byte.is_ascii_hexdigit())
        && text.bytes().any(|byte| byte.is_ascii_digit())
        && text.bytes().any(|byte| byte.is_ascii_alphabetic());
    ends.ends = vec![text.to_ascii_lowercase()];
    Ok(if is_end && !store.runs(&ends).await?.is_empty() { Some(ends) } else { None })
}

/// Returns the title of the brain that a person has typed, regardless of case and punctuation, or by its beginning; the text itself
/// if no run has such a brain.
async fn title(store: &dyn EventStore, written: &str) -> Result<String, StoreError> {
    let exact = RunFilter::builder().brain(written).limit(1).build();
    if !store.runs(&exact).await?.is_empty() {
        return Ok(written.to_owned());
    }
    let all = FigureFilter::builder()
        .from(Timestamp(0))
        .bucket(std::time::Duration::from_micros(u64::try_from(i64::MAX).unwrap_or(u64::MAX)))
        .buckets(1)
        .now(Timestamp(0))
        .build();
    let figures = store.figures(&all).await?;
    let ended = figures.ended.iter().map(|group| &group.brain);
    let titles: std::collections::BTreeSet<_> = ended.chain(figures.open.iter().map(|group| &group.brain)).collect();
    let wanted = normal(written);
    let equal = titles.iter().find(|title| normal(title) == wanted);
    let mut longer = titles.iter().filter(|title| normal(title).starts_with(&wanted));
    let found = match (equal, longer.next(), longer.next()) {
        (Some(title), ..) | (None, Some(title), None) => title.to_string(),
        _ => written.to_owned(),
    };
    Ok(found)
}

fn normal(title: &str) -> String {
    title.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}
