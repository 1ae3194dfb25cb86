//! Inputs and actions of a chat: what happens to its state, and what the state wants to be done.

use crossterm::event::KeyEvent;
use positronic_core::record::{Attachment, Event, Pending, SignalKind, UserMessage};
use positronic_core::runner::Settled;

use super::slash_commands::Slash;
use crate::render::{Line, Tone};
use crate::session::{Interrupt, Question};

/// What happens to a chat.
pub(super) enum Input<'a> {
    Key(KeyEvent),
    Paste(String),
    /// Ctrl-C from outside, or a request to end; also a terminal that is gone.
    Interrupt(Interrupt),
    /// A moment has passed.
    Tick,
    /// A run of the conversation is shown from now on.
    Shown {
        /// Whether another one was shown before.
        is_new: bool,
        /// The command that lifts a pause of it.
        resume: String,
    },
    /// An event of the run.
    Event(&'a Event),
    /// The run has ended or waits.
    Settled(&'a Settled),
    /// A message is in the log, or was refused for this reason.
    Sent(Result<(), String>),
    /// The run has accepted a signal, or refused it for this reason.
    Signalled(Result<(), String>),
    /// A question that was asked for.
    Question(Box<Question>),
    /// The open question is no longer one, for this reason.
    Withdrawn(String),
    /// Send this as if a person had written it.
    Say(UserMessage),
    /// Attach this file to the next message.
    Attach(Attachment),
    /// Show this remark above the input until the next key.
    Hint(String),
}

/// What a chat wants to be done.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Action {
    /// Print a remark above the input.
    Print(Tone, String),
    /// Print these lines.
    PrintLines(Vec<Line>),
    /// Clear the screen.
    Clear,
    /// Add this to the input history.
    Remember(String),
    /// Store these files, send this message, and answer with [`Input::Sent`].
    Send(UserMessage, Vec<Attachment>),
    /// Send this signal to the run, and answer with [`Input::Signalled`].
    Signal(SignalKind),
    /// Read this file, and answer with [`Input::Attach`].
    ReadFile(String),
    /// Carry out a command.
    Command(Slash, String),
    /// Answer with an [`Input::Question`] about this.
    Ask(Pending),
    /// List runs that other processes began, and fire due triggers.
    PollStore,
    /// Release the run, and leave when that is done.
    Release,
    /// Leave now.
    Exit,
}
