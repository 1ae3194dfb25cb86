//! A conversation as it is kept: found by the beginning of its id, read from the logs of its runs, written as a
//! transcript, as Markdown and as JSON.

mod find;
mod markdown;
mod recorded;
mod remarks;

pub(crate) use find::{find, known, new_id};
pub(crate) use recorded::{Recorded, plain};
