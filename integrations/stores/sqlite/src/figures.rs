//! Figures of many runs.

use std::sync::Arc;

use positronic_core::record::{ClaimRefusal, Money, Status, Timestamp, Usage};
use positronic_core::store::{
    EndedFold, EndedRun, FigureFilter, Figures, ModelFold, ModelShare, OpenRuns, WaitingItems,
};
use rusqlite::types::Value;
use rusqlite::{Connection, Row};

use super::columns::EVENTS;
use super::failure::DbError;
use super::query::{OPEN, Select, text};

/// Adds up the figures of runs.
pub(super) fn figures(db: &Connection, filter: &FigureFilter) -> Result<Figures, DbError> {
    let mut figures = Figures::new(filter);
    add_ended(db, filter, &mut figures)?;
    add_open(db, filter, &mut figures)?;
    add_waiting(db, filter, &mut figures)?;
    Ok(figures)
}

/// Adds the runs that are over. They are read one by one: SQLite would sort them for groups, which takes longer.
fn add_ended(db: &Connection, filter: &FigureFilter, figures: &mut Figures) -> Result<(), DbError> {
    let share = |column: &str| match filter.model {
        Some(_) => format!("coalesce(m.{column}, e.{column})"),
        None => format!("e.{column}"),
    };
    let [input, output, cached, cost] = ["input", "output", "cached", "cost"].map(share);
    let mut select = Select::new(&format!(
        "SELECT e.started, e.ended, e.status, e.brain, e.active, {input}, {output}, {cached}, {cost}, e.currency, {}, e.cause, {}
         FROM ended_runs e {}",
        match filter.model {
            Some(_) => share("partial"),
            None => is_partial("e.partial", "e"),
        },
        share("model"),
        if filter.model.is_some() { "LEFT JOIN ended_models m ON e.model = '' AND m.run = e.run" } else { "" },
    ));
    select.and("e.ended >= ?", [filter.from.0.into()]);
    select.and("e.ended < ?", [filter.until().0.into()]);
    narrow(&mut select, filter, "e.brain", "e.user");
    if let Some(model) = &filter.model {
        select.and("coalesce(m.model, e.model) = ?", [model.clone().into()]);
    }
    let (mut fold, mut models, mut has_several) = (EndedFold::default(), ModelFold::default(), false);
    select.each(db, |row| {
        let run = EndedRun {
            started: Timestamp(row.get(0)?),
            ended: Timestamp(row.get(1)?),
            status: status(row, 2)?,
            brain: text(row, 3)?,
            active: row.get::<_, Option<i64>>(4)?.map(count),
            usage: usage(row, 5)?,
            cost: Money::of_nanos(count(row.get(8)?)),
            currency: optional(row, 9)?,
            is_partial: row.get(10)?,
            cause: optional(row, 11)?,
        };
        if let Some(bucket) = filter.bucket_of(run.started) {
            figures.add_started(bucket, 1);
        }
        let Some(bucket) = filter.bucket_of(run.ended) else { return Ok(()) };
        fold.add(bucket, &run);
        match optional(row, 12)? {
            Some("") => has_several = true,
            Some(model) => {
                let EndedRun { usage, cost, is_partial, .. } = run;
                models.add(bucket, run.currency, ModelShare { model, usage, cost, is_partial });
            }
            None => {}
        }
        Ok(())
    })?;
    if has_several {
        add_models(db, filter, &mut models)?;
    }
    (figures.ended, figures.models) = (fold.groups(), models.groups());
    Ok(())
}

/// Adds the models of the runs that have several.
fn add_models(db: &Connection, filter: &FigureFilter, models: &mut ModelFold) -> Result<(), DbError> {
    let mut select = Select::new(
        "SELECT m.model, e.currency, m.input, m.output, m.cached, m.cost, m.partial, e.ended
         FROM ended_runs e JOIN ended_models m ON m.run = e.run",
    );
    select.and("e.model = ''", []);
    select.and("e.ended >= ?", [filter.from.0.into()]);
    select.and("e.ended < ?", [filter.until().0.into()]);
    narrow(&mut select, filter, "e.brain", "e.user");
    select.each(db, |row| {
        let Some(bucket) = filter.bucket_of(Timestamp(row.get(7)?)) else { return Ok(()) };
        let (usage, cost) = (usage(row, 2)?, Money::of_nanos(count(row.get(5)?)));
        models.add(
            bucket,
            optional(row, 1)?,
            ModelShare { model: text(row, 0)?, usage, cost, is_partial: row.get(6)? },
        );
        Ok(())
    })
}

