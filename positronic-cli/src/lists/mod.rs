//! Lists: runs, conversations, and pending items with the commands that answer them.

mod alone;
mod changed;
mod table;
mod talks;
mod waiting;

#[cfg(test)]
mod tests;

pub(crate) use alone::{alone, nobody};
pub(crate) use changed::{changed, said};
pub(crate) use table::{more, table};
pub(crate) use talks::{Talk, talks};
pub(crate) use waiting::{LISTED_ROWS, RUN, answers, entry, named, question};
