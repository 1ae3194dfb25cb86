//! The search for events by their text.
//!
//! Without an index the server reads the events of the newest runs first, until it has found enough. With the index of
//! trigrams it reads only candidates.

use std::time::Duration;

use positronic_core::record::RunId;
use positronic_core::store::EventMatch;
use sqlx_core::executor::Executor as _;
use sqlx_postgres::PgConnection;

use crate::connections::{Select, get};
use crate::failure::DbError;
use crate::rows::{limit, seq};
use crate::text::value;

/// How long a search may take.
pub(crate) const LIMIT: Duration = Duration::from_mins(10);
/// How many candidates one statement returns at most.
const PAGE: usize = 256;

/// Finds up to `most` events whose line contains a text, ignoring case.
pub(crate) async fn search(
    db: &mut PgConnection,
    schema: &str,
    wanted: &str,
    most: usize,
) -> Result<Vec<EventMatch>, DbError> {
    let wanted = wanted.to_lowercase();
    // JSON has an escape for this character, so that no line contains it.
    if wanted.contains('\0') {
        return Ok(Vec::new());
    }
    let pattern = pattern(&wanted);
    let mut found = Vec::new();
    let mut after: Option<(i64, String, i64)> = None;
    db.execute("BEGIN READ ONLY; SET LOCAL statement_timeout = '10min'").await?;
    while found.len() < most {
        let page = (most - found.len()).min(PAGE);
        let mut query = Select::new(format!(
            "SELECT r.run, e.seq, e.line, r.started FROM {schema}.runs r JOIN {schema}.events e ON e.key = r.key
             WHERE e.line ILIKE "
        ));
        query.bind(pattern.clone());
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
        let rows = query.statement().fetch_all(&mut *db).await?;
        let is_last = rows.len() < page;
        for row in rows {
            let (run, number, line): (String, i64, String) = (get(&row, 0)?, get(&row, 1)?, get(&row, 2)?);
            after = Some((get(&row, 3)?, run.clone(), number));
            // The server ignores the case of ASCII only.
            if wanted.is_ascii() || line.to_lowercase().contains(&wanted) {
                found.push(EventMatch::new(RunId::from(value(run)), seq(number), line));
            }
        }
        if is_last {
            break;
        }
    }
    db.execute("COMMIT").await?;
    Ok(found)
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
