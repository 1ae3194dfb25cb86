//! The search for events by their text.
//!
//! Without an index the server reads the events of the newest runs first, until it has found enough. With the index of
//! trigrams it reads only candidates.

use std::time::Duration;

use positronic_core::record::{RunId, Timestamp};
use positronic_core::store::{EventMatch, EventMatches, EventSearch, RunCursor, RunFilter};
use sqlx_core::executor::Executor as _;
use sqlx_postgres::PgConnection;

use crate::append::owned;
use crate::columns::{limit, seq};
use crate::connections::{Select, get};
use crate::failure::DbError;
use crate::query::conditions;
use crate::text::value;

/// How long a search may take.
pub(crate) const LIMIT: Duration = Duration::from_mins(10);
/// How many candidates one statement returns at most.
const PAGE: usize = 256;

/// Finds events whose line contains a text, ignoring case.
pub(crate) async fn search(db: &mut PgConnection, schema: &str, search: &EventSearch) -> Result<EventMatches, DbError> {
    let wanted = search.text.to_lowercase();
    // JSON has an escape for this character, so that no line contains it.
    if wanted.contains('\0') {
        return Ok(EventMatches::default());
    }
    db.execute("BEGIN READ ONLY; SET LOCAL statement_timeout = '10min'").await?;
    let capped = match search.scan {
        Some(scan) => last_searched(db, schema, &search.runs, scan).await?,
        None => None,
    };
    let pattern = pattern(&wanted);
    let mut found: Vec<EventMatch> = Vec::new();
    let mut after: Option<(i64, String, i64)> = None;
    while found.len() < search.limit {
        let page = (search.limit - found.len()).min(PAGE);
        let mut query = Select::new(format!(
            "SELECT r.run, e.seq, e.line, r.started FROM {schema}.runs r JOIN {schema}.events e ON e.key = r.key
             WHERE e.line ILIKE "
        ));
        query.bind(pattern.clone());
        conditions(&mut query, schema, &search.runs);
        if let Some(before) = &search.runs.after {
            query.push(" AND (r.started, r.run) < (").bind(before.started.0);
            query.push(", ").bind(owned(before.run.as_str())).push(")");
        }
        if let Some((started, run)) = &capped {
            query.push(" AND (r.started, r.run) >= (").bind(*started).push(", ").bind(run.clone()).push(")");
        }
        if let Some((started, run, seq)) = after.take() {
            query.push(" AND r.started <= ").bind(started).push(" AND ((r.started, r.run) < (").bind(started);
            query
                .push(", ")
                .bind(run.clone())
                .push(") OR r.run = ")
                .bind(run)
                .push(" AND e.seq > ")
                .bind(seq)
                .push(")");
        }
        query.push(" ORDER BY r.started DESC, r.run DESC, e.seq LIMIT ").bind(limit(page));
        let rows = query.statement().persistent(false).fetch_all(&mut *db).await?;
        let is_last = rows.len() < page;
        for row in rows {
            let (run, number, line): (String, i64, String) = (get(&row, 0)?, get(&row, 1)?, get(&row, 2)?);
            after = Some((get(&row, 3)?, run.clone(), number));
            // The server ignores the case of ASCII only.
            if wanted.is_ascii() || line.to_lowercase().contains(&wanted) {
                let run = RunId::from(value(run));
                if search.once && found.last().is_some_and(|last| last.run == run) {
                    continue;
                }
                found.push(EventMatch::new(run, seq(number), line));
            }
        }
        if search.once
            && let (Some((_, run, number)), Some(last)) = (&mut after, found.last())
            && owned(last.run.as_str()) == *run
        {
            // The rest of this run is not needed.
            *number = i64::MAX;
        }
        if is_last {
            break;
        }
    }
    db.execute("COMMIT").await?;
    let capped = capped.map(|(started, run)| RunCursor { started: Timestamp(started), run: RunId::from(value(run)) });
    Ok(EventMatches::new(found, capped))
}

/// Returns the last run that a search reads if it reads about `scan` events; `None` if that is all runs.
async fn last_searched(
    db: &mut PgConnection,
    schema: &str,
    runs: &RunFilter,
    scan: usize,
) -> Result<Option<(i64, String)>, DbError> {
    let mut query =
        Select::new("WITH sums AS (SELECT r.started, r.run, r.next, sum(r.next) OVER w AS total, greatest(".to_owned());
    query.bind(limit(scan)).push(format!(", first_value(r.next) OVER w) AS most FROM {schema}.runs r WHERE true"));
    conditions(&mut query, schema, runs);
    if let Some(before) = &runs.after {
        query.push(" AND (r.started, r.run) < (").bind(before.started.0);
        query.push(", ").bind(owned(before.run.as_str())).push(")");
    }
    query.push(
        " WINDOW w AS (ORDER BY r.started DESC, r.run DESC))
         SELECT started, run, total <= most FROM sums WHERE total - next <= most ORDER BY total DESC LIMIT 2",
    );
    let rows = query.statement().persistent(false).fetch_all(&mut *db).await?;
    match (rows.first(), rows.get(1)) {
        (Some(beyond), Some(last)) if !get::<bool>(beyond, 2)? => Ok(Some((get(last, 0)?, get(last, 1)?))),
        _ => Ok(None),
    }
}

/// Returns the pattern for candidates: other letters than those of ASCII match anything.
fn pattern(wanted: &str) -> String {
    let mut pattern = String::from("%");
    for char in wanted.chars() {
        match char {
            '%' | '_' | '\\' => pattern.extend(['\\', char]),
            char if char.is_ascii() => pattern.push(char),
            _ if pattern.ends_with('%') && !pattern.ends_with("\\%") => {}
            _ => pattern.push('%'),
        }
    }
    pattern.push('%');
    pattern
}

#[cfg(test)]
mod tests {
    use super::pattern;

    #[test]
    fn pattern_matches_special_characters_as_they_are() {
        for (text, expected) in [
            ("invoice", "%invoice%"),
            ("", "%%"),
            ("100%_", r"%100\%\_%"),
            (r"a\b", r"%a\\b%"),
            ("größer", "%gr%er%"),
            ("%ö", r"%\%%%"),
        ] {
            assert_eq!(pattern(text), expected);
        }
    }
}
