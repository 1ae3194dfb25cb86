//! A conversation at the command line: one run after the other, each with those before as its history.
//!
//! ```text
//! keys ──▶ editor ──▶ slash ──▶ outbox ──▶ Conversation::send ──▶ a run
//!                                                                  │ events, pieces
//!            the terminal ◀── display (fold, talk) ◀── table ◀─────┘ settled: over, or somebody is asked
//! ```
//!
//! `table` is a chat at a terminal: the answer streams above the lines in which the next message is written already. Questions
//! (`answers`) take the terminal for themselves, and give it back. `lines` is a chat over a pipe, a line a message. Both know
//! the conversation through `desk`.

mod asked;
mod desk;
mod due;
mod editor;
mod files;
mod follow;
mod foot;
mod keys;
mod lines;
mod past;
mod slash;
mod table;
mod told;

pub(crate) use asked::for_person;
pub(crate) use desk::Desk;
pub(crate) use lines::{Manner, lines};
pub(crate) use table::{Left, table};
