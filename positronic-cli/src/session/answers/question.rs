//! A question to a person at the terminal, as a pure state: a key goes in, an answer or a frame comes out.
//!
//! A question is a [`Script`] of fields. After each field, the script is replayed from its beginning with all that was
//! entered, up to the first field without an entry; that one is open.

use crossterm::event::KeyEvent;
use positronic_core::record::Pending;

use super::field::{Entered, Field, Menu, Step};
use super::question_script::{Answer, Script, Subject, Unanswered, columns};
use crate::render::{Frame, Line, Tone, wrap};

/// An open question.
pub(crate) struct Question {
    subject: Subject,
    entered: Vec<Entered>,
    /// The lines above the open field.
    transcript: Vec<String>,
    field: Box<dyn Field>,
    /// The columns in which the transcript is wrapped.
    columns: usize,
    /// How many lines have scrolled away.
    scrolled: usize,
}

impl Question {
    /// Puts a question in a terminal of so many columns and rows.
    pub(crate) fn new(
        pending: &Pending,
        place: String,
        currency: Option<&str>,
        lasts: bool,
        size: (usize, usize),
    ) -> Self {
        let subject = Subject { pending: pending.clone(), place, currency: currency.map(str::to_owned), lasts, size };
        let blank = Box::new(Menu::new("", Vec::new()));
        let mut question = Self {
            columns: columns(size),
            subject,
            entered: Vec::new(),
            transcript: Vec::new(),
            field: blank,
            scrolled: 0,
        };
        question.replay();
        question
    }

    /// Returns the item that the question is about.
    pub(crate) const fn pending(&self) -> &Pending {
        &self.subject.pending
    }

    /// Handles a key; returns the answer once there is one.
    pub(crate) fn key(&mut self, key: KeyEvent) -> Option<Answer> {
        match self.field.key(key) {
            Step::Open => None,
            Step::Interrupted => Some(Answer::Interrupted),
            Step::Entered(entered) => {
                self.scrolled = self.scrolled.min(self.lines().len());
                self.entered.push(entered);
                self.replay()
            }
        }
    }

    /// Inserts a pasted text.
    pub(crate) fn paste(&mut self, text: &str) {
        self.field.paste(text);
    }

    /// Draws the question for a screen of so many rows; returns the lines that scroll away above the frame, too.
    pub(crate) fn draw(&mut self, columns: usize, rows: usize) -> (Vec<Line>, Frame) {
        self.columns = columns;
        // The run has a line above it, and a frame leaves a row free.
        let rows = rows.saturating_sub(2).max(3);
        let field = self.field.draw(columns, rows);
        let field_rows = field.lines.len().min(rows);
        let mut frame = field.below(self.lines());
        let total = frame.lines.len();
        let first = total.saturating_sub(rows).max(self.scrolled).min(total - field_rows);
        let mut gone: Vec<Line> = frame.lines.drain(..first).collect();
        frame.cursor = frame.cursor.map(|(row, column)| (row.saturating_sub(first), column));
        gone.drain(..self.scrolled.min(gone.len()));
        self.scrolled = first;
        (gone, frame)
    }

    /// Returns the lines of an answered question that have not scrolled away.
    pub(crate) fn rest(&self) -> Vec<Line> {
        self.lines().into_iter().skip(self.scrolled).collect()
    }

    /// Lays out what stands above the field, after an empty line.
    fn lines(&self) -> Vec<Line> {
        let lines = self.transcript.iter().flat_map(|text| wrap(text, self.columns));
        std::iter::once(Line::default()).chain(lines.map(|line| Line::new(0).with(Tone::Plain, line))).collect()
    }

    fn replay(&mut self) -> Option<Answer> {
        loop {
            let mut script = Script::new(&self.subject, &self.entered);
            let came_to = script.run();
            self.transcript = script.transcript;
            match came_to {
                Ok(answer) => return Some(answer),
                Err(Unanswered::Open(field)) => {
                    self.field = field;
                    return None;
                }
                // What the question is about is shown again.
                Err(Unanswered::Back) => (self.entered, self.scrolled) = (Vec::new(), 0),
            }
        }
    }
}
