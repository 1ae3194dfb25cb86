//! What the runs of a list come to.

use positronic_core::record::Money;
use positronic_core::store::{RunFilter, RunSums, StoreError};
use sqlx_postgres::PgRow;

use crate::PostgresStore;
use crate::append::owned;
use crate::connections::{Select, Statement, get};
use crate::figures::{OPEN, count, is_partial, usage};
use crate::query::conditions;

impl PostgresStore {
    /// Adds up the tokens and the costs of runs.
    pub(crate) async fn sum_runs(&self, filter: &RunFilter) -> Result<RunSums, StoreError> {
        let read = |rows: Vec<PgRow>| {
            let mut sums = RunSums::default();
            for row in &rows {
                let (currency, cost) = (get::<Option<String>>(row, 0)?, Money::of_nanos(count(get(row, 5)?)));
                let known = currency.as_deref().map(|currency| (currency, cost));
                sums.add_runs(count(get(row, 1)?), usage(row, 2)?, known, count(get(row, 6)?));
            }
            Ok(sums)
        };
        self.read_rows(|schema| sums(schema, filter), read).await
    }
}

/// Runs that are over are added up by their small rows, and open ones by their summaries.
fn sums(schema: &str, filter: &RunFilter) -> Statement {
    let sum = |column| format!("coalesce(least(sum(s.{column}), {}), 0)::bigint", i64::MAX);
    let mut query = Select::new(format!(
        "SELECT s.currency, count(*), {}, {}, {}, {}, count(*) FILTER (WHERE s.partial) FROM (
            SELECT e.currency, e.input, e.output, e.cached, e.cost, {} AS partial FROM {schema}.ended_runs e WHERE true",
        sum("input"),
        sum("output"),
        sum("cached"),
        sum("cost"),
        is_partial("e"),
    ));
    let mut other = filter.clone();
    other.status.clear();
    (other.brain, other.user, other.after, other.limit) = (None, None, None, None);
    if other == RunFilter::default() {
        if !filter.status.is_empty() {
            let words: Vec<_> = filter.status.iter().map(|status| status.as_str()).collect();
            query.push(" AND e.status = ANY (").bind(words).push(")");
        }
        for (column, wanted) in [("e.brain", &filter.brain), ("e.user_name", &filter.user)] {
            if let Some(wanted) = wanted {
                query.push(format!(" AND {column} = ")).bind(owned(wanted));
            }
        }
    } else {
        query.push(format!(" AND e.key IN (SELECT r.key FROM {schema}.runs r WHERE true"));
        conditions(&mut query, schema, filter);
        query.push(")");
    }
    let number = |path: &str| format!("coalesce({schema}.summary_number(o.summary #> '{{{path}}}'), 0)");
    query.push(format!(
        " UNION ALL SELECT o.summary #>> '{{cost,currency}}', {}, {}, {}, {}, CASE
                WHEN o.summary -> 'cost' IS NOT NULL THEN coalesce(o.summary #> '{{cost,is_partial}}' = 'true', false)
                ELSE o.summary -> 'active' IS NULL AND o.summary -> 'models' IS NULL AND {} + {} > 0 END
            FROM (SELECT {schema}.summary_json(r.summary) AS summary FROM {schema}.runs r WHERE {OPEN}",
        number("usage,input"),
        number("usage,output"),
        number("usage,cached"),
        number("cost,nanos"),
        number("usage,input"),
        number("usage,output"),
    ));
    conditions(&mut query, schema, filter);
    query.push(" OFFSET 0) o) s GROUP BY s.currency");
    query.statement()
}
