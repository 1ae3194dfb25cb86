//! The table of conversations.

use std::collections::HashSet;
use std::fmt::Write as _;

use positronic_core::record::{RunId, Timestamp};
use positronic_core::runner::ConversationSummary;

use super::figures::age;
use super::table::Table;
use super::text::{one_line, shorten};
use super::words::status;

/// A conversation with its last message.
#[derive(Debug)]
pub(crate) struct ConversationRow {
    pub(crate) summary: ConversationSummary,
    /// Input of its last run.
    pub(crate) last_message: Option<String>,
}

const HEADS: [&str; 6] = ["CONVERSATION", "BRAIN", "USER", "PROMPTS", "STATUS", "AGE"];
const USER: usize = 2;
/// The last column, which takes the remaining width.
const LAST_MESSAGE: &str = "LAST MESSAGE";
/// Maximum width of a cell, and minimum width of the last message.
const WIDEST: usize = 20;
const ROOM: usize = 16;
/// Columns that are dropped in this order in a narrow terminal.
const LEFT_OUT: [usize; 4] = [3, USER, 5, 1];

/// Renders conversations as a table of a given width. Runs in `unclaimed` have work and no worker.
pub(crate) fn conversation_table(
    conversations: &[ConversationRow],
    unclaimed: &HashSet<RunId>,
    now: Timestamp,
    columns: usize,
    unicode: bool,
) -> String {
    let rows = conversations.iter().map(|ConversationRow { summary, .. }| {
        let last = &summary.last;
        let user = last.user.as_deref().unwrap_or("–");
        vec![
            one_line(&summary.id, unicode),
            shorten(&one_line(&last.brain, unicode), WIDEST, unicode),
            shorten(&one_line(user, unicode), WIDEST, unicode),
            summary.runs.to_string(),
            status(last, unclaimed),
            age(now.since(last.at)),
        ]
    });
    let mut table = Table::new(&HEADS, rows, columns, unicode);
    if conversations.iter().all(|row| row.summary.last.user.is_none()) {
        table.limit(USER, 0);
    }
    table.hide(&LEFT_OUT);
    let room = table.room();
    let messages = conversations.iter().map(|row| one_line(row.last_message.as_deref().unwrap_or_default(), unicode));
    let mut text = String::new();
    for (mut line, message) in table.lines().zip(std::iter::once(LAST_MESSAGE.to_owned()).chain(messages)) {
        if room >= ROOM {
            line.push_str(&shorten(&message, room, unicode));
        }
        _ = writeln!(text, "{}", shorten(line.trim_end(), columns, unicode));
    }
    text
}
