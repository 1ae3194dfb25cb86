//! The table of conversations.

use std::collections::HashSet;

use positronic_core::record::{RunId, Timestamp};
use positronic_core::runner::ConversationSummary;

use super::figures::age;
use super::text::{one_line, shorten, width};
use super::words::status;

/// A conversation with its last message.
#[derive(Debug)]
pub(crate) struct ConversationRow {
    pub(crate) summary: ConversationSummary,
    /// Input of its last run.
    pub(crate) said: Option<String>,
}

const HEADS: [&str; 6] = ["CONVERSATION", "BRAIN", "USER", "PROMPTS", "STATUS", "AGE"];
/// The last column, which takes the remaining width.
const LAST_MESSAGE: &str = "LAST MESSAGE";
const GAP: &str = "  ";
/// Maximum width of a cell, and minimum width of the last message.
const WIDEST: usize = 20;
const ROOM: usize = 16;
/// Columns that are dropped in this order in a narrow terminal.
const LEFT_OUT: [usize; 4] = [3, 2, 5, 1];

/// Renders conversations as a table of a given width. Runs in `unclaimed` have work and no worker.
pub(crate) fn conversation_table(
    conversation_table: &[ConversationRow],
    unclaimed: &HashSet<RunId>,
    now: Timestamp,
    columns: usize,
    unicode: bool,
) -> String {
    let mut rows: Vec<[String; 6]> = vec![HEADS.map(str::to_owned)];
    rows.extend(conversation_table.iter().map(|ConversationRow { summary, .. }| {
        let last = &summary.last;
        let user = last.user.as_deref().unwrap_or("–");
        [
            one_line(&summary.id, unicode),
            shorten(&one_line(&last.brain, unicode), WIDEST, unicode),
            shorten(&one_line(user, unicode), WIDEST, unicode),
            summary.runs.to_string(),
            status(last, unclaimed),
            age(now.since(last.at)),
        ]
    }));
    let mut widths: Vec<usize> = (0..HEADS.len())
        .map(|column| rows.iter().filter_map(|row| row.get(column)).map(|cell| width(cell)).max().unwrap_or(0))
        .collect();
    if conversation_table.iter().all(|talk| talk.summary.last.user.is_none()) {
        set(&mut widths, 2);
    }
    for column in LEFT_OUT {
        if taken(&widths) > columns + GAP.len() {
            set(&mut widths, column);
        }
    }
    let room = columns.saturating_sub(taken(&widths));
    let said = conversation_table.iter().map(|talk| one_line(talk.said.as_deref().unwrap_or_default(), unicode));
    let said = std::iter::once(LAST_MESSAGE.to_owned()).chain(said);
    let mut text = String::new();
    for (row, said) in rows.iter().zip(said) {
        let mut line = String::new();
        for (cell, columns) in row.iter().zip(&widths).filter(|(_, width)| **width > 0) {
            line.push_str(cell);
            line.push_str(&" ".repeat(columns.saturating_sub(width(cell))));
            line.push_str(GAP);
        }
        if room >= ROOM {
            line.push_str(&shorten(&said, room, unicode));
        }
        text.push_str(&shorten(line.trim_end(), columns, unicode));
        text.push('\n');
    }
    text
}

fn set(widths: &mut [usize], column: usize) {
    if let Some(width) = widths.get_mut(column) {
        *width = 0;
    }
}

fn taken(widths: &[usize]) -> usize {
    widths.iter().filter(|width| **width > 0).map(|width| width + GAP.len()).sum()
}
