//! Answers to pending items: from the played cassette, or from the person at the terminal.
//!
//! A [`Question`] to a person follows from the payload's schema: a text, the fields of a flat object one by one, or JSON. All
//! that it shows comes from outside and is sanitised.

mod cassette_answers;
mod editor;
mod field;
mod keyboard;
mod question;
mod question_script;
#[cfg(test)]
mod question_tests;

pub(crate) use cassette_answers::{example_lines, from_cassette};
pub(crate) use editor::{Editor, EditorCommand};
pub(crate) use keyboard::Keyboard;
pub(crate) use question::Question;
pub(crate) use question_script::Answer;
