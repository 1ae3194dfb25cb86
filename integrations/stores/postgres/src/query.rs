//! Queries for logs, rows of runs and pending items.

use std::sync::Arc;

use positronic_core::record::{Event, RunId, RunSummary, Seq, WaitSpec};
use positronic_core::store::{PendingFilter, PendingItem, RunFilter};
use sqlx_postgres::PgRow;

use crate::append::owned;
use crate::columns::{decode, limit, no_such, number, seq};
use crate::connections::{Select, Statement, get, statement};
use crate::failure::DbError;
use crate::text::value;

/// Returns the statement that reads events of a run, with the number of its next event in each row.
pub(crate) fn read(schema: &str, run: &RunId, from: Seq, most: usize) -> Statement {
    let sql = format!(
        "SELECT r.next, e.line FROM {schema}.runs r
         LEFT JOIN {schema}.events e ON e.key = r.key AND e.seq >= $2 AND e.seq < $3
         WHERE r.run = $1 ORDER BY e.seq"
    );
    let start = number(from.0);
    statement(sql).bind(owned(run.as_str())).bind(start).bind(start.saturating_add(limit(most)))
}

/// Decodes events of a run, and checks that none is missing.
pub(crate) fn events(rows: &[PgRow], run: &RunId, from: Seq, most: usize) -> Result<Vec<Arc<Event>>, DbError> {
    let first = rows.first().ok_or_else(|| no_such(run))?;
    let end_of_log = seq(get(first, 0)?);
    let mut next = from;
    let mut events = Vec::with_capacity(rows.len());
    for row in rows {
        let Some(line) = get::<Option<&str>>(row, 1)? else { break };
        let what = || format!("event {next} of the run `{run}`");
        let event = Event::from_json(line).map_err(|error| DbError::unreadable(&what(), error))?;
        if event.seq != next {
            return Err(DbError::unreadable(&what(), format!("found event {} instead", event.seq)));
        }
        next = next.next();
        events.push(Arc::new(event));
    }
    // An append is atomic, so a shorter log has lost events, and a reader that waits for them would wait forever.
    if events.len() < most && next < end_of_log {
        let reason = format!("it ends before event {next}, but its row says that event {end_of_log} is next");
        return Err(DbError::unreadable(&format!("the log of the run `{run}`"), reason));
    }
    Ok(events)
}

/// A place in the list of runs, as columns.
pub(crate) type RunPlace = (i64, String);

/// Returns the query that lists runs: each with its summary, its id and its start.
pub(crate) fn runs(schema: &str, filter: &RunFilter, after: Option<&RunPlace>, most: Option<usize>) -> Statement {
    let mut query = Select::new(format!("SELECT r.summary, r.run, r.started FROM {schema}.runs r WHERE true"));
    conditions(&mut query, schema, filter);
    if let Some((started, run)) = after {
        query.push(" AND (r.started, r.run) < (").bind(*started).push(", ").bind(run.clone()).push(")");
    }
    query.push(" ORDER BY r.started DESC, r.run DESC");
    if let Some(most) = most {
        query.push(" LIMIT ").bind(limit(most));
    }
    query.statement()
}

/// Returns the query that counts runs: each status with its number.
pub(crate) fn counts(schema: &str, filter: &RunFilter) -> Statement {
    let mut query = Select::new(format!("SELECT r.status, count(*) FROM {schema}.runs r WHERE true"));
    conditions(&mut query, schema, filter);
    query.push(" GROUP BY r.status");
    query.statement()
}