fn add_open(db: &Connection, filter: &FigureFilter, figures: &mut Figures) -> Result<(), DbError> {
    // A running run has the least time to wake, and so has a waiting one that may have unread webhooks.
    let mut select = Select::new(&format!(
        "SELECT status, brain, owner, refused, person, due, count(*), min(at) FROM (
            SELECT status, brain, user, owner, at, summary,
                CASE WHEN status = 'running' AND json_valid(summary) THEN json_extract(summary, '$.refused') END AS refused,
                key IN (SELECT id / {EVENTS} FROM pending WHERE person) AS person,
                CASE status WHEN 'running' THEN 1 WHEN 'waiting' THEN coalesce(
                    CASE WHEN wake = {least} AND json_valid(summary) THEN json_extract(summary, '$.wake') ELSE wake END <= {now},
                    0) ELSE 0 END AS due
            FROM runs WHERE {OPEN})",
        least = i64::MIN,
        now = filter.now.0,
    ));
    narrow(&mut select, filter, "brain", "user");
    answered_by(&mut select, filter, "summary");
    select.group("status, brain, owner, refused, person, due");
    select.each(db, |row| {
        figures.open.push(OpenRuns {
            status: status(row, 0)?,
            brain: text(row, 1)?.into(),
            owner: optional(row, 2)?.map(Arc::from),
            refused: optional(row, 3)?.and_then(refusal),
            person: row.get(4)?,
            due: row.get(5)?,
            runs: count(row.get(6)?),
            oldest: Timestamp(row.get(7)?),
        });
        Ok(())
    })?;
    let mut select = Select::new(&format!(
        "SELECT (started - {}) / {} AS bucket, count(*) FROM runs",
        filter.from.0,
        filter.micros()
    ));
    select.and(OPEN, []);
    // The open ones are few, so they are found first.
    select.and("+started >= ?", [filter.from.0.into()]);
    select.and("+started < ?", [filter.until().0.into()]);
    narrow(&mut select, filter, "brain", "user");
    answered_by(&mut select, filter, "summary");
    select.group("bucket");
    select.each(db, |row| {
        figures.add_started(row.get(0)?, count(row.get(1)?));
        Ok(())
    })
}

fn add_waiting(db: &Connection, filter: &FigureFilter, figures: &mut Figures) -> Result<(), DbError> {
    let (from, bucket) = (filter.from.0, filter.micros());
    let run = match (&filter.user, &filter.model) {
        (None, None) => String::new(),
        _ => format!("JOIN runs r ON r.key = p.id / {EVENTS}"),
    };
    let mut select = Select::new(&format!(
        "SELECT CASE WHEN p.at >= {from} THEN (p.at - {from}) / {bucket} END AS bucket, count(*), min(p.at)
         FROM pending p {run}"
    ));
    select.and("p.person", []);
    select.and("p.at < ?", [filter.until().0.into()]);
    narrow(&mut select, filter, "p.brain", "r.user");
    answered_by(&mut select, filter, "r.summary");
    select.group("bucket");
    select.each(db, |row| {
        let (bucket, items, oldest) = (row.get(0)?, count(row.get(1)?), Timestamp(row.get(2)?));
        figures.waiting.push(WaitingItems { bucket, items, oldest });
        Ok(())
    })
}

/// Adds the conditions on brain and user.
fn narrow(select: &mut Select, filter: &FigureFilter, brain: &str, user: &str) {
    for (column, wanted) in [(brain, &filter.brain), (user, &filter.user)] {
        if let Some(wanted) = wanted {
            select.and(&format!("{column} = ?"), [Value::from(wanted.clone())]);
        }
    }
}

/// Adds the condition on the models of open runs, which only their summaries have.
fn answered_by(select: &mut Select, filter: &FigureFilter, summary: &str) {
    if let Some(model) = &filter.model {
        let condition = format!(
            "json_valid({summary}) AND EXISTS (SELECT 1 FROM json_each({summary}, '$.models') WHERE json_extract(value, '$.model') = ?)"
        );
        select.and(&condition, [model.clone().into()]);
    }
}

/// Says whether the cost of a run that is over is not known in full: the summaries of an earlier version have neither costs nor models
/// nor active times.
pub(super) fn is_partial(noted: &str, runs: &str) -> String {
    let missing = ["active", "currency", "model"].map(|column| format!("{runs}.{column} IS NULL")).join(" AND ");
    format!("({noted} OR ({missing} AND {runs}.input + {runs}.output > 0))")
}

/// Reads the columns with the tokens of requests, of answers, and from caches.
pub(super) fn usage(row: &Row<'_>, first: usize) -> Result<Usage, DbError> {
    let [input, output, cached] = [row.get(first)?, row.get(first + 1)?, row.get(first + 2)?].map(count);
    Ok(Usage { input, output, cached, ..Usage::default() })
}

/// Reads a column that is not negative.
pub(super) fn count(column: i64) -> u64 {
    u64::try_from(column).unwrap_or_default()
}

pub(super) fn optional<'a>(row: &'a Row<'_>, column: usize) -> Result<Option<&'a str>, DbError> {
    Ok(row.get_ref(column)?.as_str_or_null().map_err(rusqlite::Error::from)?)
}

fn status(row: &Row<'_>, column: usize) -> Result<Status, DbError> {
    let word = text(row, column)?;
    let found = Status::ALL.into_iter().find(|status| status.as_str() == word);
    found.ok_or_else(|| DbError::unreadable("the status of a run", format!("unknown status `{word}`")))
}

fn refusal(word: &str) -> Option<ClaimRefusal> {
    serde_json::from_value(word.into()).ok()
}
