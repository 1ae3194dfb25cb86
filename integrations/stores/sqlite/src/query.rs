//! Queries for logs, run rows and pending items, and the search.

use std::sync::Arc;

use positronic_core::record::{Event, RunId, RunSummary, Seq, SignalId, Status, Timestamp};
use positronic_core::store::{
    EventMatch, EventMatches, EventSearch, RunCounts, RunCursor, RunFilter, SavedPrompts, Snapshot,
};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _, Row, params_from_iter};

use super::columns::{EVENTS, column, decode, event_id, limit, no_such, seq};
use super::failure::DbError;

/// The runs that are open, as a condition: an index has these.
pub(super) const OPEN: &str = "status IN ('running', 'waiting', 'paused')";

/// Reads events of a run.
pub(super) fn read(db: &Connection, run: &RunId, from: Seq, most: usize) -> Result<Vec<Arc<Event>>, DbError> {
    let known: Option<(i64, i64)> = db
        .prepare_cached("SELECT key, next FROM runs WHERE run = ?1")?
        .query_row([run.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let (key, end_of_log) = known.ok_or_else(|| no_such(run))?;
    // Numbers have no gaps, so no LIMIT is needed; with one, SQLite would prepare the statement each time.
    let sql = "SELECT line FROM events WHERE id >= ?1 AND id < ?2 ORDER BY id";
    let mut statement = db.prepare_cached(sql)?;
    let start = column(from.0).min(EVENTS);
    let end = start.saturating_add(limit(most)).min(EVENTS);
    let mut rows = statement.query([event_id(key, start), event_id(key, end)])?;
    let mut events = Vec::new();
    let mut next = from;
    while let Some(row) = rows.next()? {
        let event = Event::from_json(text(row, 0)?);
        let event = event.map_err(|error| DbError::unreadable(&format!("event {next} of the run `{run}`"), error))?;
        if event.seq != next {
            let what = format!("event {next} of the run `{run}`");
            return Err(DbError::unreadable(&what, format!("found event {} instead", event.seq)));
        }
        next = next.next();
        events.push(Arc::new(event));
    }
    // An append is atomic, so a shorter log has lost events, and a reader that waits for them would wait forever.
    if events.len() < most && next < seq(end_of_log) {
        let what = format!("the log of the run `{run}`");
        let last =
            |next: Seq| next.0.checked_sub(1).map_or_else(|| "no event".to_owned(), |last| format!("event {last}"));
        let reason = format!("it ends at {}, but its row says {}; it is damaged", last(next), last(seq(end_of_log)));
        return Err(DbError::unreadable(&what, reason));
    }
    Ok(events)
}

/// Returns the summary of a run.
pub(super) fn run(db: &Connection, run: &RunId) -> Result<RunSummary, DbError> {
    let mut statement = db.prepare_cached("SELECT summary FROM runs WHERE run = ?1")?;
    let summary: Option<String> = statement.query_row([run.as_str()], |row| row.get(0)).optional()?;
    decode(&format!("the row about the run `{run}`"), &summary.ok_or_else(|| no_such(run))?)
}

/// Returns the event by which a run accepted a signal.
pub(super) fn accepted(db: &Connection, run: &RunId, signal: &SignalId) -> Result<Option<Seq>, DbError> {
    let sql = "SELECT signals.seq FROM runs LEFT JOIN signals ON signals.run = runs.key AND signals.signal = ?2
               WHERE runs.run = ?1";
    let mut statement = db.prepare_cached(sql)?;
    let found = statement.query_row([run.as_str(), signal.as_str()], |row| row.get::<_, Option<i64>>(0)).optional()?;
    Ok(found.ok_or_else(|| no_such(run))?.map(seq))
}

/// Lists run summaries. It skips those that it cannot decode, so that the others stay visible.
pub(super) fn runs(db: &Connection, filter: &RunFilter) -> Result<Vec<RunSummary>, DbError> {
    let mut filter = filter.clone();
    let wanted = filter.limit.unwrap_or(usize::MAX);
    let mut rows = Vec::new();
    loop {
        filter.limit = filter.limit.map(|_| wanted - rows.len());
        let mut found = 0;
        select_runs(&filter).each(db, |row| {
            found += 1;
            filter.after = Some(RunCursor { started: Timestamp(row.get(2)?), run: RunId::from(text(row, 1)?) });
            rows.extend(serde_json::from_str::<RunSummary>(text(row, 0)?).ok());
            Ok(())
        })?;
        // A page with unreadable rows is filled up.
        if rows.len() >= wanted || filter.limit.is_none_or(|limit| found < limit) {
            return Ok(rows);
        }
    }
}

/// Counts runs by their status. Those that are over are counted by their small rows if these tell enough.
pub(super) fn counts(db: &Connection, filter: &RunFilter) -> Result<RunCounts, DbError> {
    let mut counts = RunCounts::default();
    let selects = if is_narrow(filter) {
        let mut open = Select::new("SELECT status, count(*) FROM runs");
        open.and(OPEN, []);
        vec![narrowed(open, filter), narrowed(Select::new("SELECT status, count(*) FROM ended_runs"), filter)]
    } else {
        vec![conditions("SELECT status, count(*) FROM runs", filter)]
    };
    for mut select in selects {
        select.group("status");
        select.each(db, |row| {
            let word = text(row, 0)?;
            if let Some(status) = Status::ALL.into_iter().find(|status| status.as_str() == word) {
                counts.add(status, u64::try_from(row.get::<_, i64>(1)?).unwrap_or_default());
            }
            Ok(())
        })?;
    }
    Ok(counts)
}

/// Returns whether a filter has at most conditions on the columns that the small rows of runs that are over have, too.
pub(super) fn is_narrow(filter: &RunFilter) -> bool {
    let mut other = filter.clone();
    other.status.clear();
    (other.brain, other.user, other.after, other.limit) = (None, None, None, None);
    other == RunFilter::default()
}

/// Narrows a query to statuses, a brain and a user.
pub(super) fn narrowed(mut select: Select, filter: &RunFilter) -> Select {
    if !filter.status.is_empty() {
        let marks = vec!["?"; filter.status.len()].join(", ");
        let words = filter.status.iter().map(|status| Value::from(status.as_str().to_owned()));
        select.and(&format!("status IN ({marks})"), words);
    }
    if let Some(brain) = &filter.brain {
        select.and("brain = ?", [brain.clone().into()]);
    }
    if let Some(user) = &filter.user {
        select.and("user = ?", [user.clone().into()]);
    }
    select
}

/// Lists the runs whose summary cannot be decoded, with the error.
pub(super) fn unreadable(db: &Connection, filter: &RunFilter) -> Result<Vec<(RunId, DbError)>, DbError> {
    let mut unreadable = Vec::new();
    select_runs(filter).each(db, |row| {
        let run = RunId::from(text(row, 1)?);
        let read = decode::<RunSummary>(&format!("the row about the run `{run}`"), text(row, 0)?);
        unreadable.extend(read.err().map(|db_error| (run, db_error)));
        Ok(())
    })?;
    Ok(unreadable)
}

fn select_runs(filter: &RunFilter) -> Select {
    select_columns("summary, run, started", filter)
}

fn select_columns(columns: &str, filter: &RunFilter) -> Select {
    let mut select = conditions(&format!("SELECT {columns} FROM runs"), filter);
    if let Some(RunCursor { started, run }) = &filter.after {
        select.and("(started, run) < (?, ?)", [started.0.into(), run.as_str().to_owned().into()]);
    }
    select.order("started DESC, run DESC", filter.limit);
    select
}

/// Adds the conditions of a filter to a statement, without its place and limit.
pub(super) fn conditions(sql: &str, filter: &RunFilter) -> Select {
    let mut select = narrowed(Select::new(sql), filter);
    if let Some(prefix) = &filter.prefix {
        select.and("run >= ?", [prefix.clone().into()]);
        select.and("run <= ?", [format!("{prefix}{}", char::MAX).into()]);
    }
    let mut ends = filter.ends.clone();
    ends.sort_by_key(|end| end.chars().count());
    if !ends.is_empty() {
        // Ends of one length are found with one comparison.
        let groups = ends.chunk_by(|one, next| one.chars().count() == next.chars().count());
        let one_of = groups.map(|group| {
            let length = group.first().map_or(0, |end| end.chars().count());
            format!("substr(run, -{length}) IN ({})", vec!["?"; group.len()].join(", "))
        });
        let condition = format!("({})", one_of.collect::<Vec<_>>().join(" OR "));
        select.and(&condition, ends.iter().map(|end| Value::from(end.clone())));
    }
    if let Some(tool) = &filter.tool {
        let has_tool = "json_valid(summary) AND EXISTS (SELECT 1 FROM json_each(summary, '$.tools') WHERE value = ?)";
        select.and(has_tool, [tool.clone().into()]);
    }
    if let Some(model) = &filter.model {
        // Few rows have the name, and finding a text is faster than reading JSON.
        let written = serde_json::Value::from(model.as_str()).to_string();
        select.and("instr(summary, ?)", [written.trim_matches('"').to_owned().into()]);
        let name = "json_extract(value, '$.model')";
        let has_model = format!(
            "json_valid(summary) AND EXISTS (SELECT 1 FROM json_each(summary, '$.models')
                WHERE ? IN ({name}, substr({name}, instr({name}, '/') + 1)))"
        );
        select.and(&has_model, [model.clone().into()]);
    }
    let cost = "coalesce(CASE WHEN json_valid(summary) THEN json_extract(summary, '$.cost.nanos') END, 0)";
    if let Some(least) = filter.min_cost {
        select.and(&format!("{cost} >= ?"), [column(least.nanos()).into()]);
    }
    if let Some(most) = filter.max_cost {
        select.and(&format!("{cost} <= ?"), [column(most.nanos()).into()]);
    }
    if let Some(tag) = &filter.tag {
        let has_tag = "EXISTS (SELECT 1 FROM json_each(summary, '$.tags') WHERE value = ?)";
        select.and(has_tag, [tag.clone().into()]);
    }
    if let Some(conversation) = &filter.conversation {
        select.and("conversation = ?", [conversation.clone().into()]);
    }
    if filter.conversations {
        select.and("converses", []);
    }
    if filter.person {
        // Few of many runs wait, so these are found first.
        select.and(&format!("key IN (SELECT id / {EVENTS} FROM pending WHERE person)"), []);
    }
    if let Some(since) = filter.since {
        select.and("at >= ?", [since.0.into()]);
    }
    if let Some(before) = filter.before {
        select.and("at < ?", [before.0.into()]);
    }
    if let Some(due) = filter.due {
        // Few of many are due, so an index finds these first; then they are sorted.
        select.and("key IN (SELECT key FROM runs WHERE wake <= ?)", [due.0.into()]);
    }
    select
}

/// Returns a text column without copying it.
pub(super) fn text<'a>(row: &'a Row<'_>, column: usize) -> Result<&'a str, DbError> {
    Ok(row.get_ref(column)?.as_str().map_err(rusqlite::Error::from)?)
}

/// Finds events by their text with a full scan: an index of all words would take as much space as the events.
pub(super) fn search(db: &Connection, search: &EventSearch) -> Result<EventMatches, DbError> {
    let wanted = search.text.to_lowercase();
    let sql = "SELECT id, line FROM events WHERE id >= ?1 AND id < ?2 ORDER BY id";
    let mut events = db.prepare_cached(sql)?;
    let (mut found, mut scanned, mut last, mut is_capped) = (Vec::new(), 0, None, false);
    select_columns("key, run, started, next", &search.runs).until(db, |row| {
        let key: i64 = row.get(0)?;
        scanned += seq(row.get(3)?).index();
        if last.is_some() && search.scan.is_some_and(|most| scanned > most) {
            is_capped = true;
            return Ok(false);
        }
        let place = RunCursor { started: Timestamp(row.get(2)?), run: RunId::from(text(row, 1)?) };
        let mut lines = events.query([event_id(key, 0), event_id(key, EVENTS)])?;
        while found.len() < search.limit
            && let Some(event) = lines.next()?
        {
            let line = text(event, 1)?;
            if contains(line, &wanted) {
                let number = seq(event.get::<_, i64>(0)? % EVENTS);
                found.push(EventMatch::new(place.run.clone(), number, line.to_owned()));
                if search.once {
                    break;
                }
            }
        }
        last = Some(place);
        Ok(found.len() < search.limit)
    })?;
    Ok(EventMatches::new(found, last.filter(|_| is_capped)))
}

/// Returns whether a line contains a lower-case text, ignoring the line's case.
fn contains(line: &str, text: &str) -> bool {
    if !line.is_ascii() {
        return line.to_lowercase().contains(text);
    }
    let Some((first, rest)) = text.as_bytes().split_first() else { return true };
    let mut left = line.as_bytes();
    while let Some(at) = left.iter().position(|byte| byte.to_ascii_lowercase() == *first) {
        left = left.get(at + 1..).unwrap_or_default();
        if left.get(..rest.len()).is_some_and(|here| here.eq_ignore_ascii_case(rest)) {
            return true;
        }
    }
    false
}

/// Returns the snapshot of a run.
pub(super) fn snapshot(db: &Connection, run: &RunId) -> Result<Option<Snapshot>, DbError> {
    let sql = "SELECT s.next, s.version, s.content FROM runs r JOIN snapshots s ON s.run = r.key WHERE r.run = ?1";
    let mut statement = db.prepare_cached(sql)?;
    let snapshot = statement.query_row([run.as_str()], |row| {
        Ok(Snapshot { next: seq(row.get(0)?), version: row.get(1)?, content: row.get(2)? })
    });
    Ok(snapshot.optional()?)
}

/// Returns the saved parts of a run's prompts.
pub(super) fn saved_prompts(db: &Connection, run: &RunId) -> Result<Vec<SavedPrompts>, DbError> {
    let sql = "SELECT p.first, p.id, p.version, p.content FROM runs r CROSS JOIN saved_prompts p
               ON p.id >= r.key * 4294967296 AND p.id < (r.key + 1) * 4294967296
               WHERE r.run = ?1 ORDER BY p.id";
    let mut statement = db.prepare_cached(sql)?;
    let parts = statement.query_map([run.as_str()], |row| {
        let next = seq(row.get::<_, i64>(1)? % EVENTS);
        Ok(SavedPrompts { from: seq(row.get(0)?), next, version: row.get(2)?, content: row.get(3)? })
    })?;
    Ok(parts.collect::<Result<_, _>>()?)
}

/// A query that is built from a filter.
pub(super) struct Select {
    sql: String,
    values: Vec<Value>,
}

impl Select {
    /// Creates a query from a statement without conditions.
    pub(super) fn new(sql: &str) -> Self {
        Self { sql: format!("{sql} WHERE true"), values: Vec::new() }
    }

    /// Adds a condition and its parameters.
    pub(super) fn and(&mut self, condition: &str, values: impl IntoIterator<Item = Value>) {
        self.sql.push_str(" AND ");
        self.sql.push_str(condition);
        self.values.extend(values);
    }

    /// Adds the condition that a column has one of the values that another query finds.
    pub(super) fn among(&mut self, column: &str, other: Self) {
        self.and(&format!("{column} IN ({})", other.sql), other.values);
    }

    /// Makes groups of the found rows.
    pub(super) fn group(&mut self, columns: &str) {
        self.sql.push_str(" GROUP BY ");
        self.sql.push_str(columns);
    }

    /// Sets the order and the limit.
    pub(super) fn order(&mut self, order: &str, most: Option<usize>) {
        self.sql.push_str(" ORDER BY ");
        self.sql.push_str(order);
        if let Some(most) = most {
            self.sql.push_str(" LIMIT ?");
            self.values.push(limit(most).into());
        }
    }

    /// Calls `read` for each found row.
    pub(super) fn each(
        self,
        db: &Connection,
        mut read: impl FnMut(&Row<'_>) -> Result<(), DbError>,
    ) -> Result<(), DbError> {
        self.until(db, |row| read(row).map(|()| true))
    }

    /// Calls `read` for each found row until it returns `false`.
    pub(super) fn until(
        self,
        db: &Connection,
        mut read: impl FnMut(&Row<'_>) -> Result<bool, DbError>,
    ) -> Result<(), DbError> {
        let mut statement = db.prepare_cached(&self.sql)?;
        let mut rows = statement.query(params_from_iter(self.values))?;
        while let Some(row) = rows.next()? {
            if !read(row)? {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::{contains, params_from_iter, select_runs};
    use crate::failure::StoreFile;
    use crate::schema;
    use positronic_core::record::Timestamp;
    use positronic_core::store::RunFilter;

    /// The scheduler polls this every second, in stores with many waiting runs.
    #[test]
    fn due_runs_are_found_by_index() {
        let mut db = Connection::open_in_memory().unwrap();
        schema::migrate(&mut db, &StoreFile { path: "runs.db".into(), busy_timeout: std::time::Duration::ZERO })
            .unwrap();
        let select = select_runs(&RunFilter::builder().due(Timestamp(9)).build());

        let mut query_plan = db.prepare(&format!("EXPLAIN QUERY PLAN {}", select.sql)).unwrap();
        let query_plan = query_plan.query_map(params_from_iter(select.values), |row| row.get::<_, String>(3)).unwrap();
        let query_plan: Vec<_> = query_plan.map(Result::unwrap).collect();

        for step in ["runs_by_wake (wake<?)", "INTEGER PRIMARY KEY (rowid=?)"] {
            assert!(query_plan.iter().any(|line| line.ends_with(step)), "{step}: {query_plan:#?}");
        }
    }

    #[test]
    fn search_ignores_case() {
        for (line, text, found) in [
            ("", "", true),
            ("abc", "", true),
            ("The Invoice", "invoice", true),
            ("aab", "ab", true),
            ("ab", "abc", false),
            ("GRÖSSE", "größe", false),
            ("GRÖßE", "größe", true),
        ] {
            assert_eq!(contains(line, text), found, "{text:?} in {line:?}");
        }
    }
}
