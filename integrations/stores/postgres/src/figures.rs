//! Figures of many runs.

use std::sync::Arc;

use positronic_core::record::{ClaimRefusal, Money, Status, Timestamp, Usage};
use positronic_core::store::{EndedRuns, FigureFilter, Figures, ModelRuns, OpenRuns, StoreError, WaitingItems};
use sqlx_postgres::PgRow;

use crate::PostgresStore;
use crate::append::owned;
use crate::connections::{Select, Statement, get};
use crate::failure::DbError;
use crate::text::value;

pub(crate) const OPEN: &str = "r.status IN ('running', 'waiting', 'paused')";

impl PostgresStore {
    /// Adds up the figures of runs.
    pub(crate) async fn add_up(&self, filter: &FigureFilter) -> Result<Figures, StoreError> {
        let mut figures = Figures::new(filter);
        figures.ended =
            self.read_rows(|schema| ended(schema, filter), |rows| rows.iter().map(ended_runs).collect()).await?;
        figures.models =
            self.read_rows(|schema| models(schema, filter), |rows| rows.iter().map(model_runs).collect()).await?;
        figures.open =
            self.read_rows(|schema| open(schema, filter), |rows| rows.iter().map(open_runs).collect()).await?;
        figures.waiting =
            self.read_rows(|schema| waiting(schema, filter), |rows| rows.iter().map(waiting_items).collect()).await?;
        let read = |rows: Vec<PgRow>| {
            let bucket = |row: &PgRow| Ok((get::<i64>(row, 0)?, count(get(row, 1)?)));
            rows.iter().map(bucket).collect::<Result<Vec<_>, DbError>>()
        };
        for (bucket, runs) in self.read_rows(|schema| started(schema, filter), read).await? {
            figures.add_started(u32::try_from(bucket).unwrap_or(u32::MAX), runs);
        }
        Ok(figures)
    }
}

/// Each bucket is read by the index and grouped by itself: for groups of all buckets the server would sort the rows, since it
/// does not know how few buckets there are.
fn ended(schema: &str, filter: &FigureFilter) -> Statement {
    let share = |column: &str| match filter.model {
        Some(_) => format!("coalesce(m.{column}, e.{column})"),
        None => format!("e.{column}"),
    };
    let sum = |column| format!("least(sum({}), {})::bigint", share(column), i64::MAX);
    let mut query = Select::new("SELECT b.bucket, g.* FROM generate_series(0::bigint, ".to_owned());
    query.bind(i64::from(filter.buckets) - 1);
    query.push(format!(
        ") b (bucket) CROSS JOIN LATERAL (
            SELECT e.status, e.brain, e.currency, e.cause, count(*), min(e.ended), max(e.ended), {}, {}, {}, {},
                count(*) FILTER (WHERE {}), coalesce(array_agg(e.active) FILTER (WHERE e.active IS NOT NULL), '{{}}')
            FROM {}
            WHERE e.ended >= {from} + b.bucket * {bucket} AND e.ended < {from} + (b.bucket + 1) * {bucket}",
        sum("input"),
        sum("output"),
        sum("cached"),
        sum("cost"),
        match filter.model {
            Some(_) => share("partial"),
            None => is_partial("e"),
        },
        ended_rows(schema, filter),
        from = filter.from.0,
        bucket = filter.micros(),
    ));
    narrow(&mut query, filter, "e.brain", "e.user_name");
    of_model(&mut query, filter, "coalesce(m.model, e.model)");
    query.push(" GROUP BY e.status, e.brain, e.currency, e.cause) g");
    query.statement()
}

/// Says whether the cost of a run that is over is not known in full: the summaries of an earlier version have neither costs nor models
/// nor active times.
pub(crate) fn is_partial(runs: &str) -> String {
    let missing = ["active", "currency", "model"].map(|column| format!("{runs}.{column} IS NULL")).join(" AND ");
    format!("({runs}.partial OR ({missing} AND {runs}.input + {runs}.output > 0))")
}

/// Names the rows of runs that are over as `e`; with a model in the filter, those of the runs with several as `m`.
fn ended_rows(schema: &str, filter: &FigureFilter) -> String {
    let models = format!(" LEFT JOIN {schema}.ended_models m ON e.model = '' AND m.key = e.key");
    format!("{schema}.ended_runs e{}", if filter.model.is_some() { models.as_str() } else { "" })
}

