//! A conversation at the command line: one run per message, each with the runs before as its history.
//!
//! ```text
//! keys, ticks, events ──▶ ChatState::on ──▶ actions ──▶ ChatUi: send, signal, print, leave
//!                              │
//!                              └── draw: the input or a question, painted below the live view of the run
//! ```
//!
//! `state` is a chat at a terminal, without the terminal; `protocol` has its inputs and actions, `input_area` its frame. `ui` owns the
//! terminal and the loop, and `runs` follows the runs. `piped` is a chat over a pipe, a line per message. Both use the
//! conversation through `current_conversation`.

mod attached;
mod command_output;
mod current_conversation;
mod input_area;
mod input_history;
mod piped;
mod protocol;
mod runs;
mod slash_commands;
mod state;
#[cfg(test)]
mod state_tests;
mod ui;

pub(crate) use current_conversation::ChatContext;
pub(crate) use piped::piped;
pub(crate) use ui::{Left, chat_ui};
