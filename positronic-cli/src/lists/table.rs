//! The table of runs.

use positronic_core::record::{RunSummary, Timestamp};

use crate::display::figures::{age, count};
use crate::display::text::{one_line, shorten, width};
use crate::find::Short;

const HEADS: [&str; 6] = ["RUN", "BRAIN", "STATUS", "SINCE", "AGE", "TOKENS"];
const BRAIN: usize = 1;
/// What stands last, in the columns that are left, or on a line of its own.
const WHY: &str = "WHY";

/// How wide a brain's title is at least and at most, and how much room a reason needs beside the other columns.
const TITLE: [usize; 2] = [8, 24];
const ROOM: usize = 24;
const GAP: &str = "  ";

/// Writes runs as a table that fits the columns.
pub(crate) fn table(rows: &[RunSummary], short: &Short, now: Timestamp, columns: usize, unicode: bool) -> String {
    let mut cells: Vec<[String; 6]> = vec![HEADS.map(str::to_owned)];
    cells.extend(rows.iter().map(|row| {
        [
            one_line(short.get(&row.run), unicode),
            one_line(&row.brain, unicode),
            row.status.as_str().to_owned(),
            age(now.since(row.since)),
            age(now.since(row.started)),
            count(row.usage.total()),
        ]
    }));
    let widest = |column: usize| cells.iter().filter_map(|row| row.get(column)).map(|cell| width(cell)).max();
    let mut widths: Vec<usize> = (0..HEADS.len()).map(|column| widest(column).unwrap_or(0)).collect();
    let others = widths.iter().sum::<usize>() - widths.get(BRAIN).copied().unwrap_or(0);
    let left = columns.saturating_sub(others + GAP.len() * (widths.len() - 1));
    if let Some(title) = widths.get_mut(BRAIN) {
        *title = (*title).min(left.clamp(TITLE[0], TITLE[1]));
    }
    let used = widths.iter().sum::<usize>() + GAP.len() * widths.len();
    let room = columns.saturating_sub(used);
    let whys = std::iter::once(WHY.to_owned()).chain(rows.iter().map(|row| reason(row, unicode)));
    let mut text = String::new();
    for (index, (cells, why)) in cells.iter().zip(whys).enumerate() {
        let mut line = String::new();
        for (cell, width) in cells.iter().zip(&widths) {
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

/// Says why a run waits, or how it ended, without what the other columns say.
fn reason(row: &RunSummary, unicode: bool) -> String {
    let why = one_line(row.why.as_deref().unwrap_or_default(), unicode);
    let waits = why.strip_prefix("The run waits").and_then(|rest| rest.split_once(" for "));
    waits.map_or_else(|| why.clone(), |(_, what)| format!("for {what}"))
}

fn padded(cell: &str, columns: usize) -> String {
    format!("{cell}{}", " ".repeat(columns.saturating_sub(width(cell))))
}
