//! The table of conversations.

use std::collections::HashSet;

use positronic_core::record::{RunId, Timestamp};
use positronic_core::runner::ConversationSummary;

use crate::render::figures::age;
use crate::render::words::status;
use crate::render::{Table, one_line, shorten};

/// A conversation with its last message.
#[derive(Debug)]
pub(crate) struct ConversationRow {
    pub(crate) summary: ConversationSummary,
    /// Input of its last run.
    pub(crate) last_message: Option<String>,
}

const HEADS: [&str; 6] = ["CONVERSATION", "BRAIN", "USER", "PROMPTS", "STATUS", "AGE"];
const USER: usize = 2;
/// Maximum width of a cell.
const WIDEST: usize = 20;
/// Columns that are dropped in this order in a narrow terminal.
const LEFT_OUT: [usize; 4] = [3, USER, 5, 1];

/// Renders conversations as a table of a given width. Runs in `unclaimed` have work and no worker.
pub(crate) fn conversation_table(
    conversations: &[ConversationRow],
    unclaimed: &HashSet<RunId>,
    now: Timestamp,
    columns: usize,
) -> String {
    let rows = conversations.iter().map(|ConversationRow { summary, .. }| {
        let last = &summary.last;
        let user = last.user.as_deref().unwrap_or("–");
        vec![
            one_line(&summary.id),
            shorten(&one_line(&last.brain), WIDEST),
            shorten(&one_line(user), WIDEST),
            summary.runs.to_string(),
            status(last, unclaimed),
            age(now.since(last.at)),
        ]
    });
    let mut table = Table::new(&HEADS, rows, columns);
    if conversations.iter().all(|row| row.summary.last.user.is_none()) {
        table.limit(USER, 0);
    }
    table.hide(&LEFT_OUT);
    let message = |row: &ConversationRow| one_line(row.last_message.as_deref().unwrap_or_default());
    table.rest("LAST MESSAGE", conversations.iter().map(message));
    table.to_string()
}