fn ended_runs(row: &PgRow) -> Result<EndedRuns, DbError> {
    Ok(EndedRuns {
        bucket: u32::try_from(get::<i64>(row, 0)?).unwrap_or(u32::MAX),
        status: status(get(row, 1)?)?,
        brain: value(get(row, 2)?).into(),
        // Documents are stored as they are.
        currency: get::<Option<String>>(row, 3)?.map(Arc::from),
        cause: get::<Option<String>>(row, 4)?.map(Arc::from),
        runs: count(get(row, 5)?),
        first: Timestamp(get(row, 6)?),
        last: Timestamp(get(row, 7)?),
        usage: usage(row, 8)?,
        cost: Money::of_nanos(count(get(row, 11)?)),
        partial: count(get(row, 12)?),
        active: get::<Vec<i64>>(row, 13)?.into_iter().map(count).collect(),
    })
}

/// The runs with one model have it in their row.
fn models(schema: &str, filter: &FigureFilter) -> Statement {
    let range = format!("e.ended >= {} AND e.ended < {}", filter.from.0, filter.until().0);
    let sum = |column| format!("least(sum(s.{column}), {})::bigint", i64::MAX);
    let mut query = Select::new(format!(
        "SELECT s.model, s.currency, count(*), {}, {}, {}, {}, count(*) FILTER (WHERE s.partial), (s.ended - {from}) / {bucket} AS bucket FROM (
            SELECT e.ended, e.model, e.currency, e.input, e.output, e.cached, e.cost, e.partial
            FROM {schema}.ended_runs e WHERE e.model <> '' AND {range}",
        sum("input"),
        sum("output"),
        sum("cached"),
        sum("cost"),
        from = filter.from.0,
        bucket = filter.micros(),
    ));
    narrow(&mut query, filter, "e.brain", "e.user_name");
    of_model(&mut query, filter, "e.model");
    query.push(format!(
        " UNION ALL SELECT e.ended, m.model, e.currency, m.input, m.output, m.cached, m.cost, m.partial
            FROM {schema}.ended_runs e JOIN {schema}.ended_models m ON m.key = e.key WHERE e.model = '' AND {range}"
    ));
    narrow(&mut query, filter, "e.brain", "e.user_name");
    of_model(&mut query, filter, "m.model");
    query.push(") s GROUP BY bucket, s.model, s.currency");
    query.statement()
}

fn model_runs(row: &PgRow) -> Result<ModelRuns, DbError> {
    Ok(ModelRuns {
        bucket: u32::try_from(get::<i64>(row, 8)?).unwrap_or(u32::MAX),
        model: get::<String>(row, 0)?.into(),
        currency: get::<Option<String>>(row, 1)?.map(Arc::from),
        runs: count(get(row, 2)?),
        usage: usage(row, 3)?,
        cost: Money::of_nanos(count(get(row, 6)?)),
        partial: count(get(row, 7)?),
    })
}

fn open(schema: &str, filter: &FigureFilter) -> Statement {
    let mut query = Select::new(format!(
        "SELECT r.status, r.brain, r.owner,
            CASE WHEN r.status = 'running' THEN {schema}.summary_json(r.summary) ->> 'refused' END AS refused,
            r.key IN (SELECT p.key FROM {schema}.pending p WHERE p.person) AS person,
            CASE r.status WHEN 'running' THEN true WHEN 'waiting' THEN coalesce(CASE WHEN r.wake = {least}
                THEN {schema}.summary_number({schema}.summary_json(r.summary) -> 'wake') ELSE r.wake END <= {now}, false)
                ELSE false END AS due,
            count(*), min(r.at)
         FROM {schema}.runs r WHERE {OPEN}",
        least = format_args!("({} - 1)", -i64::MAX),
        now = filter.now.0,
    ));
    narrow(&mut query, filter, "r.brain", "r.user_name");
    answered_by(&mut query, schema, filter);
    query.push(" GROUP BY r.status, r.brain, r.owner, refused, person, due");
    query.statement()
}

