//! Painter of the end of a terminal: lines that scroll away for good, above a frame that is painted again and again.
//!
//! A frame is written in one piece over the one before, and a line that did not change is not written again, so nothing
//! flickers. After a change of the terminal's size, the rows of the old frame are counted again.

use std::io::{self, Write};

use crossterm::cursor::{Hide, MoveTo, MoveToColumn, MoveUp, Show};
use crossterm::queue;
use crossterm::terminal::{
    BeginSynchronizedUpdate, Clear, ClearType, DisableLineWrap, EnableLineWrap, EndSynchronizedUpdate,
};

use super::style::{Line, Style};

/// Lines, and the place of the cursor among them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) lines: Vec<Line>,
    /// The line and the column of the cursor, which is hidden without one.
    pub(crate) cursor: Option<(usize, usize)>,
}

impl Frame {
    /// Puts lines above the frame.
    #[must_use]
    pub(crate) fn below(mut self, mut lines: Vec<Line>) -> Self {
        let cursor = self.cursor.map(|(row, column)| (lines.len() + row, column));
        lines.append(&mut self.lines);
        Self { lines, cursor }
    }
}

/// What a terminal shows of the last frame.
#[derive(Debug, Default)]
pub(crate) struct Painter {
    /// The width and the text of each line.
    painted: Vec<(usize, String)>,
    /// The lines above the cursor's, and the cursor's column.
    cursor: (usize, usize),
    /// The columns and rows of the terminal.
    size: (usize, usize),
}

impl Painter {
    /// Replaces the frame: `gone` scrolls away, and `frame` stands below it.
    ///
    /// # Errors
    ///
    /// The terminal cannot be written to.
    pub(crate) fn paint(
        &mut self,
        out: &mut impl Write,
        style: &Style,
        gone: &[Line],
        frame: &Frame,
        size: (usize, usize),
    ) -> io::Result<()> {
        let resized = self.size != size;
        let old_rows = if resized { self.rows_at(size.0) } else { self.cursor.0 };
        let new: Vec<(usize, String)> = frame.lines.iter().map(|line| (line.width(), line.paint(style))).collect();
        let cursor = frame.cursor.unwrap_or((new.len(), 0));
        if gone.is_empty() && !resized && new == self.painted && cursor == self.cursor {
            return Ok(());
        }
        let mut bytes = Vec::new();
        queue!(bytes, BeginSynchronizedUpdate, Hide, DisableLineWrap, MoveToColumn(0))?;
        if old_rows > 0 {
            queue!(bytes, MoveUp(short(old_rows)))?;
        }
        let stays = gone.is_empty() && !resized;
        let gone = gone.iter().map(|line| (false, line.paint(style)));
        let lines = new.iter().enumerate();
        let lines = lines.map(|(index, line)| (stays && self.painted.get(index) == Some(line), line.1.clone()));
        for (is_painted, line) in gone.chain(lines) {
            if !is_painted {
                // Not the rest of the screen at once: terminals may save what that clears in their history.
                queue!(bytes, Clear(ClearType::CurrentLine))?;
                bytes.extend_from_slice(line.as_bytes());
            }
            bytes.extend_from_slice(b"\r\n");
        }
        queue!(bytes, Clear(ClearType::FromCursorDown), EnableLineWrap)?;
        if frame.cursor.is_some() {
            let up = new.len().saturating_sub(cursor.0);
            queue!(bytes, MoveUp(short(up)), MoveToColumn(short(cursor.1)), Show)?;
        }
        queue!(bytes, EndSynchronizedUpdate)?;
        (self.painted, self.cursor, self.size) = (new, cursor, size);
        out.write_all(&bytes)?;
        out.flush()
    }

    /// Clears the whole screen; the next frame stands at its top.
    pub(crate) fn clear(&mut self, out: &mut impl Write) -> io::Result<()> {
        (self.painted, self.cursor) = (Vec::new(), (0, 0));
        queue!(out, Clear(ClearType::All), MoveTo(0, 0))?;
        out.flush()
    }

    /// Counts the rows above the cursor in a terminal of another width.
    fn rows_at(&self, columns: usize) -> usize {
        let columns = columns.max(1);
        let above = self.painted.iter().take(self.cursor.0).map(|(width, _)| width.div_ceil(columns).max(1));
        above.sum::<usize>() + self.cursor.1 / columns
    }
}

fn short(number: usize) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::style::Tone;
    use super::*;

    fn frame(lines: &[&str], cursor: (usize, usize)) -> Frame {
        let lines = lines.iter().map(|line| Line::new(0).with(Tone::Plain, *line)).collect();
        Frame { lines, cursor: Some(cursor) }
    }

    /// Paints and returns the written bytes as text.
    fn paint(painter: &mut Painter, gone: &[Line], frame: &Frame, size: (usize, usize)) -> String {
        let mut bytes = Vec::new();
        painter.paint(&mut bytes, &Style::default(), gone, frame, size).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn unchanged_lines_are_not_written_again() {
        let mut painter = Painter::default();
        let first = frame(&["one", "two"], (1, 3));
        assert!(paint(&mut painter, &[], &first, (40, 10)).contains("one"));

        assert_eq!(paint(&mut painter, &[], &first, (40, 10)), "");
        let second = paint(&mut painter, &[], &frame(&["one", "three"], (1, 5)), (40, 10));
        assert!(!second.contains("one") && second.contains("three"), "{second:?}");
    }

    #[test]
    fn narrower_terminal_is_painted_from_where_the_wrapped_frame_begins() {
        let mut painter = Painter::default();
        let wide = frame(&[&"x".repeat(50), &"y".repeat(30), "› input"], (2, 7));
        paint(&mut painter, &[], &wide, (60, 10));

        let narrow = paint(&mut painter, &[], &frame(&["short"], (0, 5)), (20, 10));

        // Three rows of 50 columns and two of 30 stand above the cursor.
        assert!(narrow.contains("\u{1b}[1G\u{1b}[5A\u{1b}[2Kshort\r\n\u{1b}[J"), "{narrow:?}");
    }

    #[test]
    fn lines_that_scroll_away_stand_above_the_frame() {
        let mut painter = Painter::default();
        let input = frame(&["› input"], (0, 7));
        paint(&mut painter, &[], &input, (40, 10));

        let gone = [Line::new(0).with(Tone::Plain, "an answer")];
        let text = paint(&mut painter, &gone, &input, (40, 10));

        assert!(text.find("an answer").unwrap() < text.find("› input").unwrap(), "{text:?}");
    }
}
