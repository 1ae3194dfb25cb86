//! A conversation at the command line: one run after the other, each with those before as its history.
//!
//! ```text
//! keys ──▶ editor ──▶ slash ──▶ outbox ──▶ Conversation::send ──▶ a run
//!                                                                  │ events, pieces
//!            the terminal ◀── render (fold, talk) ◀── ui ◀────────┘ settled: over, or somebody is asked
//! ```
//!
//! `ui` is a chat at a terminal: the answer streams above the lines in which the next message is written already. Questions
//! (`answers`) take the terminal for themselves, and give it back. `lines` is a chat over a pipe, a line a message. Both know
//! the conversation through `context`.

mod asked;
mod context;
mod due;
mod editor;
mod files;
mod follow;
mod foot;
mod keys;
mod lines;
mod past;
mod slash;
mod slash_commands;
mod ui;

pub(crate) use context::ChatContext;
pub(crate) use lines::lines;
pub(crate) use ui::{Left, table};
