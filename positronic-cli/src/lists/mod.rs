//! Lists about many runs, written to a string: a table of runs, and what waits with the commands that answer it.

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
