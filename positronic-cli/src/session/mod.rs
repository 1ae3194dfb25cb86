//! One run at the command line: its events to the screen, its questions to the person or the cassette that answers, and
//! interrupts to the run.

mod answering;
mod answers;
mod awaited_runs;
mod driver;
mod images;
mod options;
mod os_signals;
mod outcome;
mod pending;
#[cfg(test)]
mod pending_tests;
mod screen;
mod send_signals;
mod session_screen;
mod unfinished_children;

pub(crate) use answers::{Answer, Editor, EditorCommand, Keyboard, Question, example_lines, from_cassette};
pub(crate) use driver::{AT_ONCE, session};
pub(crate) use images::images;
pub(crate) use options::{Ending, Role, SessionOptions};
pub(crate) use os_signals::{Interrupt, interrupts, survive_large_files};
pub(crate) use outcome::{ended, exit_of_failure, left_by, report_limited_loops};
pub(crate) use pending::{
    LISTED_ROWS, WHOLE_RUN, answer_commands, asking_party, for_person, is_approval, pending_entry, question_text,
};
pub(crate) use screen::Screen;
pub(crate) use send_signals::send_signals;