fn open_runs(row: &PgRow) -> Result<OpenRuns, DbError> {
    let refused: Option<String> = get(row, 3)?;
    Ok(OpenRuns {
        status: status(get(row, 0)?)?,
        brain: value(get(row, 1)?).into(),
        owner: get::<Option<String>>(row, 2)?.map(|owner| value(owner).into()),
        refused: refused.and_then(|word| serde_json::from_value::<ClaimRefusal>(word.into()).ok()),
        person: get(row, 4)?,
        due: get(row, 5)?,
        runs: count(get(row, 6)?),
        oldest: Timestamp(get(row, 7)?),
    })
}

fn waiting(schema: &str, filter: &FigureFilter) -> Statement {
    let (from, bucket) = (filter.from.0, filter.micros());
    let mut query = Select::new(format!(
        "SELECT CASE WHEN p.at >= {from} THEN (p.at - {from}) / {bucket} END AS bucket, count(*), min(p.at)
         FROM {schema}.pending p"
    ));
    if filter.user.is_some() || filter.model.is_some() {
        query.push(format!(" JOIN {schema}.runs r ON r.key = p.key"));
    }
    query.push(" WHERE p.person AND p.at < ").bind(filter.until().0);
    narrow(&mut query, filter, "p.brain", "r.user_name");
    answered_by(&mut query, schema, filter);
    query.push(" GROUP BY bucket");
    query.statement()
}

fn waiting_items(row: &PgRow) -> Result<WaitingItems, DbError> {
    let bucket = get::<Option<i64>>(row, 0)?.map(|bucket| u32::try_from(bucket).unwrap_or(u32::MAX));
    Ok(WaitingItems { bucket, items: count(get(row, 1)?), oldest: Timestamp(get(row, 2)?) })
}

/// A run that has started and ended in the range is in the small table.
fn started(schema: &str, filter: &FigureFilter) -> Statement {
    let (from, bucket, until) = (filter.from.0, filter.micros(), filter.until().0);
    let mut query = Select::new(format!(
        "SELECT (s.started - {from}) / {bucket} AS bucket, count(*) FROM (
            SELECT e.started, e.brain, e.user_name FROM {} WHERE e.ended >= {from} AND e.ended < {until}",
        ended_rows(schema, filter),
    ));
    of_model(&mut query, filter, "coalesce(m.model, e.model)");
    query.push(format!(" UNION ALL SELECT r.started, r.brain, r.user_name FROM {schema}.runs r WHERE {OPEN}"));
    answered_by(&mut query, schema, filter);
    query.push(format!(") s WHERE s.started >= {from} AND s.started < {until}"));
    narrow(&mut query, filter, "s.brain", "s.user_name");
    query.push(" GROUP BY bucket");
    query.statement()
}

/// Adds the conditions on brain and user.
fn narrow(query: &mut Select, filter: &FigureFilter, brain: &str, user: &str) {
    for (column, wanted) in [(brain, &filter.brain), (user, &filter.user)] {
        if let Some(wanted) = wanted {
            query.push(format!(" AND {column} = ")).bind(owned(wanted));
        }
    }
}

/// Adds the condition on a model of a run that is over.
fn of_model(query: &mut Select, filter: &FigureFilter, column: &str) {
    if let Some(model) = &filter.model {
        query.push(format!(" AND {column} = ")).bind(owned(model));
    }
}

/// Adds the condition on the models of open runs, which only their summaries have.
fn answered_by(query: &mut Select, schema: &str, filter: &FigureFilter) {
    if let Some(model) = &filter.model {
        let models = format!("jsonb_array_elements({schema}.summary_json(r.summary) -> 'models')");
        query
            .push(format!(" AND EXISTS (SELECT FROM {models} used WHERE used ->> 'model' = "))
            .bind(owned(model))
            .push(")");
    }
}

/// Reads the columns with the tokens of requests, of answers, and from caches.
pub(crate) fn usage(row: &PgRow, first: usize) -> Result<Usage, DbError> {
    let [input, output, cached] = [get(row, first)?, get(row, first + 1)?, get(row, first + 2)?].map(count);
    Ok(Usage { input, output, cached, ..Usage::default() })
}

/// Reads a column that is not negative.
pub(crate) fn count(column: i64) -> u64 {
    u64::try_from(column).unwrap_or_default()
}

fn status(word: &str) -> Result<Status, DbError> {
    let found = Status::ALL.into_iter().find(|status| status.as_str() == word);
    found.ok_or_else(|| DbError::unreadable("the status of a run", format!("unknown status `{word}`")))
}
