//! What the runs of a list come to.

use positronic_core::record::Money;
use positronic_core::store::{RunFilter, RunSums};
use rusqlite::Connection;

use super::failure::DbError;
use super::figures::{count, is_partial, optional, usage};
use super::query::{OPEN, Select, conditions, is_narrow, narrowed};

/// Adds up tokens and costs: those of runs that are over from their small rows, which are read one by one, and those of open runs from
/// their summaries.
pub(super) fn sums(db: &Connection, filter: &RunFilter) -> Result<RunSums, DbError> {
    let mut ended = Select::new(&format!(
        "SELECT input, output, cached, cost, currency, {} FROM ended_runs",
        is_partial("partial", "ended_runs")
    ));
    if is_narrow(filter) {
        ended = narrowed(ended, filter);
    } else {
        ended.among("run", conditions("SELECT key FROM runs", filter));
    }
    let part = |path: &str| format!("CASE WHEN json_valid(summary) THEN json_extract(summary, '$.{path}') END");
    let whole = |path: &str| format!("CAST(coalesce({}, 0) AS INTEGER)", part(path));
    // A cost that is known in full has no such field.
    let noted = format!("CASE WHEN {} IS NOT NULL THEN coalesce({}, 0) END", part("cost"), part("cost.is_partial"));
    let mut open = conditions(
        &format!(
            "SELECT {}, {}, {}, {}, {}, coalesce({}, {} IS NULL AND {} IS NULL AND {} + {} > 0) FROM runs",
            whole("usage.input"),
            whole("usage.output"),
            whole("usage.cached"),
            whole("cost.nanos"),
            part("cost.currency"),
            noted,
            part("active"),
            part("models"),
            whole("usage.input"),
            whole("usage.output"),
        ),
        filter,
    );
    open.and(OPEN, []);
    let mut sums = RunSums::default();
    for select in [ended, open] {
        select.each(db, |row| {
            let (cost, currency) = (Money::of_nanos(count(row.get(3)?)), optional(row, 4)?);
            let known = currency.map(|currency| (currency, cost));
            sums.add_runs(1, usage(row, 0)?, known, u64::from(row.get::<_, bool>(5)?));
            Ok(())
        })?;
    }
    Ok(sums)
}
