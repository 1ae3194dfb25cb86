//! The table of runs.

use std::collections::{HashMap, HashSet};
use std::num::NonZeroUsize;

use positronic_core::record::{RunId, RunSummary, Status, Timestamp};
use positronic_core::store::StoreError;

use crate::render::figures::{age, count, rounded_money};
use crate::render::words::{code_changed, status};
use crate::render::{ShortIds, Table, one_line};

/// Code differences by run, or an error for an unreadable log.
pub(crate) type Differences = HashMap<RunId, Result<String, StoreError>>;

const HEADS: [&str; 8] = ["RUN", "BRAIN", "STATUS", "SINCE", "AGE", "TOKENS", "COST", "ABOUT"];
const BRAIN: usize = 1;
const COST: usize = 6;
const ABOUT: usize = 7;
/// Minimum and maximum width of a brain's title, and of what a run is about.
const TITLE: [usize; 2] = [8, 24];
const INPUT: [usize; 2] = [12, 36];
/// Minimum width of a run's id.
const NAME: usize = 6;
/// Minimum width that the last column needs before the others.
const WHY: usize = 32;
/// Columns that are dropped in this order in a narrow terminal.
const LEFT_OUT: [usize; 6] = [5, 4, ABOUT, COST, 3, BRAIN];

/// Renders runs as a table of a given width. Runs in `unclaimed` have work and no worker; runs in `changed` cannot
/// continue with the current code, or are unreadable.
pub(crate) fn run_table(
    rows: &[RunSummary],
    short: &ShortIds,
    unclaimed: &HashSet<RunId>,
    changed: &Differences,
    now: Timestamp,
    columns: usize,
) -> String {
    let cells = rows.iter().map(|row| {
        vec![
            one_line(short.get(&row.run)),
            one_line(&row.brain),
            status(row, unclaimed),
            age(now.since(row.since)),
            age(now.since(row.started)),
            count(row.usage.total()),
            cost(row),
            one_line(row.input.as_deref().unwrap_or_default()),
        ]
    });
    let mut table = Table::new(&HEADS, cells, columns);
    table.limit(BRAIN, TITLE[1]);
    table.limit(ABOUT, INPUT[1]);
    // A column without a value says nothing.
    if rows.iter().all(|row| row.input.is_none()) {
        table.limit(ABOUT, 0);
    }
    if rows.iter().all(|row| cost(row).is_empty()) {
        table.limit(COST, 0);
    }
    table.leave(WHY, ABOUT, INPUT[0]);
    table.narrow(BRAIN, TITLE[0]);
    // The status is always shown.
    table.hide(&LEFT_OUT);
    table.narrow(0, NAME);
    table.rest("HOW IT STANDS", rows.iter().map(|row| reason(row, changed.get(&row.run), now)));
    table.to_string()
}

/// Writes what a run has cost; empty if that is unknown.
fn cost(row: &RunSummary) -> String {
    let Some(cost) = &row.cost else { return String::new() };
    let Some(currency) = &cost.currency else { return String::new() };
    let more = if cost.is_partial { "+" } else { "" };
    format!("{}{more}", rounded_money(cost.known.nanos(), currency))
}

/// Explains why a run cannot continue, waits, or how it ended, without repeating other columns.
fn reason(row: &RunSummary, difference: Option<&Result<String, StoreError>>, now: Timestamp) -> String {
    match difference {
        Some(Ok(difference)) => return one_line(&code_changed(difference)),
        Some(Err(_)) => return "cannot read its log".to_owned(),
        None => {}
    }
    // The cause of a failure, without the stages around it.
    let why = row.cause.as_deref().filter(|_| row.status == Status::Failed).or(row.why.as_deref());
    let result = row.result.as_deref().filter(|_| row.status != Status::Waiting);
    let why = match (why, result) {
        (Some(why), Some(result)) if row.status == Status::Completed => one_line(&format!("{why}: {result}")),
        (why, result) => one_line(why.or(result).unwrap_or_default()),
    };
    let waits = why.split_once(" for ").filter(|_| row.status == Status::Waiting);
    let why = waits.map_or_else(|| why.clone(), |(_, what)| format!("for {what}"));
    if row.status == Status::Waiting && row.has_work(now) { format!("due; waited {why}") } else { why }
}

/// Truncates a list that was read with at least one row beyond the limit, and notes the truncation; `which` end of the
/// list stays.
pub(crate) fn truncate<T>(rows: &mut Vec<T>, limit: NonZeroUsize, which: &str) -> Option<String> {
    let is_longer = rows.len() > limit.get();
    rows.truncate(limit.get());
    is_longer.then(|| match limit.get() {
        1 => format!("only the {which} one is shown; use --limit for more"),
        several => format!("only the {which} {several} are shown; use --limit for more"),
    })
}