/// Adds the conditions of a filter on the table `r` of runs, without its place and limit.
pub(crate) fn conditions(query: &mut Select, schema: &str, filter: &RunFilter) {
    if let Some(prefix) = &filter.prefix {
        let prefix = owned(prefix);
        query.push(" AND r.run <= ").bind(format!("{prefix}{}", char::MAX));
        query.push(" AND r.run >= ").bind(prefix);
    }
    if !filter.status.is_empty() {
        let words: Vec<_> = filter.status.iter().map(|status| status.as_str()).collect();
        query.push(" AND r.status = ANY (").bind(words).push(")");
    }
    if let Some(brain) = &filter.brain {
        query.push(" AND r.brain = ").bind(owned(brain));
    }
    if let Some(user) = &filter.user {
        query.push(" AND r.user_name = ").bind(owned(user));
    }
    if !filter.ends.is_empty() {
        query.push(" AND (false");
        for end in &filter.ends {
            let end = owned(end);
            query.push(format!(" OR right(r.run, {}) = ", end.chars().count())).bind(end);
        }
        query.push(")");
    }
    // PostgreSQL reads no JSON with an escaped U+0000, which no tag and no tool has.
    let document = r"replace(r.summary, '\u0000', '\u0020')::json";
    if let Some(tool) = &filter.tool {
        query.push(format!(
            " AND EXISTS (SELECT FROM json_array_elements_text({document} -> 'tools') tool WHERE tool = "
        ));
        query.bind(owned(tool)).push(")");
    }
    if let Some(model) = &filter.model {
        query.push(format!(" AND EXISTS (SELECT FROM json_array_elements({document} -> 'models') used WHERE "));
        let name = "used ->> 'model'";
        query.bind(owned(model)).push(format!(" IN ({name}, substr({name}, strpos({name}, '/') + 1)))"));
    }
    let cost = format!("coalesce(({document} -> 'cost' ->> 'nanos')::bigint, 0)");
    if let Some(least) = filter.min_cost {
        query.push(format!(" AND {cost} >= ")).bind(number(least.nanos()));
    }
    if let Some(most) = filter.max_cost {
        query.push(format!(" AND {cost} <= ")).bind(number(most.nanos()));
    }
    if let Some(tag) = &filter.tag {
        query.push(format!(" AND EXISTS (SELECT FROM json_array_elements_text({document} -> 'tags') tag WHERE tag = "));
        query.bind(owned(tag)).push(")");
    }
    if let Some(conversation) = &filter.conversation {
        query.push(" AND r.conversation = ").bind(owned(conversation));
    }
    if filter.conversations {
        query.push(" AND (r.conversation IS NOT NULL OR r.after IS NOT NULL)");
    }
    if filter.person {
        query.push(format!(" AND r.key IN (SELECT key FROM {schema}.pending WHERE person)"));
    }
    if let Some(since) = filter.since {
        query.push(" AND r.at >= ").bind(since.0);
    }
    if let Some(before) = filter.before {
        query.push(" AND r.at < ").bind(before.0);
    }
    if let Some(due) = filter.due {
        query.push(" AND r.wake <= ").bind(due.0);
    }
}

/// Reads the place of a row in the list of runs.
pub(crate) fn run_place(row: &PgRow) -> Result<RunPlace, DbError> {
    Ok((get(row, 2)?, get(row, 1)?))
}

/// Decodes the summary of a run.
pub(crate) fn summary(run: &str, document: &str) -> Result<RunSummary, DbError> {
    decode(&format!("the row about the run `{run}`"), document)
}

/// A place in the list of pending items, as columns.
pub(crate) type PendingPlace = (i64, String, i64, String);

/// Returns the query that lists pending items.
pub(crate) fn pending(
    schema: &str,
    filter: &PendingFilter,
    after: Option<&PendingPlace>,
    most: Option<usize>,
) -> Statement {
    let sql = format!(
        "SELECT p.at, p.run, p.since, p.call, p.brain, p.content, r.summary
         FROM {schema}.pending p JOIN {schema}.runs r ON r.key = p.key WHERE true"
    );
    let mut query = Select::new(sql);
    if let Some(run) = &filter.run {
        let query = query.push(format!(" AND p.key = (SELECT key FROM {schema}.runs WHERE run = "));
        query.bind(owned(run.as_str())).push(")");
    }
    if let Some(user) = &filter.user {
        query.push(" AND r.user_name = ").bind(owned(user));
    }
    if filter.person {
        query.push(" AND p.person");
    }
    if let Some((webhook, identifier)) = &filter.webhook {
        let query = query.push(format!(" AND p.id IN (SELECT pending FROM {schema}.waits WHERE webhook = "));
        query.bind(owned(webhook)).push(" AND identifier = ").bind(owned(identifier)).push(")");
    }
    if filter.child {
        let query = query.push(format!(" AND p.id IN (SELECT pending FROM {schema}.waits WHERE webhook = "));
        query.bind(owned(WaitSpec::CHILD)).push(")");
    }
    if let Some((at, run, since, call)) = after {
        query.push(" AND (p.at, p.run, p.since, p.call) > (").bind(*at).push(", ").bind(run.clone());
        query.push(", ").bind(*since).push(", ").bind(call.clone()).push(")");
    }
    query.push(" ORDER BY p.at, p.run, p.since, p.call");
    if let Some(most) = most {
        query.push(" LIMIT ").bind(limit(most));
    }
    query.statement()
}

/// Reads the place of a row in the list of pending items.
pub(crate) fn pending_place(row: &PgRow) -> Result<PendingPlace, DbError> {
    Ok((get(row, 0)?, get(row, 1)?, get(row, 2)?, get(row, 3)?))
}

/// Decodes a pending item.
pub(crate) fn pending_item(row: &PgRow) -> Result<PendingItem, DbError> {
    Ok(PendingItem {
        run: RunId::from(value(get(row, 1)?)),
        brain: value(get(row, 4)?).into(),
        at: positronic_core::record::Timestamp(get(row, 0)?),
        pending: decode("a pending item", get(row, 5)?)?,
        // An item whose run has an unreadable row can still be answered.
        about: serde_json::from_str(get(row, 6)?).unwrap_or_default(),
    })
}
