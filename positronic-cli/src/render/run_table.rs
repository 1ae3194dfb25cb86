//! The table of runs.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use positronic_core::record::{RunId, RunSummary, Status, Timestamp};
use positronic_core::store::StoreError;

use super::figures::{age, count};
use super::short_ids::ShortIds;
use super::table::{GAP, Table};
use super::text::{one_line, shorten};
use super::words::{code_changed, status};

/// Code differences by run, or an error for an unreadable log.
pub(crate) type Differences = HashMap<RunId, Result<String, StoreError>>;

const HEADS: [&str; 6] = ["RUN", "BRAIN", "STATUS", "SINCE", "AGE", "TOKENS"];
const BRAIN: usize = 1;
/// The last column, which takes the remaining width or its own line.
const WHY: &str = "WHY";

/// Minimum and maximum width of a brain's title, and minimum width of the last column.
const TITLE: [usize; 2] = [8, 24];
const ROOM: usize = 24;
/// Minimum width of a run's id.
const NAME: usize = 6;
/// Columns that are dropped in this order in a narrow terminal.
const LEFT_OUT: [usize; 4] = [5, 4, 3, BRAIN];

/// Renders runs as a table of a given width. Runs in `unclaimed` have work and no worker; runs in `changed` cannot
/// continue with the current code, or are unreadable.
pub(crate) fn table(
    rows: &[RunSummary],
    short: &ShortIds,
    unclaimed: &HashSet<RunId>,
    changed: &Differences,
    now: Timestamp,
    columns: usize,
    unicode: bool,
) -> String {
    let cells = rows.iter().map(|row| {
        vec![
            one_line(short.get(&row.run), unicode),
            one_line(&row.brain, unicode),
            status(row, unclaimed),
            age(now.since(row.since)),
            age(now.since(row.started)),
            count(row.usage.total()),
        ]
    });
    let mut table = Table::new(&HEADS, cells, columns, unicode);
    table.limit(BRAIN, TITLE[1]);
    table.narrow(BRAIN, TITLE[0]);
    // The status is always shown.
    table.hide(&LEFT_OUT);
    table.narrow(0, NAME);
    let room = table.room();
    let reasons = rows.iter().map(|row| reason(row, changed.get(&row.run), now, unicode));
    let mut text = String::new();
    for (index, (mut line, why)) in table.lines().zip(std::iter::once(WHY.to_owned()).chain(reasons)).enumerate() {
        if room >= ROOM {
            line.push_str(&shorten(&why, room, unicode));
        }
        _ = writeln!(text, "{}", shorten(line.trim_end(), columns, unicode));
        if room < ROOM && index > 0 && !why.is_empty() {
            _ = writeln!(text, "{}", shorten(&format!("{GAP}{why}"), columns, unicode));
        }
    }
    text
}

/// Explains why a run cannot continue, waits, or ended, without repeating other columns.
fn reason(row: &RunSummary, difference: Option<&Result<String, StoreError>>, now: Timestamp, unicode: bool) -> String {
    match difference {
        Some(Ok(difference)) => return one_line(&code_changed(difference), unicode),
        Some(Err(_)) => return "cannot read its log".to_owned(),
        None => {}
    }
    let why = one_line(row.why.as_deref().unwrap_or_default(), unicode);
    let waits = why.split_once(" for ").filter(|_| row.status == Status::Waiting);
    let why = waits.map_or_else(|| why.clone(), |(_, what)| format!("for {what}"));
    if row.status == Status::Waiting && row.has_work(now) { format!("expired: {why}") } else { why }
}

/// Truncates a list that was read with at least one row beyond the limit, and notes the truncation; `which` end of the
/// list stays.
pub(crate) fn truncate<T>(rows: &mut Vec<T>, limit: usize, which: &str) -> Option<String> {
    let is_longer = rows.len() > limit;
    rows.truncate(limit);
    is_longer.then(|| match limit {
        1 => format!("only the {which} one is shown; use --limit for more"),
        several => format!("only the {which} {several} are shown; use --limit for more"),
    })
}
