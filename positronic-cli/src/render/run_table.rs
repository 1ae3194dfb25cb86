//! The table of runs.

use std::collections::{HashMap, HashSet};

use positronic_core::record::{RunId, RunSummary, Status, Timestamp};
use positronic_core::store::StoreError;

use super::figures::{age, count};
use super::short_ids::ShortIds;
use super::text::{one_line, shorten, width};
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
const GAP: &str = "  ";
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
    let mut cells: Vec<[String; 6]> = vec![HEADS.map(str::to_owned)];
    cells.extend(rows.iter().map(|row| {
        [
            one_line(short.get(&row.run), unicode),
            one_line(&row.brain, unicode),
            status(row, unclaimed),
            age(now.since(row.since)),
            age(now.since(row.started)),
            count(row.usage.total()),
        ]
    }));
    let widest = |column: usize| cells.iter().filter_map(|row| row.get(column)).map(|cell| width(cell)).max();
    let mut widths: Vec<usize> = (0..HEADS.len()).map(|column| widest(column).unwrap_or(0)).collect();
    let all =
        |widths: &[usize]| widths.iter().filter(|width| **width > 0).map(|width| width + GAP.len()).sum::<usize>();
    let over = |widths: &[usize]| all(widths).saturating_sub(columns + GAP.len());
    if let Some(title) = widths.get(BRAIN).copied() {
        let least = title.min(TITLE[0]);
        let fitting = title.min(TITLE[1]);
        set(&mut widths, BRAIN, fitting);
        let fitting = fitting.saturating_sub(over(&widths)).max(least);
        set(&mut widths, BRAIN, fitting);
    }
    // The status is always shown.
    for column in LEFT_OUT {
        if over(&widths) > 0 {
            set(&mut widths, column, 0);
        }
    }
    if let Some(name) = widths.first().copied() {
        let fitting = name.saturating_sub(over(&widths)).max(NAME.min(name));
        set(&mut widths, 0, fitting);
    }
    let room = columns.saturating_sub(all(&widths));
    let whys =
        std::iter::once(WHY.to_owned()).chain(rows.iter().map(|row| reason(row, changed.get(&row.run), now, unicode)));
    let mut text = String::new();
    for (index, (cells, why)) in cells.iter().zip(whys).enumerate() {
        let mut line = String::new();
        for (cell, width) in cells.iter().zip(&widths).filter(|(_, width)| **width > 0) {
            line.push_str(&padded(&shorten(cell, *width, unicode), *width));
            line.push_str(GAP);
        }
        if room >= ROOM {
            line.push_str(&shorten(&why, room, unicode));
        }
        text.push_str(&shorten(line.trim_end(), columns, unicode));
        text.push('\n');
        if room < ROOM && index > 0 && !why.is_empty() {
            text.push_str(&shorten(&format!("{GAP}{why}"), columns, unicode));
            text.push('\n');
        }
    }
    text
}

fn set(widths: &mut [usize], column: usize, width: usize) {
    if let Some(known) = widths.get_mut(column) {
        *known = width;
    }
}

/// Explains why a run cannot continue, waits, or ended, without repeating other columns.
fn reason(row: &RunSummary, difference: Option<&Result<String, StoreError>>, now: Timestamp, unicode: bool) -> String {
    match difference {
        Some(Ok(difference)) => return one_line(&code_changed(difference), unicode),
        Some(Err(_)) => return "cannot read its log".to_owned(),
        None => {}
    }
    let why = one_line(row.why.as_deref().unwrap_or_default(), unicode);
    let waits = why.strip_prefix("The run waits").and_then(|rest| rest.split_once(" for "));
    let why = waits.map_or_else(|| why.clone(), |(_, what)| format!("for {what}"));
    if row.status == Status::Waiting && row.has_work(now) { format!("expired: {why}") } else { why }
}

fn padded(cell: &str, columns: usize) -> String {
    format!("{cell}{}", " ".repeat(columns.saturating_sub(width(cell))))
}

/// Notes that a list is truncated; `which` end of it is shown.
pub(crate) fn more(which: &str, shown: usize) -> String {
    match shown {
        1 => format!("only the {which} one is shown; use --limit for more"),
        several => format!("only the {which} {several} are shown; use --limit for more"),
    }
}
