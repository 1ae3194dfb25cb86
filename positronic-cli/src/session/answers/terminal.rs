//! Puts questions to whoever sits at the terminal. A question can be taken back at any time, from another thread.

use std::io::{self, Stderr, Write as _};

use crossterm::cursor::{Hide, MoveToColumn, MoveUp, Show};
use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste, Event, KeyEventKind, read};
use crossterm::queue;
use crossterm::terminal::{Clear, ClearType, disable_raw_mode, enable_raw_mode};

use super::field::{Choice, Drawn, Field, Step, Text};
use super::recall::Recall;
use crate::app::ui::size;
use crate::render::Style;
use crate::render::text::{sanitise, shorten, width, wrap};

/// Why a question has no answer.
#[derive(Debug)]
pub(super) enum Unanswered {
    /// The person wants to go back to the question around it.
    Back,
    /// Ctrl-C.
    Interrupted,
    /// The question was taken back.
    Recalled,
    /// The terminal failed.
    Io(io::Error),
}

impl From<io::Error> for Unanswered {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

pub(super) type Asked<T> = Result<T, Unanswered>;

/// The terminal as long as somebody is asked.
pub(super) struct Terminal {
    err: Stderr,
    style: Style,
    recall: Recall,
    /// The widths of the lines above the question that belong to it.
    above: Vec<usize>,
    /// The widths of the question's lines, up to that of the cursor.
    painted: Vec<usize>,
}

impl Terminal {
    pub(super) fn new(colour: bool, recall: Recall) -> Self {
        let style = Style { colour, ..Style::default() };
        Self { err: io::stderr(), style, recall, above: Vec::new(), painted: Vec::new() }
    }

    /// Says something that belongs to the next question: it goes with it where that is taken back.
    pub(super) fn say(&mut self, text: &str) -> io::Result<()> {
        for line in wrap(&sanitise(text, true), columns()) {
            self.above.push(width(&line));
            write!(self.err, "{line}\r\n")?;
        }
        self.err.flush()
    }

    /// Asks which one it is.
    pub(super) fn choose<T: Clone + ToString>(&mut self, message: &str, choices: &[T]) -> Asked<T> {
        let at = self.put(&mut Choice::new(message, choices.iter().map(ToString::to_string).collect()))?;
        choices.get(at).cloned().ok_or(Unanswered::Back)
    }

    /// Asks for a line of text.
    pub(super) fn text(
        &mut self,
        message: &str,
        initial: &str,
        help: &str,
        check: impl Fn(&str) -> Result<(), String> + 'static,
    ) -> Asked<String> {
        self.put(&mut Text::new(message, initial, help, Box::new(check)))
    }

    fn put<F: Field>(&mut self, field: &mut F) -> Asked<F::Answer> {
        let raw = Raw::enter()?;
        let answer = self.answer(field);
        match &answer {
            Ok(_) => {
                self.clear(false)?;
                let kept = shorten(&field.kept(), columns(), true);
                self.above.push(width(&kept));
                write!(self.err, "{kept}\r\n")?;
            }
            Err(Unanswered::Back) => self.clear(false)?,
            Err(Unanswered::Interrupted | Unanswered::Recalled) => self.clear(true)?,
            Err(Unanswered::Io(_)) => {}
        }
        drop(raw);
        self.err.flush()?;
        answer
    }

    fn answer<F: Field>(&mut self, field: &mut F) -> Asked<F::Answer> {
        loop {
            self.paint(&field.drawn(columns(), size().1.saturating_sub(1)))?;
            if !self.recall.typed()? {
                return Err(Unanswered::Recalled);
            }
            let event = read()?;
            if self.recall.is_set() {
                return Err(Unanswered::Recalled);
            }
            match event {
                Event::Key(key) if key.kind != KeyEventKind::Release => match field.key(key) {
                    Step::Open => {}
                    Step::Answer(answer) => return Ok(answer),
                    Step::Back => return Err(Unanswered::Back),
                    Step::Interrupted => return Err(Unanswered::Interrupted),
                },
                Event::Paste(text) => field.paste(&text),
                _ => {}
            }
        }
    }

    fn paint(&mut self, drawn: &Drawn) -> io::Result<()> {
        self.clear(false)?;
        let lines: Vec<String> = drawn.lines.iter().map(|line| line.paint(&self.style)).collect();
        write!(self.err, "{}", lines.join("\r\n"))?;
        let last = lines.len().saturating_sub(1);
        let row = drawn.cursor.map_or(last, |(row, _)| row);
        if row < last {
            queue!(self.err, MoveUp(short(last - row)))?;
        }
        match drawn.cursor {
            Some((_, column)) => queue!(self.err, MoveToColumn(short(column)), Show)?,
            None => queue!(self.err, Hide)?,
        }
        self.painted = drawn.lines.iter().take(row + 1).map(crate::render::Line::width).collect();
        self.err.flush()
    }

    /// Takes the question off the screen, or all that belongs to it.
    fn clear(&mut self, whole: bool) -> io::Result<()> {
        let mut up = rows(&self.painted).saturating_sub(1);
        if whole {
            up = (up + rows(&self.above)).min(size().1.saturating_sub(1));
            self.above.clear();
        }
        self.painted.clear();
        queue!(self.err, MoveToColumn(0))?;
        if up > 0 {
            queue!(self.err, MoveUp(short(up)))?;
        }
        queue!(self.err, Clear(ClearType::FromCursorDown), Show)
    }
}

/// The last column stays free: some terminals wrap a line that fills it.
pub(super) fn columns() -> usize {
    size().0.saturating_sub(1).max(2)
}

/// The rows that are shown at once: what the screen has, less a question with its choices.
pub(super) fn page() -> usize {
    size().1.saturating_sub(12).max(5)
}

/// Counts the rows that lines take, in a terminal that may be narrower than when they were written.
fn rows(lines: &[usize]) -> usize {
    let columns = size().0.max(1);
    lines.iter().map(|width| width.div_ceil(columns).max(1)).sum()
}

fn short(number: usize) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}

/// Keys come one by one for as long as this is held.
pub(crate) struct Raw;

impl Raw {
    /// Begins it.
    pub(crate) fn enter() -> io::Result<Self> {
        enable_raw_mode()?;
        let raw = Self;
        let mut err = io::stderr();
        queue!(err, EnableBracketedPaste)?;
        err.flush()?;
        Ok(raw)
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // Where the terminal is gone there is nobody to tell.
        let mut err = io::stderr();
        _ = queue!(err, DisableBracketedPaste, Show);
        _ = err.flush();
        _ = disable_raw_mode();
    }
}
