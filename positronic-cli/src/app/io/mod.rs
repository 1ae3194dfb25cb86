//! Streams of a command, its log, and errors as prose.

mod failure;
mod log;
mod output;
mod ui;

pub(crate) use failure::{Failure, MAX_COLUMNS};
pub(crate) use log::{BufferedLog, Log, LogSettings};
pub(crate) use output::{Output, Unread};
pub(crate) use ui::{PROGRAM, Streams, Ui, size};
